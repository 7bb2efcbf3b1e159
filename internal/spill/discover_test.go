// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"errors"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/journal"
	"github.com/spillwaylog/spillway/ring"
)

// TestSuccessorAwaitsLocks: the kernel may let go of a dead process's ring before it does of its
// spills. The process that adopted the ring waits for all of these, not only for the one of the
// ring's name.
func TestSuccessorAwaitsLocks(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := New(&Options{
			Name: "test", Dir: dir, MaxDisk: 1 << 20, BootID: func() string { return "" },
			Report: func(err error) { t.Error(err) },
		})
		const ring = "test.9999999999.0123456789abcdef" // the last to be met
		var held []*Spill
		for i, mk := range []func(string, time.Time) (*Spill, error){f.MakeWithin, f.Make, f.Make} {
			sp, err := mk(filepath.Join("shm", ring), time.Unix(int64(i), 0))
			if err != nil {
				t.Fatal(err)
			}
			at := make([]journal.Position, 1)
			c := forward.Chunk{Tag: "a", Entries: []byte{0x92, 1, 0x80}, Events: 1}
			if err := errors.Join(sp.Append([]forward.Chunk{c}, at), sp.Flush(at[0])); err != nil {
				t.Fatal(err)
			}
			held = append(held, sp)
		}
		time.AfterFunc(5*retryAfter, func() {
			for _, sp := range held {
				_ = sp.Close() // flushed already
			}
		})
		found := f.Discover([]string{ring})
		if len(found) != len(held) {
			t.Errorf("found %d spills of %d", len(found), len(held))
		}
		for i, sp := range found {
			if sp.Dir != held[i].Dir || !sp.Paired || len(sp.Found) != 1 {
				t.Errorf("found %+v", sp)
			}
			if err := sp.Discard(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestOthersRing: a spill is its ring's successor's, also one that has not the ring's name.
func TestOthersRing(t *testing.T) {
	if runtime.GOOS != "linux" {
		needs.Skip(t, "no shared memory that outlives a process here")
	}
	shm := needs.Shm(t)
	r, err := ring.Open(&ring.Options{Dir: shm, Name: "test", Identity: []byte("same")})
	if err != nil {
		t.Fatal(err)
	}
	f := New(&Options{
		Name: "test", Dir: t.TempDir(), Shm: shm, MaxDisk: 1 << 20, BootID: func() string { return "" },
		Report: func(err error) { t.Error(err) },
	})
	sp, err := f.MakeWithin(r.Path(), time.Now())
	if err == nil {
		err = sp.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, live := range []bool{true, false} {
		found := f.Discover(nil)
		if (len(found) == 0) != live {
			t.Errorf("found %d spills of a ring that lives: %t", len(found), live)
		}
		for _, sp := range found {
			if err := sp.Discard(); err != nil {
				t.Error(err)
			}
		}
		if live {
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
