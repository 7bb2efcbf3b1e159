// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
)

// landings collects results by the number of the chunk.
type landings struct {
	mu      sync.Mutex
	results map[int]Result
	changed chan struct{}
}

func newLandings() *landings {
	return &landings{results: map[int]Result{}, changed: make(chan struct{})}
}

func (l *landings) done(t *testing.T, i int) func(Result) {
	return func(r Result) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if _, twice := l.results[i]; twice {
			t.Errorf("chunk %d is done twice", i)
		}
		l.results[i] = r
		close(l.changed)
		l.changed = make(chan struct{})
	}
}

// await waits until n chunks are done.
func (l *landings) await(n int) map[int]Result {
	for {
		l.mu.Lock()
		if len(l.results) >= n {
			defer l.mu.Unlock()
			return l.results
		}
		changed := l.changed
		l.mu.Unlock()
		<-changed
	}
}

func readAll(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return string(b)
}

// TestFileInTheWay: while something else is at the path nothing is lost, it is told once, and the
// lines come when it is gone.
func TestFileInTheWay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.jsonl")
	must(t, os.Mkdir(path, 0o700))
	told := make(chan error, 100)
	states := make(chan BreakerState, 100)
	d, err := NewFile(&FileConfig{
		Path: path, MinBackoff: time.Millisecond, MaxBackoff: 2 * time.Millisecond,
		Trip: Trip{Report: func(err error) { told <- err }, Breaker: func(e BreakerEvent) { states <- e.State }},
	})
	must(t, err)
	l := newLandings()
	for i := range 10 {
		d.Submit(chunkOf("app", i*10, 10), l.done(t, i))
	}
	for range 5 { // opened, half open and opened again
		<-states
	}
	must(t, os.Remove(path))
	for i, r := range l.await(10) {
		if r.Err != nil || r.HandedOver || r.MaybeRepeated {
			t.Errorf("%d: %+v", i, r)
		}
	}
	must(t, d.Close(context.Background()))
	checkLines(t, readAll(t, path), 100, 0)
	if err := <-told; !strings.Contains(err.Error(), path) || len(told) != 0 {
		t.Errorf("told %v, and %d more", err, len(told))
	}
}

// TestFileHandler: the handler gets what waits, each chunk once, and what it takes is not written;
// what it does not take is.
func TestFileHandler(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.jsonl")
	must(t, os.Mkdir(path, 0o700))
	var mu sync.Mutex
	offered := map[string]int{}
	refuse := errors.New("no")
	opened := make(chan bool, 100)
	d, err := NewFile(&FileConfig{
		Path: path, MinBackoff: 50 * time.Millisecond,
		Trip: Trip{
			Failures: 2,
			HandleError: func(err error, c *forward.Chunk) error {
				mu.Lock()
				defer mu.Unlock()
				offered[c.Tag]++
				if !strings.Contains(err.Error(), path) {
					t.Errorf("why: %v", err)
				}
				if c.Tag == "keep" {
					if offered[c.Tag] == 1 {
						opened <- true
					}
					return refuse
				}
				return nil
			},
		},
	})
	must(t, err)
	l := newLandings()
	d.Submit(chunkOf("take", 0, 10), l.done(t, 0))
	d.Submit(chunkOf("keep", 0, 10), l.done(t, 1))
	d.Submit(chunkOf("take", 0, 10), l.done(t, 2))
	<-opened
	l.await(2)
	d.Submit(chunkOf("take", 0, 10), l.done(t, 3)) // while it is open
	l.await(3)
	must(t, os.Remove(path))
	for i, r := range l.await(4) {
		if want := i != 1; r.HandedOver != want || r.Err != nil || want && r.State != nil {
			t.Errorf("%d: %+v", i, r)
		}
	}
	must(t, d.Close(context.Background()))
	if got := readAll(t, path); strings.Count(got, "\n") != 10 || strings.Count(got, `"tag":"keep"`) != 10 {
		t.Errorf("got %s", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if offered["take"] != 3 {
		t.Errorf("offered %v", offered)
	}
}

// TestFileClose: what waits is given up, and comes once with the next process.
func TestFileClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.jsonl")
	must(t, os.Mkdir(path, 0o700))
	d, err := NewFile(&FileConfig{Path: path})
	must(t, err)
	l := newLandings()
	for i := range 5 {
		d.Submit(chunkOf("app", i, 1), l.done(t, i))
	}
	must(t, d.Close(context.Background()))
	for i, r := range l.await(5) {
		if !errors.Is(r.Err, ErrClosed) {
			t.Errorf("%d: %+v", i, r)
		}
	}
}

// TestFileMoved: as logrotate does it, by renaming and by copying and truncating; and with the
// directory gone.
func TestFileMoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	path := filepath.Join(dir, "app.jsonl")
	d, err := NewFile(&FileConfig{Path: path})
	must(t, err)
	l := newLandings()
	next := 0
	write := func(want int) {
		t.Helper()
		d.Submit(chunkOf("app", next, 1), l.done(t, next))
		next++
		if r := l.await(next)[next-1]; r.Err != nil || r.State == nil {
			t.Fatalf("%+v", r)
		}
		if got := strings.Count(readAll(t, path), "\n"); got != want {
			t.Fatalf("%d lines, not %d", got, want)
		}
	}
	write(1)
	must(t, os.Rename(path, path+".1"))
	write(1)
	write(2)
	must(t, os.Truncate(path, 0))
	write(1)
	write(2)
	must(t, os.RemoveAll(dir))
	write(1)
	must(t, d.Close(context.Background()))
	if got := readAll(t, path); strings.ContainsRune(got, 0) {
		t.Errorf("got %q", got)
	}
}

// TestFileRestore: what a process that died wrote behind the state it had stored is found, and not
// written again.
func TestFileRestore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.jsonl")
	open := func(states [][]byte, record func([]byte) error) Output {
		d, err := NewFile(&FileConfig{Path: path})
		must(t, err)
		must(t, d.(Resumer).Resume(record, states...))
		return d
	}
	var states [][]byte
	d := open(nil, func(s []byte) error { states = append(states, s); return nil })
	l := newLandings()
	for i := range 20 {
		d.Submit(chunkOf("app", i*100, 100), l.done(t, i))
		if i%3 == 2 {
			l.await(i + 1) // so that it is several writes
		}
	}
	results := l.await(20)
	if len(states) != 1 {
		t.Fatalf("%d records", len(states))
	}
	must(t, d.Close(context.Background()))
	for done := range 21 { // so many chunks were told as done; all are in the file
		stored := states[0]
		if done > 0 {
			stored = results[done-1].State
			if results[done-1].State == nil {
				continue // it is not done yet
			}
		}
		d := open([][]byte{nil, states[0], stored, []byte("unreadable")}, nil)
		l := newLandings()
		for i := done; i < 20; i++ {
			d.Submit(chunkOf("app", i*100, 100), l.done(t, i))
		}
		l.await(20 - done)
		must(t, d.Close(context.Background()))
		checkLines(t, readAll(t, path), 2000, 0)
	}
}

// TestFileWaits: what is submitted waits for the disk, and for nothing else, once its lines are
// made.
func TestFileWaits(t *testing.T) {
	d, err := NewFile(&FileConfig{Path: filepath.Join(t.TempDir(), "{tag}"), Sync: true})
	if err != nil {
		t.Fatal(err)
	}
	w := d.(Waiter)
	disk := make(chan struct{}) // closed: it works again
	must(t, d.(Resumer).Resume(func([]byte) error { <-disk; return nil }, nil))
	if w.Waiting() {
		t.Error("nothing was submitted, and it waits")
	}
	done := make(chan Result, 1)
	d.Submit(chunkOf("a", 0, 3), func(r Result) { done <- r })
	poll(t, w.Waiting)
	select {
	case r := <-done:
		t.Fatalf("it does not wait: %+v", r)
	default:
	}
	close(disk)
	if r := <-done; r.Err != nil {
		t.Error(r.Err)
	}
	poll(t, func() bool { return !w.Waiting() })
	must(t, d.Close(t.Context()))
}
