// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/internal/step"
	"github.com/spillwaylog/spillway/journal"
)

// A registry is the other side of an output: it files each chunk once, by its id, and fails now and
// then. With a state it is cut to what its state says, as files are; with tokens it keeps the
// position itself.
type registry struct {
	t *testing.T
	dice
	tired   int // it fails once in so many chunks
	ends    func()
	left    int // chunks until ends is called
	ids     map[string]string
	got     []string
	tokens  [][]byte
	pending []func()
	work    sync.Mutex
}

// A desk is an output that goes to a registry.
type desk struct {
	*registry
	broken bool
	closed bool
}

func (d *desk) submit(token []byte, c *forward.Chunk, state bool, done func(output.Result)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left--; d.left == 0 {
		d.ends()
	}
	first := !d.broken
	d.broken = d.broken || d.r.IntN(d.tired) == 0
	o := &office{}
	o.take(c)
	text, id := fmt.Sprint(o.got), string(c.ID)
	files := !d.broken || first && !state && token == nil && d.r.IntN(2) == 0 // it may have it all the same
	token = slices.Clone(token)
	broken := d.broken
	d.pending = append(d.pending, func() {
		r := output.Result{}
		d.mu.Lock()
		if files && !d.closed {
			was, again := d.ids[id]
			if again && was != text && !state {
				d.t.Errorf("chunk %s had %s, and has %s", id, was, text)
			}
			if !again || state {
				d.ids[id] = text
				d.got = append(d.got, o.got...)
			}
			if token != nil {
				d.tokens = append(d.tokens, token)
			}
			if state {
				r.State = binary.BigEndian.AppendUint32(nil, uint32(len(d.got)))
			}
		}
		if broken || d.closed {
			r = output.Result{Err: fmt.Errorf("it is tired: %w", output.ErrReopen)}
		}
		d.mu.Unlock()
		done(r)
	})
	go d.finish()
}

func (d *desk) finish() {
	d.work.Lock()
	defer d.work.Unlock()
	d.mu.Lock()
	all := d.pending
	d.pending = nil
	d.mu.Unlock()
	for _, done := range all {
		done()
	}
}

func (d *desk) Flush(context.Context) error {
	d.finish()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken {
		return output.ErrReopen
	}
	return nil
}

func (d *desk) Close(context.Context) error {
	d.finish()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	return nil
}

// The desks of each kind.
type (
	plainDesk struct{ *desk }
	stateDesk struct{ *desk }
	tokenDesk struct{ *desk }
)

func (d plainDesk) Submit(c *forward.Chunk, done func(output.Result)) { d.submit(nil, c, false, done) }

func (d stateDesk) Submit(c *forward.Chunk, done func(output.Result)) { d.submit(nil, c, true, done) }
func (d tokenDesk) Submit(*forward.Chunk, func(output.Result))        { panic("it has a place") }

func (d tokenDesk) SubmitAt(token []byte, c *forward.Chunk, done func(output.Result)) {
	d.submit(token, c, false, done)
}

func (d stateDesk) Resume(_ func([]byte) error, states ...[]byte) error {
	n := 0
	if len(states) > 0 {
		n = int(binary.BigEndian.Uint32(states[0]))
	}
	if n > len(d.got) {
		d.t.Errorf("its state says %d, and it has %d", n, len(d.got))
		return nil
	}
	d.got = d.got[:n]
	return nil
}

func (d tokenDesk) Restore(context.Context, output.Refuse) ([]byte, bool, error) {
	if len(d.tokens) == 0 {
		return nil, false, nil
	}
	return d.tokens[len(d.tokens)-1], true, nil
}

// TestSieveRemembers: throttle and dedup leave out the same as if nothing had happened, whatever
// fails, wherever the process ends, and however far the cursor was behind then.
func TestSieveRemembers(t *testing.T) {
	for kind, open := range map[string]func(d *desk) output.Output{
		"plain":         func(d *desk) output.Output { return plainDesk{d} },
		"with a state":  func(d *desk) output.Output { return stateDesk{d} },
		"transactional": func(d *desk) output.Output { return tokenDesk{d} },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			seeds(t, 30, 60, func(t *testing.T, r *rand.Rand) {
				synctest.Test(t, func(t *testing.T) { remembered(t, r, kind, open) })
			})
		})
	}
}

func remembered(t *testing.T, r *rand.Rand, kind string, open func(*desk) output.Output) {
	some := []step.Step{
		{Drop: "k == 6"},
		{Throttle: &step.Throttle{
			Events: int64(1 + r.IntN(4)), Per: time.Hour, By: []string{"k"},
			Keys: int64(1 + r.IntN(4)), Count: "more",
		}},
	}
	if kind != "transactional" && r.IntN(2) == 0 {
		some = append(some, step.Step{Tag: "x.{k|5}"})
	}
	list := []step.Route{
		{Match: "none.**"},
		{Match: "all", To: []string{"o"}},
		{Match: "few.*", To: []string{"o"}, Do: []step.Step{{Dedup: &step.Dedup{
			Window: time.Second,
			By:     []string{"k", "tag"}, Keys: 3,
		}}}},
		{Match: "**", To: []string{"o"}, Do: some},
	}
	routes, err := step.Read(list, []string{"o"}, 1<<20, nil)
	must(t, err)
	oracle := routes.For("o")
	d := &disk{}
	j := openJournal(t, t.TempDir(), d)
	defer j.Close()
	for _, name := range []string{"out", "hold"} {
		hold, err := j.Reader(name)
		must(t, err)
		must(t, hold.Close())
	}
	far := &registry{
		t: t, dice: dice{r: rand.New(rand.NewPCG(r.Uint64(), 0))}, ids: map[string]string{},
		tired: 5 + r.IntN(100),
	}
	var want []string
	next, rounds, piece := 0, 2+r.IntN(5), int64(60+r.IntN(400))
	for round := range rounds {
		for range r.IntN(12) {
			tag := []string{"none.x", "all", "some", "few.x", "few.y"}[r.IntN(5)]
			n := 1 + r.IntN(60)
			c := kinded(tag, next, n)
			var out step.Sifted
			switch oracle.Takes(tag) {
			case step.All:
				want = append(want, offices(c)...)
			case step.Some:
				must(t, oracle.Sift(&out, tag, c.Entries, 1, 0))
				at := 0
				for _, run := range out.Runs {
					want = append(want, offices(&forward.Chunk{Tag: run.Tag, Entries: out.Entries[at:run.End]})...)
					at = run.End
				}
			}
			if r.IntN(3) == 0 {
				c = zipped(c)
			}
			next += n
			appendChunk(t, j, c)
		}
		syncAll(t, j)
		last := round == rounds-1
		ctx, cancel := context.WithCancel(t.Context())
		drain, end := context.WithCancel(t.Context())
		far.ends, far.left = cancel, 1+r.IntN(60)
		if last {
			far.tired = 1 << 30
			far.left = -1
		}
		if last || r.IntN(2) == 0 {
			end()
		} else {
			far.left = min(far.left, 3)
			time.AfterFunc(time.Minute, cancel) // where it gets nothing
		}
		type commit struct {
			at    journal.Position
			state []byte
		}
		var commits []commit
		reader := openReader(t, j)
		note := func() {
			if at, state := reader.Committed(); at > 0 { // where there was no journal no cursor can be placed
				commits = append(commits, commit{at, state})
			}
		}
		note()
		f := New(&Config{
			Reader: reader, Piece: piece, Chunks: 1 + r.IntN(20), Sift: routes.For("o"),
			Identify: func(dst []byte, first, last journal.Position) []byte { return fmt.Append(dst, first, last) },
			Open:     func() (output.Output, error) { return open(&desk{registry: far}), nil },
			Passed:   func(journal.Position, Counts) { note() },
			Report:   func(err error) { t.Error(err) },
		})
		must(t, f.Run(ctx, drain))
		cancel()
		end()
		if !last && len(commits) > 0 { // killed some time ago
			c := commits[r.IntN(len(commits))]
			must(t, j.PlaceCursor("out", c.at, c.state))
		}
	}
	if !reflect.DeepEqual(far.got, want) {
		t.Errorf("it got\n%v\nwant\n%v", far.got, want)
	}
}

func offices(c *forward.Chunk) []string {
	o := &office{}
	o.take(c)
	return o.got
}

// TestSieveStates: a state of steps stands before the output's own, and one that is not readable is
// told: steps and output begin without one.
func TestSieveStates(t *testing.T) {
	for _, own := range []string{"", "own", stateMagic, stateMagic + "\x05"} {
		for _, steps := range []string{"", "steps"} {
			packed := packState(nil, []byte(steps), []byte(own))
			a, b, err := unpackState(packed)
			if err != nil || string(a) != steps || string(b) != own {
				t.Errorf("%q and %q: %q, %q, %v", steps, own, a, b, err)
			}
		}
	}
	routes, err := step.Read([]step.Route{{
		Match: "**", To: []string{"o"},
		Do: []step.Step{{Dedup: &step.Dedup{Window: time.Hour, By: []string{"k"}}}},
	}}, []string{"o"}, 1<<20, nil)
	must(t, err)
	for name, tt := range map[string]struct {
		state string
		told  []error
		own   string
	}{
		"of another version": {"own", nil, "own"},
		"length":             {stateMagic + "\x7fx", []error{errState}, ""},
		"steps": {
			string(packState(nil, []byte("\x01\x01x"), []byte("own"))),
			[]error{step.ErrState},
			"own",
		},
		"nothing of the step": {string(packState(nil, []byte{1, 0}, []byte("own"))), nil, "own"},
	} {
		synctest.Test(t, func(t *testing.T) {
			j := openJournal(t, t.TempDir(), &disk{})
			defer j.Close()
			must(t, j.PlaceCursor("out", 0, []byte(tt.state)))
			appendChunk(t, j, kinded("t", 0, 50))
			syncAll(t, j)
			o := &keeps{office: office{}}
			var told []error
			f := New(&Config{
				Reader: openReader(t, j), Sift: routes.For("o"), Open: func() (output.Output, error) { return o, nil },
				Report: func(err error) { told = append(told, err) },
			})
			drain, end := context.WithCancel(t.Context())
			end()
			must(t, f.Open(t.Context()))
			must(t, o.save([]byte("new")))
			_, state := f.cfg.Reader.Committed()
			before, _, _ := unpackState([]byte(tt.state))
			if steps, own, err := unpackState(state); err != nil || string(steps) != string(before) ||
				string(own) != "new" {
				t.Errorf("%s: a state that is saved leaves %q and %q, %v", name, steps, own, err)
			}
			must(t, f.Run(t.Context(), drain))
			if !slices.EqualFunc(told, tt.told, errors.Is) || o.resumed != tt.own || len(o.got) != 6 {
				t.Errorf("%s: told %v, resumed with %q, got %v", name, told, o.resumed, o.got)
			}
		})
	}
}

// keeps is an office that notes the state that it is resumed with.
type keeps struct {
	office
	resumed string
	save    func([]byte) error
}

func (o *keeps) Resume(save func([]byte) error, states ...[]byte) error {
	o.save = save
	for _, s := range states {
		o.resumed += string(s)
	}
	return nil
}

// FuzzUnpackState: no state of a cursor does more than be refused.
func FuzzUnpackState(f *testing.F) {
	f.Add([]byte(stateMagic + "\x02xyz"))
	f.Add([]byte("own"))
	f.Fuzz(func(t *testing.T, state []byte) {
		steps, own, err := unpackState(state)
		if err != nil {
			return
		}
		a, b, err := unpackState(packState(nil, steps, own))
		if err != nil || string(a) != string(steps) || string(b) != string(own) {
			t.Errorf("%q, %q: %q, %q, %v", steps, own, a, b, err)
		}
	})
}

// TestSieveRemembersGivenUp: what an output is too far behind for has been seen, once, also if it
// is a dead letter only at the second try.
func TestSieveRemembersGivenUp(t *testing.T) {
	routes, err := step.Read([]step.Route{{Match: "**", To: []string{"o"}, Do: []step.Step{
		{Throttle: &step.Throttle{Events: 2, Per: time.Hour, By: []string{"k"}}},
	}}}, []string{"o"}, 1<<20, nil)
	must(t, err)
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, t.TempDir(), &disk{})
		defer j.Close()
		reader := openReader(t, j)
		first := appendChunk(t, j, kinded("t", 0, 5)) // kinds 0 0 1 3 5
		second := appendChunk(t, j, kinded("t", 0, 5))
		last := appendChunk(t, j, kinded("t", 0, 12)) // and 1 5 2 0 6 5 5
		syncAll(t, j)
		o := &office{}
		tries, opens := 0, 0
		var told Counts
		drain, end := context.WithCancel(t.Context())
		f := New(&Config{
			Reader: reader, Sift: routes.For("o"),
			Open: func() (output.Output, error) {
				if opens++; reader.Pos() < second {
					return nil, fmt.Errorf("it is away: %w", output.ErrReopen)
				}
				return plainOffice{o}, nil
			},
			Behind: &Behind{Reason: "behind", Over: func(at journal.Position) func(journal.Position) bool {
				if at >= second {
					return nil
				}
				return func(at journal.Position) bool { return at >= second }
			}},
			Refuse: func(_ context.Context, all []Refused) error {
				if tries++; tries < 3 {
					return errors.New("the box is full")
				}
				if len(all) != 2 || all[0].Position != first || len(all[0].Entries) != 5 || len(all[1].Entries) != 3 {
					t.Errorf("dead letters: %+v", all)
				}
				return nil
			},
			Passed: func(p journal.Position, n Counts) {
				if told.add(&n); p >= last {
					end()
				}
			},
		})
		must(t, f.Run(t.Context(), drain))
		if want := []string{"t 7", "t 9"}; !slices.Equal(o.got, want) { // the first two of the kinds 2 and 6
			t.Errorf("it got %v, want %v", o.got, want)
		}
		if told.Out != int64(len(o.got)) || told.Aside != 8 || told.Out+told.Aside+told.Filtered != 22 || tries != 3 ||
			opens == 0 {
			t.Errorf("%+v, %d tries", told, tries)
		}
	})
}

// TestStateToldAgain: a state that is not readable is told once, and one of a later commit anew.
func TestStateToldAgain(t *testing.T) {
	routes, err := step.Read([]step.Route{{
		Match: "**", To: []string{"o"},
		Do: []step.Step{{Dedup: &step.Dedup{Window: time.Hour, By: []string{"k"}}}},
	}}, []string{"o"}, 1<<20, nil)
	must(t, err)
	j := openJournal(t, t.TempDir(), &disk{})
	defer j.Close()
	broken := packState(nil, []byte("\x01\x01x"), nil)
	must(t, j.PlaceCursor("out", 0, broken))
	told := 0
	f := New(&Config{
		Reader: openReader(t, j), Sift: routes.For("o"), Open: func() (output.Output, error) { return &keeps{}, nil },
		Report: func(error) { told++ }, Passed: func(journal.Position, Counts) {},
	})
	for want := 1; want <= 2; want++ {
		for range 3 {
			must(t, f.flow.back())
		}
		if told != want {
			t.Errorf("told %d times, want %d", told, want)
		}
		must(t, f.committer.move(t.Context()))
		must(t, f.flow.back())
		if told != want {
			t.Errorf("told of a state that is readable")
		}
		must(t, f.cfg.Reader.Commit(f.committed, broken))
	}
	must(t, f.Close())
}
