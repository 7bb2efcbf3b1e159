// SPDX-License-Identifier: Apache-2.0

package successor

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/window"
	"github.com/spillwaylog/spillway/ring"
)

// FuzzLegacy takes over a ring with the fuzzer's patches in its file, and with marks that it makes:
// whatever there is, each chunk is one that can be stored, and it ends.
func FuzzLegacy(f *testing.F) {
	s := newScene(f, nil)
	r := s.open("forward://x:1")
	for i := range 30 {
		s.append(r, string(rune('a'+i%3)), 3)
	}
	var keys []uint64
	for {
		rec, ok, err := r.Next()
		must(f, err)
		if !ok {
			break
		}
		keys = append(keys, rec.Key)
	}
	raw := [16]byte{1, 2, 3}
	for i, kind := range []byte{window.ToDestination, window.RunsToDestination, window.RunsToSpill, window.ToSpill} {
		var label ID
		window.RunID(&label, raw, i)
		label[len(label)-1] = kind
		r.Put(ring.Mark{First: keys[10*i], Last: keys[10*i+9], Label: label})
	}
	r.Cut(keys[len(keys)/2])
	must(f, r.Leave())
	path := r.Path()
	owner, err := os.ReadFile(filepath.Join(path, "owner"))
	must(f, err)
	memory, err := os.ReadFile(filepath.Join(path, "ring"))
	must(f, err)
	must(f, os.RemoveAll(path))
	f.Add(uint32(0), []byte("x"), uint32(1<<20))
	f.Add(uint32(4096), bytes.Repeat([]byte{1}, 100), uint32(1<<20))
	f.Add(uint32(4096+56), binary.LittleEndian.AppendUint32(nil, 1), uint32(1<<20))
	f.Add(uint32(8192), memory[8192:8300], uint32(1<<20))
	f.Add(uint32(98304+200), []byte{0xc1, 0xdf, 0xff, 0xff, 0xff, 0xff}, uint32(100000))
	f.Add(uint32(98304), memory[98304:98400], uint32(98304))
	f.Fuzz(func(t *testing.T, at uint32, patch []byte, length uint32) {
		b := bytes.Clone(memory)
		copy(b[int(at)%len(b):], patch)
		b = b[:min(len(b), int(length))]
		must(t, os.Mkdir(path, 0o700))
		defer os.RemoveAll(path)
		must(t, os.WriteFile(filepath.Join(path, "owner"), owner, 0o600))
		must(t, os.WriteFile(filepath.Join(path, "ring"), b, 0o600))
		h := New(&Options{Path: s.path, MaxRing: 1 << 20, Report: func(error) {}})
		due, err := h.Look()
		must(t, err)
		for _, p := range due {
			l := h.Take(p, nil)
			if l == nil {
				continue
			}
			for events := 0; ; {
				chunks, err := l.Next()
				must(t, err)
				if len(chunks) == 0 {
					break
				}
				for _, c := range chunks {
					n := 0
					entries := forward.ReadEntries(c.Entries)
					for _, ok := entries.Next(); ok; _, ok = entries.Next() {
						n++
					}
					if entries.Err() != nil || n != c.Events || len(c.ID) != window.IDLen ||
						len(c.Tag) > forward.MaxTag {
						t.Fatalf("%d entries, it says %d, %v", n, c.Events, entries.Err())
					}
					events += n
				}
				if events > 90 {
					t.Fatalf("%d events of 90", events)
				}
				must(t, l.Done())
			}
			must(t, l.Finish())
		}
	})
}
