// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func zstandard(t testing.TB, b []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	w, err := zstd.NewWriter(&buf)
	must(t, err)
	_, err = w.Write(b)
	must(t, err)
	must(t, w.Close())
	return buf.Bytes()
}

// TestCompressed sends gzip and zstd, one member and one a event (docs/forward.md rule 17). The
// same chunk resent plain is a resend: what is compared is what was compressed.
func TestCompressed(t *testing.T) {
	t.Parallel()
	s, out := newSetup(t)
	c := startCollector(t, s)
	var want []string
	for name, compress := range map[string]func([]byte) []byte{
		"gzip": gzipped,
		"zstd": func(b []byte) []byte { return zstandard(t, b) },
	} {
		one := named(name + " 1").append(nil)
		two := named(name + " 2").append(nil)
		three := named(name + " 3").append(nil)
		want = append(want, name+" 1", name+" 2", name+" 3", name+" 1", name+" 2", name+" 3")

		id := newID()
		c.lane().send(packedOptions("a", compress(bytes.Join([][]byte{one, two, three}, nil)), "compressed", name,
			"chunk", id), id)
		c.lane().send(packed("a", id, bytes.Join([][]byte{one, two, three}, nil)), id)

		id = newID()
		members := bytes.Join([][]byte{compress(one), compress(two), compress(three)}, nil)
		c.lane().send(packedOptions("a", members, "compressed", name, "chunk", id), id)
		c.lane().send(packedOptions("a", members, "compressed", name, "chunk", id), id)
	}
	waitLines(t, out, len(want))
	c.stop()
	wantNames(t, readLines(t, out), want...)
}
