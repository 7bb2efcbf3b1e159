// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/internal/step"
	"github.com/spillwaylog/spillway/journal"
	"github.com/spillwaylog/spillway/msgpack"
)

// appendKinded appends an event of a kind, 0 to 6; one of kind 5 does not say it.
func appendKinded(b []byte, n int) []byte {
	b = append(b, 0x92)
	b = msgpack.AppendInt(b, 1_700_000_000)
	if k := kindOf(n); k != 5 {
		b = msgpack.AppendMapHeader(b, 2)
		b = msgpack.AppendInt(msgpack.AppendString(b, "k"), int64(k))
	} else {
		b = msgpack.AppendMapHeader(b, 1)
	}
	return msgpack.AppendInt(msgpack.AppendString(b, "n"), int64(n))
}

// kindOf is the kind of an event: some stand together.
func kindOf(n int) int { return n * n / 3 % 7 }

func kinded(tag string, first, n int) *forward.Chunk {
	c := &forward.Chunk{Tag: tag, Events: n}
	for i := range n {
		c.Entries = appendKinded(c.Entries, first+i)
	}
	return c
}

// An office keeps what it gets, by tag and number. It gives a state only with the last of what it
// does at once, as files do.
type office struct {
	work, mu sync.Mutex
	pending  []func(output.Result)
	got      []string
	ids      []string
	state    byte
	longest  int // of what it got, in bytes
}

func (o *office) take(c *forward.Chunk) {
	r := forward.ReadEntries(c.Entries)
	for e, ok := r.Next(); ok; e, ok = r.Next() {
		v, _ := forward.Record(e.Record).Get("n")
		n, _ := v.Int()
		o.got = append(o.got, fmt.Sprintf("%s %d", c.Tag, n))
	}
	o.ids = append(o.ids, string(c.ID))
	o.longest = max(o.longest, len(c.Entries))
}

func (o *office) Submit(c *forward.Chunk, done func(output.Result)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.take(c)
	o.pending = append(o.pending, done)
	go o.finish()
}

func (o *office) finish() {
	o.work.Lock()
	defer o.work.Unlock()
	o.mu.Lock()
	all := o.pending
	o.pending = nil
	o.mu.Unlock()
	for i, done := range all {
		r := output.Result{}
		if i == len(all)-1 {
			o.state++
			r.State = []byte{o.state}
		}
		done(r)
	}
}

func (o *office) Flush(context.Context) error { o.finish(); return nil }
func (o *office) Close(context.Context) error { o.finish(); return nil }

func (o *office) Resume(func([]byte) error, ...[]byte) error { return nil }

// A plainOffice has no state, a placedOffice keeps the position itself.
type (
	plainOffice  struct{ *office }
	placedOffice struct {
		*office
		token []byte
	}
)

func (o plainOffice) Resume() {}

func (o *placedOffice) Resume() {}

func (o *placedOffice) SubmitAt(token []byte, c *forward.Chunk, done func(output.Result)) {
	if slices.Compare(token, o.token) <= 0 {
		panic("a token is not greater than the one before")
	}
	o.token = slices.Clone(token)
	o.Submit(c, done)
}

func (o *placedOffice) Restore(context.Context, output.Refuse) ([]byte, bool, error) {
	return o.token, o.token != nil, nil
}

// TestSieve follows records by routes, over restarts: outputs of each kind get what is meant for
// them, in order, all is counted, and the cursor comes to the end, whatever ends there.
func TestSieve(t *testing.T) {
	for kind, open := range map[string]func(o *placedOffice) output.Output{
		"plain":         func(o *placedOffice) output.Output { return plainOffice{o.office} },
		"with a state":  func(o *placedOffice) output.Output { return o.office },
		"transactional": func(o *placedOffice) output.Output { return o },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			seeds(t, 20, 150, func(t *testing.T, r *rand.Rand) {
				synctest.Test(t, func(t *testing.T) { sieved(t, r, kind, open) })
			})
		})
	}
}

func sieved(t *testing.T, r *rand.Rand, kind string, open func(o *placedOffice) output.Output) {
	do := []step.Step{{Drop: "k == 6"}, {Tag: "x.{k}"}}
	fails := r.IntN(2) == 0
	if kind == "transactional" {
		do = []step.Step{{Drop: "k == 6"}}
		if fails { // for all that have a kind
			do = append(do, step.Step{Set: step.Values{{Field: "k.x", Value: 1}}})
		}
	}
	if r.IntN(2) == 0 {
		do = append(do, step.Step{Set: step.Values{{Field: "pad", Value: strings.Repeat("x", 200)}}})
	}
	routes, err := step.Read([]step.Route{
		{Match: "none.**"},
		{Match: "all", To: []string{"o"}},
		{Match: "**", To: []string{"o"}, Do: do, OnError: "letter"},
	}, []string{"o"}, 1<<20, nil)
	must(t, err)
	d := &disk{}
	j := openJournal(t, t.TempDir(), d)
	defer j.Close()
	for _, name := range []string{"out", "again"} { // both begin with the first record
		hold, err := j.Reader(name)
		must(t, err)
		must(t, hold.Close())
	}

	far := &placedOffice{office: &office{}}
	var want, letters, wantLetters []string
	var told Counts
	events, next := 0, 0
	var last journal.Position
	piece := int64(60 + r.IntN(400))
	for range 1 + r.IntN(4) {
		for range r.IntN(8) {
			tag := []string{"none.x", "all", "some", "some.y"}[r.IntN(4)]
			n := 1 + r.IntN(60)
			c := kinded(tag, next, n)
			for i := next; i < next+n; i++ {
				switch k := kindOf(i); {
				case tag == "none.x":
				case tag == "all":
					want = append(want, fmt.Sprint("all ", i))
				case k == 6:
				case kind == "transactional" && k != 5 && fails:
					wantLetters = append(wantLetters, fmt.Sprint(tag, " ", i))
				case kind == "transactional":
					want = append(want, fmt.Sprint(tag, " ", i))
				case k == 5:
					wantLetters = append(wantLetters, fmt.Sprint(tag, " ", i))
				default:
					want = append(want, fmt.Sprintf("x.%d %d", k, i))
				}
			}
			if r.IntN(3) == 0 {
				c = zipped(c)
			}
			next += n
			events += n
			last = appendChunk(t, j, c)
		}
		syncAll(t, j)
		var at journal.Position
		f := New(&Config{
			Reader: openReader(t, j), Piece: piece, Chunks: 1 + r.IntN(20), Sift: routes.For("o"),
			Identify: func(dst []byte, first, last journal.Position) []byte { return fmt.Append(dst, first, last) },
			Open:     func() (output.Output, error) { return open(far), nil },
			Passed:   func(p journal.Position, n Counts) { at = p; told.add(&n) },
			Refuse: func(_ context.Context, all []Refused) error {
				if r.IntN(3) == 0 {
					return errors.New("the box is full")
				}
				for i := range all {
					o := &office{}
					o.take(all[i].Chunk)
					letters = append(letters, o.got...)
				}
				return nil
			},
		})
		before, _ := f.cfg.Reader.Committed()
		drain, end := context.WithCancel(t.Context())
		end()
		must(t, f.Run(t.Context(), drain))
		if at != last && before != last {
			t.Errorf("the cursor stands at %v, want %v", at, last)
		}
	}
	if !reflect.DeepEqual(far.got, want) {
		t.Errorf("it got\n%v\nwant\n%v", far.got, want)
	}
	if kind != "transactional" && int64(far.longest) > 2*piece+300 {
		t.Errorf("a chunk has %d bytes; a piece has %d", far.longest, piece)
	}
	slices.Sort(letters)
	slices.Sort(wantLetters)
	if !slices.Equal(letters, wantLetters) {
		t.Errorf("dead letters\n%v\nwant\n%v", letters, wantLetters)
	}
	if told.Out != int64(len(want)) || told.Refused != int64(len(wantLetters)) ||
		told.Filtered != int64(events-len(want)-len(wantLetters)) {
		t.Errorf("%d events, %d for it, %d dead letters; told: %+v", events, len(want), len(wantLetters), told)
	}
	if kind == "transactional" { // its cursor is lost: the token says where it stands, and all is counted
		reader, err := j.Reader("again")
		must(t, err)
		var again Counts
		f := New(&Config{
			Reader: reader, Sift: routes.For("o"), Open: func() (output.Output, error) { return far, nil },
			Passed: func(_ journal.Position, n Counts) { again.add(&n) },
		})
		drain, end := context.WithCancel(t.Context())
		end()
		must(t, f.Run(t.Context(), drain))
		if again.Out != told.Out || again.Refused != told.Refused || again.Filtered != told.Filtered ||
			len(far.got) != len(want) {
			t.Errorf("told again: %+v, not %+v; it has %d events, not %d", again, told, len(far.got), len(want))
		}
	}
	slices.Sort(far.ids)
	if n := len(slices.Compact(slices.Clone(far.ids))); n != len(far.ids) {
		t.Errorf("%d chunks have %d ids", len(far.ids), n)
	}
}

// TestSieveBroken: where steps find that a long record in memory is none, what came before it is
// kept, the rest is counted, the memory is let go of, and the next record comes.
func TestSieveBroken(t *testing.T) {
	routes, err := step.Read([]step.Route{{Match: "**", To: []string{"o"}, Do: []step.Step{{Drop: "k == 6"}}}},
		[]string{"o"}, 1<<20, nil)
	must(t, err)
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, t.TempDir(), &disk{})
		defer j.Close()
		memory := &recents{}
		bad := kinded("t", 0, 50)
		bad.Entries = append(append(bad.Entries, 0x92, 1, 1), kinded("t", 50, 50).Entries...)
		bad.Events = 101
		for _, c := range []*forward.Chunk{bad, kinded("t", 100, 50)} {
			memory.add(appendChunk(t, j, c), c)
		}
		syncAll(t, j)
		o := &office{}
		var told Counts
		f := New(&Config{
			Reader: openReader(t, j), Piece: 100, Sift: routes.For("o"), Recent: memory.find,
			Open:   func() (output.Output, error) { return plainOffice{o}, nil },
			Passed: func(_ journal.Position, n Counts) { told.add(&n) },
		})
		drain, end := context.WithCancel(t.Context())
		end()
		must(t, f.Run(t.Context(), drain))
		if told.Out+told.Filtered+told.Unreadable != 151 || told.Broken != 1 || told.Unreadable > 70 ||
			o.got[len(o.got)-1] != "t 149" {
			t.Errorf("%+v, and the last is %s", told, o.got[len(o.got)-1])
		}
		if n := memory.returned(); n != memory.lent {
			t.Errorf("%d chunks were lent, %d came back", memory.lent, n)
		}
	})
}

// TestSieveRetags: an output that keeps its position itself takes no chunk in parts.
func TestSieveRetags(t *testing.T) {
	routes, err := step.Read([]step.Route{{Match: "**", To: []string{"o"}, Do: []step.Step{{Tag: "x"}}}}, []string{"o"},
		1<<20, nil)
	must(t, err)
	j := openJournal(t, t.TempDir(), &disk{})
	defer j.Close()
	f := New(&Config{
		Reader: openReader(t, j), Sift: routes.For("o"),
		Open: func() (output.Output, error) { return &placedOffice{office: &office{}}, nil },
	})
	if err := f.Open(t.Context()); !errors.Is(err, errRetags) {
		t.Error(err)
	}
	must(t, f.Close())
}

// TestSieveGivenUp: of what an output is too far behind for only what is meant for it is given up,
// as steps made it.
func TestSieveGivenUp(t *testing.T) {
	routes, err := step.Read([]step.Route{
		{Match: "none"},
		{Match: "all", To: []string{"o"}},
		{Match: "**", To: []string{"o"}, Do: []step.Step{{Drop: "k == 6"}, {Tag: "x.{k}"}}, OnError: "letter"},
	}, []string{"o"}, 1<<20, nil)
	must(t, err)
	for _, reason := range []string{"", "behind"} {
		synctest.Test(t, func(t *testing.T) {
			j := openJournal(t, t.TempDir(), &disk{})
			defer j.Close()
			reader := openReader(t, j)
			var last journal.Position
			for i, tag := range []string{"none", "all", "some", "none", "some"} {
				c := kinded(tag, 50*i, 50)
				if i%2 == 0 {
					c = zipped(c)
				}
				last = appendChunk(t, j, c)
			}
			syncAll(t, j)
			var want []string
			filtered := int64(100)
			for n := range 250 {
				switch k := kindOf(n); {
				case n/50 == 1:
					want = append(want, fmt.Sprint("all ", n))
				case n/50 == 0 || n/50 == 3:
				case k == 6:
					filtered++
				case k == 5:
					want = append(want, fmt.Sprint("some ", n))
				default:
					want = append(want, fmt.Sprintf("x.%d %d", k, n))
				}
			}
			var told Counts
			var letters []string
			ctx, stop := context.WithCancel(t.Context())
			f := New(&Config{
				Reader: reader, Sift: routes.For("o"),
				Open: func() (output.Output, error) { return nil, errors.New("it is away") },
				Behind: &Behind{Reason: reason, Over: func(at journal.Position) func(journal.Position) bool {
					if at >= last {
						return nil
					}
					return func(at journal.Position) bool { return at >= last }
				}},
				Refuse: func(_ context.Context, all []Refused) error {
					for i := range all {
						o := &office{}
						o.take(all[i].Chunk)
						letters = append(letters, o.got...)
					}
					return nil
				},
				Passed: func(p journal.Position, n Counts) {
					if told.add(&n); p >= last {
						stop()
					}
				},
			})
			must(t, f.Run(ctx, t.Context()))
			given := int64(len(want))
			if reason == "" {
				want = nil
			}
			slices.Sort(letters)
			slices.Sort(want)
			if !slices.Equal(letters, want) {
				t.Errorf("dead letters\n%v\nwant\n%v", letters, want)
			}
			if told.Filtered != filtered || told.Dropped+told.Aside != given || (told.Aside > 0) != (reason != "") ||
				told.Out != 0 {
				t.Errorf("filtered %d, given up %d; told: %+v", filtered, given, told)
			}
		})
	}
}
