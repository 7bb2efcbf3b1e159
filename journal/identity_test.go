// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestIdentity(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, dir, nil)
	id := j.Identity()
	if id == noIdentity {
		t.Fatal("there is none")
	}
	for range 2 {
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if j = mustOpen(t, dir, nil); j.Identity() != id {
			t.Fatalf("it is %x, was %x", j.Identity(), id)
		}
	}
	if in, err := Inspect(dir); err != nil || in.Identity != id || in.IdentityErr != nil {
		t.Errorf("Inspect: %x, %v, %v", in.Identity, in.IdentityErr, err)
	}
	if other := mustOpen(t, t.TempDir(), nil); other.Identity() == id {
		t.Error("another directory has the same")
	}
}

// TestIdentityOfOld: a directory of the code before identities gets one, and is looked into without
// being given one.
func TestIdentityOfOld(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "v1"))); err != nil {
		t.Fatal(err)
	}
	if in, err := Inspect(dir); err != nil || in.Identity != noIdentity || in.IdentityErr != nil {
		t.Errorf("Inspect: %x, %v, %v", in.Identity, in.IdentityErr, err)
	}
	if _, err := os.Stat(filepath.Join(dir, identityFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Inspect left a file: %v", err)
	}
	j := mustOpen(t, dir, nil)
	id := j.Identity()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if id == noIdentity || mustOpen(t, dir, nil).Identity() != id {
		t.Errorf("it is %x, and changes", id)
	}
}

// TestIdentityDamaged: what cannot be read is set aside and told, and there is another one.
func TestIdentityDamaged(t *testing.T) {
	good := appendIdentity(nil, [16]byte{1, 2, 3})
	for name, bad := range map[string][]byte{
		"empty":   {},
		"short":   good[:identityLen-1],
		"long":    append(bytes.Clone(good), 0),
		"flipped": append(append(bytes.Clone(good[:20]), good[20]^1), good[21:]...),
		"zeros":   make([]byte, identityLen),
		"none":    appendIdentity(nil, noIdentity),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, identityFile)
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			var told reports
			j := mustOpen(t, dir, &Options{Report: told.add})
			list := told.all()
			var e *CorruptError
			if len(list) != 1 || !errors.As(list[0], &e) || e.Path != path {
				t.Fatalf("reported: %v", list)
			}
			if saved, err := os.ReadFile(e.Saved); err != nil || !bytes.Equal(saved, bad) {
				t.Errorf("set aside: %x, %v", saved, err)
			}
			if j.Identity() == noIdentity {
				t.Error("there is none")
			}
		})
	}
}

// TestLaterIdentity: as with segments.
func TestLaterIdentity(t *testing.T) {
	dir := t.TempDir()
	b := appendIdentity(nil, [16]byte{1})
	binary.LittleEndian.PutUint32(b[8:], formatVersion+1)
	binary.LittleEndian.PutUint32(b[28:], crc32.Checksum(b[:28], castagnoli))
	path := filepath.Join(dir, identityFile)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, nil); !errors.Is(err, errVersion) || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, b) {
		t.Errorf("the file was changed: %v", err)
	}
}

// TestIdentityPowerCut cuts the power, or ends the process, at every call of the first Open and of
// the one after it. What an Open returned stays.
func TestIdentityPowerCut(t *testing.T) {
	seed := rand.Uint64() >> 1
	t.Logf("seed %d", seed)
	made := 0
	for round := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, round))
		fs := newCrashFS(rand.New(rand.NewPCG(seed, round+1<<32)))
		id := noIdentity
		for life := range 6 {
			fs.cutIn, fs.kills = 1+r.IntN(20), r.IntN(2) == 0
			if life == 5 {
				fs.cutIn = 0
			}
			// load, not Open: goroutines that prepare segments would make calls in an order of
			// their own.
			j, err := load("d", &Options{
				FS:     fs,
				Report: func(err error) { t.Errorf("seed %d round %d: %v", seed, round, err) },
			})
			if err == nil {
				if j.Identity() == noIdentity || id != noIdentity && j.Identity() != id {
					t.Fatalf("seed %d round %d life %d: it is %x, was %x", seed, round, life, j.Identity(), id)
				}
				id = j.Identity()
				made++
			} else if !errors.Is(err, errPower) {
				t.Fatalf("seed %d round %d: %v", seed, round, err)
			}
			fs.mu.Lock()
			if !fs.dead {
				fs.cut()
			}
			fs.mu.Unlock()
			fs = fs.after
		}
	}
	t.Logf("%d were told", made)
}

// TestIdentityFull: a full disk does not keep a journal from being emptied.
func TestIdentityFull(t *testing.T) {
	fs := newCrashFS(rand.New(rand.NewPCG(1, 1)))
	full := true
	fs.failing = func(op, path string) error {
		if full && op == "create" && strings.Contains(path, identityFile) {
			return syscall.ENOSPC
		}
		return nil
	}
	var told reports
	j, err := Open("d", &Options{FS: fs, Report: told.add})
	if err != nil {
		t.Fatal(err)
	}
	if list := told.all(); j.Identity() != noIdentity || len(list) != 1 || !errors.Is(list[0], syscall.ENOSPC) {
		t.Errorf("it is %x; reported %v", j.Identity(), list)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	full = false
	if j := mustOpen(t, "d", &Options{FS: fs}); j.Identity() == noIdentity {
		t.Error("there is still none")
	}
}

func FuzzIdentity(f *testing.F) {
	f.Add(appendIdentity(nil, [16]byte{1}))
	f.Add([]byte(identityMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		if id, err := parseIdentity(b); err == nil && !bytes.Equal(appendIdentity(nil, id), b) {
			t.Errorf("%x is read as %x", b, id)
		}
	})
}
