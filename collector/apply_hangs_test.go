// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
)

// stuck is an output that returns from nothing before it is set free.
type stuck struct {
	free  chan struct{}
	holds chan struct{} // gets something when it has been given a chunk; holds one
}

func newStuck() *stuck { return &stuck{free: make(chan struct{}), holds: make(chan struct{}, 1)} }

func (s *stuck) Submit(_ *forward.Chunk, done func(Result)) {
	select {
	case s.holds <- struct{}{}:
	default:
	}
	<-s.free
	done(Result{})
}

func (s *stuck) Flush(context.Context) error { return nil }
func (s *stuck) Close(context.Context) error { return nil }

// TestApplyOutputHangs: an output that does not end in time for a change runs on as it was when it
// has ended; another change goes on from there.
func TestApplyOutputHangs(t *testing.T) {
	t.Parallel()
	a := &applied{t: t, dir: t.TempDir()}
	s := newStuck()
	a.conf = Config{
		Dir: filepath.Join(a.dir, "data"), Inputs: []End{{Name: "in", URL: "forward://127.0.0.1:0"}},
		Drain:   time.Minute,
		Outputs: []End{{Name: "one", URL: "keep:a"}}, OutputKinds: keepers(s), RemovedDrain: time.Millisecond,
	}
	conf := a.conf
	a.running = run(t, &conf)
	a.send("in")
	<-s.holds
	a.fails("the output does not return", func(c *Config) { c.Outputs[0].URL = "keep:a?x=1" })
	a.apply(func(*Config) {})
	close(s.free)
	a.settled("one")
	a.send("in")
	a.settled("one")
	a.apply(func(c *Config) { c.Outputs[0].URL = "keep:a?x=2" })
	a.send("in")
	a.settled("one")
	if o := a.Stats().Outputs[0]; o.Out != 15 || o.Removed {
		t.Errorf("%+v", o)
	}
}

// waiter is an input that takes nothing.
type waiter struct{}

func (waiter) Stats() Received { return Received{} }

func (waiter) Run(ctx context.Context, _ Sink) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestApplyInputLost: an input that was ended for a change and could not be opened again is opened
// by the next change that names it.
func TestApplyInputLost(t *testing.T) {
	t.Parallel()
	a := &applied{t: t, dir: t.TempDir()}
	var broken atomic.Bool
	var opened atomic.Int64
	a.conf = Config{
		Dir: filepath.Join(a.dir, "data"), Inputs: []End{{Name: "in", URL: "wait:a"}}, Drain: time.Minute,
		Outputs: Ends("discard:"),
		InputKinds: map[string]InputKind{"wait": func(_ *URL, p *Params) (func(*InputEnv) (Input, error), error) {
			p.String("x", "")
			return func(*InputEnv) (Input, error) {
				if broken.Load() {
					return nil, errors.New("it cannot be opened")
				}
				opened.Add(1)
				return waiter{}, nil
			}, nil
		}},
	}
	conf := a.conf
	a.running = run(t, &conf)
	broken.Store(true)
	a.fails("it cannot be opened", func(c *Config) { c.Inputs[0].URL = "wait:a?x=1" })
	broken.Store(false)
	a.apply(func(*Config) {})
	if n := opened.Load(); n != 2 {
		t.Errorf("opened %d times", n)
	}
	if in := a.Stats().Inputs[0]; in.Removed {
		t.Errorf("%+v", in)
	}
}

// TestApplyHangsAtEnd: a change that does not return holds up no end of the collector, and changes
// nothing when it does.
func TestApplyHangsAtEnd(t *testing.T) {
	t.Parallel()
	a := &applied{t: t, dir: t.TempDir()}
	begun, free := make(chan struct{}), make(chan struct{})
	a.conf = Config{
		Dir: filepath.Join(a.dir, "data"), Inputs: []End{{Name: "in", URL: "forward://127.0.0.1:0"}},
		Drain: time.Minute,
		OutputKinds: map[string]OutputKind{"slow": func(*URL, *Params) (*OutputPlan, error) {
			return &OutputPlan{Open: func(*OutputEnv) (Output, error) {
				close(begun)
				<-free
				return &keeper{does: true}, nil
			}}, nil
		}},
	}
	a.conf.Outputs = []End{a.out("one", "")}
	conf := a.conf
	a.running = run(t, &conf)
	a.send("in")
	applied := make(chan error, 1)
	next := a.conf
	next.Outputs = append(next.Outputs[:1:1], End{Name: "two", URL: "slow:a"})
	go func() { applied <- a.Apply(&next) }()
	<-begun
	a.cancel()
	select {
	case err := <-a.done:
		a.done <- err
		if !errors.Is(err, errChangeHangs) {
			t.Errorf("got %v", err)
		}
	case <-time.After(2 * time.Minute):
		t.Error("the end waits for the change")
	}
	a.wantFile("one", lines5(0))
	close(free)
	if err := <-applied; !errors.Is(err, errOver) {
		t.Errorf("got %v", err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if n := len(a.Stats().Outputs); n != 1 {
		t.Errorf("%d outputs", n)
	}
}

// leaver is an output that is let go of when it is set free.
type leaver struct{ *stuck }

func (l leaver) Close(context.Context) error {
	l.holds <- struct{}{}
	<-l.free
	return nil
}

// TestApplyWaitsBeforeRun: what is removed before the collector runs is gone when Apply returns, so
// that Run does not start it.
func TestApplyWaitsBeforeRun(t *testing.T) {
	t.Parallel()
	l := leaver{newStuck()}
	conf := Config{
		Dir: t.TempDir(), Inputs: Ends("forward://127.0.0.1:0", "lines://127.0.0.1:0"), Drain: time.Minute,
		Outputs: Ends("discard:", "keep:a"), OutputKinds: keepers(l), Log: logTo(testWriter{t}),
	}
	c, err := Open(&conf)
	if err != nil {
		t.Fatal(err)
	}
	gone := c.inputs[1]
	conf.Inputs, conf.Outputs = conf.Inputs[:1], conf.Outputs[:1]
	applied := make(chan error, 1)
	go func() { applied <- c.Apply(&conf) }()
	<-l.holds
	select {
	case err := <-applied:
		t.Errorf("it returned before the output was gone: %v", err)
		applied <- err
	case <-time.After(50 * time.Millisecond):
	}
	close(l.free)
	if err := <-applied; err != nil {
		t.Fatal(err)
	}
	if n := len(c.backlogs.active()); n != 1 {
		t.Errorf("%d outputs are there", n)
	}
	if gone.sink.taking.Err() == nil {
		t.Error("its sink is kept")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Run(ctx); err != nil {
		t.Error(err)
	}
}

// TestApplyKeepsPlaceForNothing: a place is not given up while that would free nothing.
func TestApplyKeepsPlaceForNothing(t *testing.T) {
	t.Parallel()
	a := &applied{t: t, dir: t.TempDir()}
	a.conf = Config{
		Dir: filepath.Join(a.dir, "data"), Inputs: []End{{Name: "in", URL: "forward://127.0.0.1:0"}},
		Drain:   time.Minute,
		Outputs: []End{{Name: "one", URL: "discard:"}, {Name: "two", URL: "discard:"}}, JournalBytes: 2 << 20,
	}
	conf := a.conf
	a.running = run(t, &conf)
	a.send("in")
	a.apply(func(c *Config) { c.Outputs = c.Outputs[:1] })
	a.parked("two")
	open := numbered("t", 100, 1)
	open.ID = []byte("x")
	f := &inFlightGroup{candidates: []candidate{{fingerprint: a.store.repeats.fingerprint(open, "")}}}
	a.store.repeats.begin(f, a.journal.Synced()) // which keeps the cursor of repeats where it is
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for i := range 40 {
			send(t, a.client(t), wide(10*i, 9))
		}
	}()
	waitStats(t, a.running, "the journal is full", func(s *Stats) bool { return s.Journal.Full })
	<-time.After(2 * spacePause)
	s := a.Stats()
	if o := of(t, &s, "two"); len(o.Dropped) > 0 && o.Dropped[placeGivenUp] > 0 {
		t.Errorf("it was given up for nothing: %+v", o)
	}
	a.store.repeats.finish(f)
	<-sent
	s = a.Stats()
	if o := of(t, &s, "two"); o.Dropped[placeGivenUp] == 0 {
		t.Errorf("it was not given up: %+v", o)
	}
}

// meeting is an output that two share. Neither is closed before both are to be.
type meeting struct {
	keeper
	closing atomic.Int64
	both    chan struct{}
}

func (m *meeting) Close(context.Context) error {
	if m.closing.Add(1) == 2 {
		close(m.both)
	}
	<-m.both
	return nil
}

// TestApplyEndsTogether: outputs that change are waited for together.
func TestApplyEndsTogether(t *testing.T) {
	t.Parallel()
	a := &applied{t: t, dir: t.TempDir()}
	m := &meeting{both: make(chan struct{})}
	a.conf = Config{
		Dir: filepath.Join(a.dir, "data"), Inputs: []End{{Name: "in", URL: "forward://127.0.0.1:0"}},
		Drain: 10 * time.Minute, RemovedDrain: time.Minute,
		Outputs: []End{{Name: "one", URL: "keep:a"}, {Name: "two", URL: "keep:b"}}, OutputKinds: keepers(m),
	}
	conf := a.conf
	a.running = run(t, &conf)
	a.apply(func(c *Config) {
		c.Outputs[0].URL, c.Outputs[1].URL = "keep:a?x=1", "keep:b?x=1"
	})
}
