// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// Tapes are the files of an output with a state, one a tag. They outlive the outputs that write
// them; what is not synced outlives the process, but not the power.
type tapes struct {
	t *testing.T
	dice

	files   map[string][]int
	synced  map[string]int
	records []tapeRecord
	letters map[int]bool
}

// A tapeRecord is a record of the journal.
type tapeRecord struct {
	end    journal.Position
	tag    string
	events []int // that are written
}

// A life is one process: from its start until it is killed.
type life struct {
	*disk
	killed chan struct{}
	left   int // steps until it is killed; 0: it lives on
	faulty bool
}

// step is something that a kill may come before. It reports false to the dead.
func (w *tapes) step(l *life) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.dead.Load() {
		return false
	}
	if l.left--; l.left == 0 {
		l.dead.Store(true)
		close(l.killed)
		return false
	}
	return true
}

// fault says whether something is to fail, once in so many times.
func (w *tapes) fault(l *life, once int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return l.faulty && w.r.IntN(once) == 0
}

// covers checks that a state says exactly what the records up to a position are.
func (w *tapes) covers(what string, p journal.Position, state []byte, synced bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lengths := map[string]int{}
	if len(state) > 0 {
		if err := json.Unmarshal(state, &lengths); err != nil {
			w.t.Error(err)
		}
	}
	want := map[string]int{}
	for _, x := range w.records {
		if x.end <= p && x.tag != "" {
			want[x.tag] += len(x.events)
		}
	}
	for tag, n := range want {
		if lengths[tag] != n {
			w.t.Errorf("%s: the cursor is at %v, where %s has %d events, and its state says %d", what, p, tag, n,
				lengths[tag])
		}
	}
	for tag, n := range lengths {
		if n > want[tag] || synced && n > w.synced[tag] {
			w.t.Errorf("%s: the state says %d of %s; %d belong there, %d are synced", what, n, tag, want[tag],
				w.synced[tag])
		}
	}
}

// A tape is an output that writes tapes.
type tape struct {
	*tapes
	*life
	save func([]byte) error

	lock    sync.Mutex
	changed *sync.Cond
	queue   []tapeJob
	busy    bool
	broken  error
	closed  bool
	over    chan struct{} // closed by run

	known map[string]int // as of the last Flush, and files that were begun since
	now   map[string]int // where the next event goes
}

type tapeJob struct {
	chunk *forward.Chunk
	done  func(output.Result)
}

func (w *tapes) open(l *life) (output.Output, error) {
	if w.fault(l, 3) {
		return nil, errors.New("its folder is away")
	}
	o := &tape{tapes: w, life: l, over: make(chan struct{}), known: map[string]int{}}
	o.changed = sync.NewCond(&o.lock)
	return o, nil
}

func (o *tape) Resume(save func([]byte) error, states ...[]byte) error {
	for _, state := range states {
		if err := json.Unmarshal(state, &o.known); err != nil {
			return err
		}
	}
	for tag, n := range o.known {
		if len(o.files[tag]) < n {
			o.t.Errorf("%s has %d events, and its state says %d", tag, len(o.files[tag]), n)
		}
	}
	o.save, o.now = save, maps.Clone(o.known)
	go o.run()
	return nil
}

func (o *tape) Submit(c *forward.Chunk, done func(output.Result)) {
	o.lock.Lock()
	defer o.changed.Broadcast()
	defer o.lock.Unlock()
	if err := o.broken; err != nil {
		go done(output.Result{Err: err})
		return
	}
	o.queue = append(o.queue, tapeJob{c, done})
}

// run is the writer.
func (o *tape) run() {
	defer close(o.over)
	for {
		o.lock.Lock()
		for len(o.queue) == 0 && !o.closed && o.broken == nil {
			o.changed.Wait()
		}
		if o.closed || o.broken != nil {
			o.lock.Unlock()
			return
		}
		batch := slices.Clone(o.queue[:min(len(o.queue), 1+o.random(8))])
		o.queue = o.queue[len(batch):]
		last := len(o.queue) == 0
		o.busy = true
		o.lock.Unlock()
		err := o.write(batch)
		for i, job := range batch {
			result := output.Result{Err: err, Soon: o.random(50) == 0}
			if err == nil && last && i == len(batch)-1 {
				result.State = o.state(o.now)
			}
			for k, n := range numbers(job.chunk) {
				if refuses(n) {
					result.Rejected = append(result.Rejected, output.Rejected{Entry: k, Err: errors.New("no")})
				}
			}
			if !o.step(o.life) {
				return
			}
			job.done(result)
		}
		o.lock.Lock()
		o.busy = false
		if err != nil {
			o.ruinLocked(err)
		}
		o.changed.Broadcast()
		o.lock.Unlock()
	}
}

func (o *tape) ruinLocked(err error) {
	o.broken = err
	for _, job := range o.queue {
		job.done(output.Result{Err: err})
	}
	o.queue = nil
}

func refuses(n int) bool { return n%17 == 3 }

func (o *tape) state(of map[string]int) []byte {
	b, err := json.Marshal(of)
	must(o.t, err)
	return b
}

// write writes the events of a batch, each by itself.
func (o *tape) write(batch []tapeJob) error {
	for _, job := range batch {
		if o.fault(o.life, 100) {
			return fmt.Errorf("torn: %w", output.ErrReopen)
		}
		tag := job.chunk.Tag
		for _, n := range numbers(job.chunk) {
			if refuses(n) {
				continue
			}
			if o.random(10) == 0 {
				rest(time.Duration(o.random(40)) * time.Millisecond)
			}
			if _, known := o.known[tag]; !known {
				o.known[tag] = len(o.files[tag]) // what is in it is not known to be ours
				for err := o.save(o.state(o.known)); err != nil; err = o.save(o.state(o.known)) {
					if !o.step(o.life) || o.isClosed() {
						return output.ErrClosed
					}
					rest(time.Millisecond)
				}
				o.now[tag] = o.known[tag]
			}
			if !o.step(o.life) {
				return output.ErrClosed
			}
			o.put(tag, n)
		}
	}
	return nil
}

func (o *tape) isClosed() bool {
	o.lock.Lock()
	defer o.lock.Unlock()
	return o.closed
}

func (o *tape) put(tag string, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch at, all := o.now[tag], o.files[tag]; {
	case at == len(all):
		o.files[tag] = append(all, n)
	case at > len(all) || all[at] != n:
		o.t.Errorf("event %d of %s comes as number %d behind %v", n, tag, at, all)
	}
	o.now[tag]++
}

func (o *tape) Flush(ctx context.Context) error {
	defer context.AfterFunc(ctx, o.changed.Broadcast)()
	o.lock.Lock()
	for (len(o.queue) > 0 || o.busy) && o.broken == nil && ctx.Err() == nil {
		o.changed.Wait()
	}
	err := o.broken
	o.lock.Unlock()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	if o.fault(o.life, 10) {
		return errors.New("not now")
	}
	if o.fault(o.life, 10) {
		return fmt.Errorf("no sync: %w", output.ErrReopen)
	}
	if !o.step(o.life) {
		return errDead
	}
	o.mu.Lock()
	for tag, events := range o.files {
		o.synced[tag] = len(events)
	}
	o.mu.Unlock()
	o.known = maps.Clone(o.now)
	if !o.step(o.life) {
		return errDead
	}
	return nil
}

func (o *tape) Close(context.Context) error {
	o.lock.Lock()
	o.closed = true
	o.lock.Unlock()
	o.changed.Broadcast()
	<-o.over
	o.lock.Lock()
	defer o.lock.Unlock()
	if !o.dead.Load() {
		o.ruinLocked(output.ErrClosed)
	}
	return nil
}

// TestTape follows with an output that has a state, while processes are killed, powers are cut, and
// everything fails now and then: each event is there once in the end.
func TestTape(t *testing.T) {
	for _, power := range []bool{false, true} {
		t.Run(fmt.Sprint("power=", power), func(t *testing.T) {
			seeds(t, 8, 40, func(t *testing.T, r *rand.Rand) {
				synctest.Test(t, func(t *testing.T) { winds(t, r, power) })
			})
		})
	}
}

func winds(t *testing.T, r *rand.Rand, power bool) {
	w := &tapes{t: t, dice: dice{r: r}, files: map[string][]int{}, synced: map[string]int{}, letters: map[int]bool{}}
	dir := t.TempDir()
	want := map[string][]int{}
	refused := map[int]bool{}
	j := openJournal(t, dir, &disk{})
	for i, first := 0, 0; i < 300; i++ {
		if r.IntN(20) == 0 {
			p, err := j.Append([]byte("this is no chunk"))
			must(t, err)
			w.records = append(w.records, tapeRecord{end: p})
			continue
		}
		c := numbered(fmt.Sprint("tag", r.IntN(1+i/20)), first, 1+r.IntN(4))
		var events []int
		for _, n := range numbers(c) {
			if refuses(n) {
				refused[n] = true
			} else {
				events = append(events, n)
			}
		}
		want[c.Tag] = append(want[c.Tag], events...)
		w.records = append(w.records, tapeRecord{appendChunk(t, j, c), c.Tag, events})
		first += c.Events
	}
	must(t, j.Close())
	kills, done := 0, false
	for lives := 0; !done; lives++ {
		l := &life{disk: &disk{}, killed: make(chan struct{}), faulty: lives < 25}
		if lives < 25 {
			l.left = 1 + w.random(300)
		}
		done = w.live(l, dir)
		if !l.dead.Load() {
			continue
		}
		kills++
		if power {
			for tag := range w.files {
				n := w.synced[tag]
				w.files[tag] = w.files[tag][:n+w.random(len(w.files[tag])-n+1)]
			}
		}
	}
	t.Logf("killed %d times", kills)
	for tag, all := range want {
		if !slices.Equal(w.files[tag], all) {
			t.Errorf("%s has %v, want %v", tag, w.files[tag], all)
		}
	}
	if !maps.Equal(w.letters, refused) {
		t.Errorf("dead letters %v, want %v", w.letters, refused)
	}
}

// live follows until it is killed, stopped, or through with the journal.
func (w *tapes) live(l *life, dir string) (through bool) {
	armed := make(chan struct{})
	l.cursor = func() error {
		select {
		case <-armed:
		default:
			return nil
		}
		if !w.step(l) {
			return errDead
		}
		if w.fault(l, 10) {
			return errors.New("the cursor's disk is full")
		}
		return nil
	}
	j := openJournal(w.t, dir, l.disk)
	reader := openReader(w.t, j)
	close(armed)
	f := New(&Config{
		Reader: reader,
		Open: func() (output.Output, error) {
			p, state := reader.Committed()
			w.covers("opening", p, state, true)
			return w.open(l)
		},
		Eager: w.random(2) == 0, Chunks: 1 + w.random(50),
		Refuse: func(_ context.Context, all []Refused) error {
			if !w.step(l) {
				return errDead
			}
			if w.fault(l, 3) {
				return errors.New("the letter box is full")
			}
			for i := range all {
				for _, n := range numbers(all[i].Chunk) {
					w.letters[n] = true
				}
			}
			return nil
		},
		Passed: func(p journal.Position, _ Counts) {
			at, state := reader.Committed()
			if at != p {
				w.t.Errorf("passed %v, and the cursor is at %v", p, at)
			}
			w.covers("passing", p, state, true)
		},
	})
	ctx, stop := context.WithCancel(w.t.Context())
	defer stop()
	if l.left > 0 && w.random(3) == 0 { // it is stopped in order, if it lives so long
		ctx, stop = context.WithTimeout(ctx, time.Duration(w.random(3000))*time.Millisecond)
		defer stop()
	}
	drain, ended := context.WithCancel(ctx)
	ended()
	over := make(chan error)
	go func() { over <- f.Run(ctx, drain) }()
	var err error
	select {
	case <-l.killed:
		stop()
		<-over
	case err = <-over:
	}
	through = ctx.Err() == nil
	if closed := j.Close(); !l.dead.Load() && (err != nil && through || closed != nil) {
		w.t.Error(err, closed)
	}
	return through
}
