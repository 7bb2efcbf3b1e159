// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/internal/needs"
)

// A Home is where loggers of one name keep their rings and spills.
type Home struct {
	t         testing.TB
	Shm, Dir  string // folders of rings and of spills
	mu        sync.Mutex
	Diagnoses []string // what Diagnostics was told, 1000 at most
}

// NewHome makes the folders, that of the rings in memory where there is a file system for that.
func NewHome(t testing.TB) *Home {
	t.Helper()
	return &Home{t: t, Shm: needs.Shm(t), Dir: filepath.Join(needs.Dir(t), "spill")}
}

// Open opens a logger here; o's folders and name are set, Dir unless there is to be no spill.
func (h *Home) Open(destination string, o spillway.Options) *spillway.Logger {
	h.t.Helper()
	o.Name, o.Shm = "trial", h.Shm
	o.Diagnostics = h.diagnose
	l, err := spillway.Open(destination, &o)
	if err != nil {
		h.t.Fatalf("Open(%q): %v", destination, err)
	}
	return l
}

func (h *Home) diagnose(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.Diagnoses) < 1000 {
		h.Diagnoses = append(h.Diagnoses, err.Error())
	}
}

// Said tells whether a diagnosis has all parts in it.
func (h *Home) Said(parts ...string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
lines:
	for _, d := range h.Diagnoses {
		for _, p := range parts {
			if !strings.Contains(d, p) {
				continue lines
			}
		}
		return true
	}
	return false
}

// Tell logs the first diagnoses, for a test that failed.
func (h *Home) Tell() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.t.Logf("%d diagnoses:\n%s", len(h.Diagnoses), strings.Join(h.Diagnoses[:min(20, len(h.Diagnoses))], "\n"))
}

// Rings are the folders of rings that are there.
func (h *Home) Rings() []string {
	h.t.Helper()
	found, err := filepath.Glob(filepath.Join(h.Shm, "*", "*"))
	Must(h.t, err)
	return found
}

// Left are those that hold something: a process may have been killed when it had just made the
// folder of its ring, or removed all but that.
func (h *Home) Left() []string {
	h.t.Helper()
	return slices.DeleteFunc(h.Rings(), func(dir string) bool {
		files, err := os.ReadDir(dir)
		return strings.HasSuffix(dir, ".tmp") && len(files) == 0 && (err == nil || errors.Is(err, fs.ErrNotExist))
	})
}

// WantEmpty checks that neither rings nor spilled chunks are left. A kill in the middle of a write
// may have cut a record of a spill short: its events are in the ring still, and what is there of it
// is set aside, never deleted.
func (h *Home) WantEmpty() {
	h.t.Helper()
	found, err := filepath.Glob(filepath.Join(h.Dir, "*"))
	Must(h.t, err)
	for _, dir := range append(found, h.Rings()...) {
		aside, err := filepath.Glob(filepath.Join(dir, "quarantine", "*"))
		Must(h.t, err)
		if len(aside) > 0 {
			h.t.Logf("set aside: %s", strings.Join(aside, ", "))
			continue
		}
		var files []string
		Must(h.t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err == nil {
				info, ierr := d.Info()
				Must(h.t, ierr)
				files = append(files, fmt.Sprintf("%v %d %s", info.Mode(), info.Size(), name))
			}
			return err
		}))
		if strings.HasSuffix(dir, ".tmp") && len(files) == 1 {
			h.t.Logf("a process was killed while it made its ring, %s: removed when it is a minute old", dir)
			continue
		}
		h.t.Errorf("left behind:\n%s", strings.Join(files, "\n"))
	}
}

// WantLaw checks that nothing that was accepted is unaccounted for.
func WantLaw(t testing.TB, s spillway.Stats) {
	t.Helper()
	if sum := s.Delivered + s.HandedOver + s.Dropped + s.Lost + s.Held; sum != s.Accepted {
		t.Errorf("accepted %d, but delivered + handed over + dropped + lost + held = %d: %+v", s.Accepted, sum, s)
	}
	for _, by := range []struct {
		what string
		n    uint64
		m    map[string]uint64
	}{{"dropped", s.Dropped, s.DroppedBy}, {"refused", s.Refused, s.RefusedBy}} {
		sum := uint64(0)
		for _, n := range by.m {
			sum += n
		}
		if sum != by.n {
			t.Errorf("%s %d, but by reason %v", by.what, by.n, by.m)
		}
	}
}

// Closing closes a logger and wants all to be delivered, however much a busy machine has left of
// it: patience ends when it holds as much as before for so long.
func Closing(t testing.TB, l *spillway.Logger) spillway.Stats {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	closed := make(chan error, 1)
	go func() { closed <- l.Close(ctx) }()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	have, moved := l.Stats().Held, time.Now()
	for {
		select {
		case err := <-closed:
			if err != nil {
				t.Errorf("Close: %v", err)
			}
			return l.Stats()
		case <-tick.C:
			if now := l.Stats().Held; now != have {
				have, moved = now, time.Now()
			} else if time.Since(moved) > Patience {
				cancel(fmt.Errorf("closing has got nowhere for %v", Patience))
			}
		}
	}
}
