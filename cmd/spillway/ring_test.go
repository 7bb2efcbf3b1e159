// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/msgpack"
	"github.com/spillwaylog/spillway/ring"
)

func ringPayload(tag, message string) []byte {
	b := append(binary.AppendUvarint(nil, uint64(len(tag))), tag...)
	b = msgpack.AppendMapHeader(b, 1)
	b = msgpack.AppendString(b, "message")
	return msgpack.AppendString(b, message)
}

// TestRings looks into a ring that is in use and one that was left, by its own folder and by that
// of both, and into one that was damaged.
func TestRings(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rings")
	var rings []*ring.Ring
	for i := range 2 {
		r, err := ring.Open(&ring.Options{Dir: dir, Name: "app", Size: 256 << 10})
		needs.Have(t, !errors.Is(err, ring.ErrUnsupported), "%v", err)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var h ring.Hint
		for n := range 3 {
			if _, err := r.Append(&h, int64(1_500_000_000+n),
				ringPayload("app.web", strings.Repeat("event ", n+1))); err != nil {
				t.Fatal(err)
			}
		}
		if i == 0 {
			r.Put(ring.Mark{First: 1, Last: 2, Label: [24]byte([]byte("abcdefghijklmnopqrstuvwx"))})
		}
		rings = append(rings, r)
	}
	path := rings[1].Path()
	if err := rings[1].Leave(); err != nil {
		t.Fatal(err)
	}

	got := command(t, "", "journal", "ls", dir)
	if got.code != 0 || !strings.Contains(got.out, "in use by process") ||
		!strings.Contains(got.out, "left by process") || !strings.Contains(got.out, "abcdefghijklmnopqrstuvwx") {
		t.Errorf("ls: %+v", got)
	}
	got = command(t, "", "journal", "cat", dir)
	if got.code != 0 || strings.Count(got.out, "\n") != 6 {
		t.Errorf("cat: %+v", got)
	}
	want := `{"time":"1970-01-01T00:00:01.500000002Z","tag":"app.web","message":"event event event "}` + "\n"
	got = command(t, "", "journal", "cat", path)
	if got.code != 0 || strings.Count(got.out, "\n") != 3 || !strings.HasSuffix(got.out, want) {
		t.Errorf("cat: %+v", got)
	}
	if got = command(t, "", "journal", "verify", dir); got.code != 0 || !strings.Contains(got.out, "6 records, ") {
		t.Errorf("verify: %+v", got)
	}

	file := filepath.Join(path, "ring")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[bytes.Index(b, []byte("event event "))] ^= 1
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if got = command(t, "", "journal", "verify", path); got.code != 1 ||
		!strings.Contains(got.out, "1 places cannot be read") {
		t.Errorf("verify: %+v", got)
	}
}

func TestRingOfAnother(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rings")
	r, err := ring.Open(&ring.Options{Dir: dir, Size: 256 << 10})
	needs.Have(t, !errors.Is(err, ring.ErrUnsupported), "%v", err)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var h ring.Hint
	for _, p := range []string{"", "\xff", "\x05tag", "\x03tagno map\xc1"} {
		if _, err := r.Append(&h, ring.Now, []byte(p)); err != nil {
			t.Fatal(err)
		}
	}
	if got := command(t, "", "journal", "cat", dir); got.code != 1 || got.out != "" ||
		strings.Count(got.err, "is no event") != 4 {
		t.Errorf("cat: %+v", got)
	}
	if got := command(t, "", "journal", "verify", dir); got.code != 1 || !strings.Contains(got.out, "4 records") {
		t.Errorf("verify: %+v", got)
	}
}
