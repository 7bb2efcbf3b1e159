// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// A write to the disk that outlasts the mover leaves no spill that only it knows: a successor may
// have looked for spills already, and what the write had is under marks in the ring.
func TestWritesTooLate(t *testing.T) {
	for _, at := range []string{"spilling", "appended", "flushed"} {
		for _, late := range []bool{false, true} { // later than a successor's life, too
			mem, dir := shmDir(t), t.TempDir()
			reached, hang := make(chan struct{}), make(chan struct{})
			var once atomic.Bool
			d := &fake{answer: later}
			f := open(t, d, func(c *Config) {
				c.Shm, c.Dir = mem, dir
				c.fault = func(where string) {
					if where == at && once.CompareAndSwap(false, true) {
						close(reached)
						<-hang
					}
				}
			})
			f.must("a", 1, 0, 700, 1000)
			<-reached
			var left *UndeliveredError
			if err := f.m.Close(within(t, 10*time.Millisecond)); !errors.As(err, &left) {
				t.Errorf("%s: Close: %v", at, err)
			}
			<-f.m.ended
			if !late {
				time.AfterFunc(100*time.Millisecond, func() { close(hang) })
			}
			next := &fake{}
			open(t, next, func(c *Config) { c.Shm, c.Dir = mem, dir }).close()
			if late {
				close(hang)
			}
			<-f.m.disk.rest()
			ordered(t, append(d.all(), next.all()...), map[uint32]uint32{1: 700})
			if names := append(entriesOf(t, mem), entriesOf(t, dir)...); len(names) > 0 {
				t.Errorf("%s, late %t: left %q", at, late, names)
			}
		}
	}
}

// Such a spill stays where nobody can adopt the ring any more: it is the only copy.
func TestWritesTooLateAlone(t *testing.T) {
	for name, spoil := range map[string]func(ring string) error{
		"removed": os.RemoveAll,
		"cut":     func(ring string) error { return os.Truncate(filepath.Join(ring, "ring"), 4096) },
	} {
		mem, dir := shmDir(t), t.TempDir()
		reached, hang := make(chan struct{}), make(chan struct{})
		var once atomic.Bool
		f := open(t, &fake{answer: later}, func(c *Config) {
			c.Shm, c.Dir = mem, dir
			c.fault = func(where string) {
				if where == "spilling" && once.CompareAndSwap(false, true) {
					close(reached)
					<-hang
				}
			}
		})
		f.must("a", 1, 0, 700, 1000)
		<-reached
		if err := spoil(filepath.Join(mem, entriesOf(t, mem)[0])); err != nil {
			t.Fatal(err)
		}
		_ = f.m.Close(within(t, 10*time.Millisecond)) // says what is left, as far as it knows
		<-f.m.ended
		close(hang)
		<-f.m.disk.rest()
		next := &fake{}
		open(t, next, func(c *Config) { c.Shm, c.Dir = mem, dir }).close()
		if len(next.all()) == 0 {
			t.Errorf("%s: what was spilled is lost", name)
		}
	}
}
