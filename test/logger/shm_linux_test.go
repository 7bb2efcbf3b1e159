// SPDX-License-Identifier: Apache-2.0

package logger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// What other programs and full file systems can do to the rings' folder.

// ringFiles are the files of a home's rings, the large ones: those that are mapped.
func ringFiles(t testing.TB, h *rig.Home) []string {
	t.Helper()
	var files []string
	for _, r := range h.Rings() {
		rig.Must(t, filepath.WalkDir(r, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			info, err := d.Info()
			if err == nil && info.Size() >= 256<<10 {
				files = append(files, name)
			}
			return err
		}))
	}
	return files
}

// TestLoggerTruncated cuts a ring's file under the logger. The process lives; what its removed
// pages held is counted and told; all else is delivered, and a logger beside loses nothing.
func TestLoggerTruncated(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		keep int64 // bytes, of size/keep where it is below 100
	}{{"to nothing", 0}, {"to a half", 2}, {"to a page", 4096}} {
		for _, down := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/down=%t", tt.name, down), func(t *testing.T) {
				t.Parallel()
				h := rig.NewHome(t)
				s := rig.NewFake(t)
				if down {
					s.Down()
				}
				const n = 3000
				o := spillway.Options{FlushInterval: time.Millisecond, RingSize: 4 << 20}
				if down {
					o.FlushInterval = time.Minute // what the mover has read before the cut is not lost
				}
				l := h.Open(s.URL(""), o)
				files := ringFiles(t, h)
				if len(files) == 0 {
					t.Fatal("the ring has no files")
				}
				beside := h.Open(s.URL(""), o)
				pad := string(make([]byte, 300))
				p, q := &rig.Poster{Stream: "cut.0"}, &rig.Poster{Stream: "beside.0"}
				for p.Next < n {
					rig.Must(t, p.Post(l, pad))
					rig.Must(t, q.Post(beside, pad))
				}
				for _, name := range files {
					info, err := os.Stat(name)
					rig.Must(t, err)
					size := tt.keep
					if size > 0 && size < 100 {
						size = info.Size() / size
					}
					rig.Must(t, os.Truncate(name, size))
				}
				for p.Next < 2*n {
					rig.Must(t, p.Post(l, pad))
					rig.Must(t, q.Post(beside, pad))
				}
				s.Up()
				stats := rig.Closing(t, l)
				rig.WantLaw(t, stats)
				rig.WantLaw(t, rig.Closing(t, beside))
				s.Ledger.Check(t)
				s.Ledger.WantStream(t, q.Stream, 2*n, 2*n)
				have := uint64(0)
				last := int64(-1)
				for _, i := range s.Ledger.Streams[p.Stream] {
					if int64(i) <= last {
						t.Fatalf("event %d comes after %d", i, last)
					}
					last = int64(i)
					have++
				}
				if last != 2*n-1 {
					t.Errorf("the last event is %d, want %d: the logger did not go on in plain memory", last, 2*n-1)
				}
				if want := 2*n - have; stats.Lost != want {
					t.Errorf("%d events are missing, %d are counted as lost: %+v", want, stats.Lost, stats)
				}
				if down && have == 2*n && tt.keep == 0 {
					t.Error("nothing was lost: the test tests nothing")
				}
				if stats.Lost > 0 && !h.Said() {
					t.Error("no diagnosis tells of it")
				}
				t.Logf("%d of %d lost", stats.Lost, stats.Accepted)
				h.Tell()
			})
		}
	}
}

// TestLoggerTruncatedOrphan cuts the ring of a dead process: what is readable is delivered, the
// rest is counted.
func TestLoggerTruncatedOrphan(t *testing.T) {
	t.Parallel()
	for _, part := range []int64{0, 2, 4} {
		t.Run(fmt.Sprintf("part=%d", part), func(t *testing.T) {
			t.Parallel()
			h := rig.NewHome(t)
			s := rig.NewFake(t)
			s.Down()
			o := orphan(h, s, "dead")
			c := rig.StartChild(t, o)
			c.Wait("posted")
			c.Kill()
			for _, name := range ringFiles(t, h) {
				size := int64(0)
				if part > 0 {
					info, err := os.Stat(name)
					rig.Must(t, err)
					size = info.Size() / part
				}
				rig.Must(t, os.Truncate(name, size))
			}
			s.Up()
			l := h.Open(o.Destination, spillway.Options{})
			p := &rig.Poster{Stream: "new.0"}
			for range 100 {
				rig.Must(t, p.Post(l, ""))
			}
			rig.WantLaw(t, rig.Closing(t, l))
			s.Ledger.Check(t)
			s.Ledger.WantStream(t, p.Stream, 100, 100)
			have := 0
			for g := range 4 {
				last := int64(-1)
				for _, i := range s.Ledger.Streams[fmt.Sprintf("dead.%d", g)] {
					if int64(i) <= last {
						t.Fatalf("event %d comes after %d", i, last)
					}
					last = int64(i)
					have++
				}
			}
			t.Logf("%d of %d events came", have, 4*o.Count)
			h.Tell()
			if have < int(4*o.Count) && !h.Said("trial.") {
				t.Error("no diagnosis names the ring")
			}
		})
	}
}

// TestLoggerFullShm opens loggers where there is little room for a ring, and where there is none:
// the one has a small ring, the other logs from plain memory, and says so.
func TestLoggerFullShm(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, size string
		fill       bool
	}{{"small", "1m", false}, {"full", "64m", true}} {
		t.Run(tt.name, func(t *testing.T) {
			d := rig.NewDisk(t, tt.size)
			if tt.fill {
				d.Fill()
			}
			h := rig.NewHome(t)
			h.Shm = d.Dir
			s := rig.NewFake(t)
			l := h.Open(s.URL(""), spillway.Options{})
			posters := rig.PostAll(t, l, "s", 1000, rig.Random(t))
			if tt.fill && !h.Said(d.Dir) {
				t.Error("no diagnosis names the folder")
			}
			stats := rig.Closing(t, l)
			rig.WantLaw(t, stats)
			if stats.Delivered != stats.Accepted || stats.Lost > 0 {
				t.Errorf("want all to be delivered: %+v", stats)
			}
			s.Ledger.Check(t)
			for _, p := range posters {
				s.Ledger.WantStream(t, p.Stream, 1000, 1000)
			}
			h.Tell()
		})
	}
}

// TestLoggerShmFillsUp has the file system of the rings fill up while a logger runs and its server
// is down: its ring is small from then on. It says so. Without Dir it refuses what finds no room,
// and delivers what it accepted; with Dir all finds room there, also when all that the ring can
// hold is on its way to the server.
func TestLoggerShmFillsUp(t *testing.T) {
	t.Parallel()
	for _, spills := range []bool{false, true} {
		t.Run(fmt.Sprintf("spill=%t", spills), func(t *testing.T) {
			t.Parallel()
			d := rig.NewDisk(t, "32m")
			h := rig.NewHome(t)
			h.Shm = d.Dir
			s := rig.NewFake(t)
			s.Down()
			o := spillway.Options{RingSize: 8 << 20}
			if spills {
				o.Dir, o.Overflow, o.MaxWait = h.Dir, spillway.OverflowBlock, rig.Patience
			}
			l := h.Open(s.URL(""), o)
			d.Fill()
			p := &rig.Poster{Stream: "s.0"}
			pad := string(make([]byte, 1000))
			for p.Next < 10_000 { // more than the ring could be
				if err := p.Post(l, pad); errors.Is(err, spillway.ErrFull) && !spills {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
			rig.Eventually(t, "a diagnosis names the folder", func() bool { return h.Said(d.Dir) })
			s.Up()
			stats := rig.Closing(t, l)
			rig.WantLaw(t, stats)
			if stats.Delivered != stats.Accepted || stats.Lost > 0 || (stats.Refused == 0) != spills {
				t.Errorf("want all that is accepted to be delivered, and one to be refused without Dir: %+v", stats)
			}
			s.Ledger.Check(t)
			s.Ledger.WantStream(t, p.Stream, p.Next, p.Next)
		})
	}
}

// TestLoggerForeignFiles finds the folder of its rings made by somebody else: it keeps out of it,
// logs from plain memory, and says so. One that is the user's own but open to others it shuts, and
// says so too.
func TestLoggerForeignFiles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		used bool
		make func(t *testing.T, path, elsewhere string)
	}{
		{"symlink", false, func(t *testing.T, path, elsewhere string) { rig.Must(t, os.Symlink(elsewhere, path)) }},
		{"file", false, func(t *testing.T, path, _ string) { rig.Must(t, os.WriteFile(path, []byte("mine"), 0o600)) }},
		{"open to all", true, func(t *testing.T, path, _ string) {
			rig.Must(t, os.Mkdir(path, 0o700))
			rig.Must(t, os.Chmod(path, 0o777)) //nolint:gosec // that is the test
		}},
		{"another's", false, func(t *testing.T, path, _ string) {
			needs.Have(t, os.Getuid() == 0, "giving a folder away needs root")
			rig.Must(t, os.Mkdir(path, 0o700))
			rig.Must(t, os.Chown(path, 12345, 12345))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := rig.NewHome(t)
			elsewhere := t.TempDir()
			path := filepath.Join(h.Shm, fmt.Sprintf("spillway-%d", os.Getuid()))
			tt.make(t, path, elsewhere)
			s := rig.NewFake(t)
			l := h.Open(s.URL(""), spillway.Options{})
			posters := rig.PostAll(t, l, "s", 500, rig.Random(t))
			for _, dir := range []string{path, elsewhere} {
				if found, _ := os.ReadDir(dir); len(found) > 0 && (dir == elsewhere || !tt.used) { //nolint:errcheck // a file is no folder
					t.Errorf("the logger made %s in %s", found[0].Name(), dir)
				}
			}
			if info, err := os.Stat(path); tt.used && (err != nil || info.Mode().Perm() != 0o700) {
				t.Errorf("the folder is not shut: %v, %v", info.Mode(), err)
			}
			if !h.Said(path) {
				t.Error("no diagnosis names the folder")
			}
			h.Tell()
			stats := rig.Closing(t, l)
			rig.WantLaw(t, stats)
			s.Ledger.Check(t)
			for _, p := range posters {
				s.Ledger.WantStream(t, p.Stream, 500, 500)
			}
		})
	}
}

// TestLoggerOthersRings has rubbish lie where rings are: nothing of it is deleted, and nobody
// loses.
func TestLoggerOthersRings(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	s := rig.NewFake(t)
	s.Down()
	o := orphan(h, s, "dead")
	c := rig.StartChild(t, o)
	c.Wait("posted")
	c.Kill()
	folder := filepath.Dir(h.Rings()[0])
	rubbish := []string{"trial.1.0123456789abcdef", "trial.2.fedcba9876543210/owner", "trial.x.y/z", "trial"}
	for _, name := range rubbish {
		path := filepath.Join(folder, name)
		rig.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		rig.Must(t, os.WriteFile(path, []byte("rubbish"), 0o600))
	}
	s.Up()
	stats := rig.Closing(t, h.Open(o.Destination, spillway.Options{}))
	rig.WantLaw(t, stats)
	for _, name := range rubbish {
		if b, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(b) != "rubbish" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	s.Ledger.Check(t)
	rig.WantAll(t, s.Ledger, c)
	h.Tell()
}
