// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// openTail is a tail of a collector that has nothing but a store, and the function that stores.
func openTail(t testing.TB, o *TailOptions) (*Tail, func(*forward.Chunk)) {
	t.Helper()
	c := &Collector{store: &store{}}
	tail, err := c.Tail(o)
	if err != nil {
		t.Fatal(err)
	}
	return tail, func(chunk *forward.Chunk) { c.store.tails.offer("in", chunk) }
}

// numbersOf collects what a tail shows: of numbered chunks, their tags and numbers.
func numbersOf(t *testing.T, tail *Tail, ticks int) (seen []string, skipped int64) {
	t.Helper()
	for range ticks {
		n, err := tail.Next(t.Context(), func(input, tag string, e *forward.Entry) {
			record, _, err := msgpack.AppendJSON(nil, e.Record, forward.AppendExtJSON)
			if err != nil || input != "in" {
				t.Error(input, err)
			}
			seen = append(seen, tag+string(record))
		})
		if err != nil {
			t.Fatal(err)
		}
		skipped += n
	}
	return seen, skipped
}

// TestTailShows: matching events, only these, and all of them while there is time.
func TestTailShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tail, offer := openTail(t, &TailOptions{Tag: "app.*", Where: "n >= 2 and n < 5"})
		defer tail.Close()
		offer(numbered("app.web", 0, 4))
		offer(numbered("sys", 0, 10))
		offer(numbered("app.db", 3, 10))
		seen, skipped := numbersOf(t, tail, 20)
		want := `app.web{"n":2} app.web{"n":3} app.db{"n":3} app.db{"n":4}`
		if got := strings.Join(seen, " "); got != want || skipped != 0 {
			t.Errorf("%s, %d skipped; want %s", got, skipped, want)
		}
	})
}

// TestTailRate: a second shows no more than the rate, and what is shown and what is skipped is all
// that came.
func TestTailRate(t *testing.T) {
	for _, where := range []string{"", "n >= 0"} {
		synctest.Test(t, func(t *testing.T) {
			tail, offer := openTail(t, &TailOptions{Rate: 50, Where: where})
			defer tail.Close()
			all, shown, skipped := 0, 0, int64(0)
			for second := range 10 {
				perSecond := 0
				for range 10 {
					for range 7 {
						offer(numbered("t", all, 13))
						all += 13
					}
					seen, n := numbersOf(t, tail, 1)
					perSecond += len(seen)
					skipped += n
				}
				if most := 50; second > 0 && perSecond > most || perSecond > 2*most || perSecond < 40 {
					t.Errorf("where %q: %d events in second %d", where, perSecond, second)
				}
				shown += perSecond
			}
			_, n := numbersOf(t, tail, 20) // the last counts
			if skipped += n; int64(shown)+skipped != int64(all) && where == "" {
				t.Errorf("%d came, %d were shown and %d skipped", all, shown, skipped)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // what is not more than the rate is shown, in whatever bursts it comes
		tail, offer := openTail(t, &TailOptions{Rate: 50})
		defer tail.Close()
		shown := 0
		for i := range 100 {
			if i%10 == 0 {
				offer(numbered("t", i, 50))
			}
			seen, skipped := numbersOf(t, tail, 1)
			if shown += len(seen); skipped > 0 {
				t.Errorf("%d skipped after %d", skipped, i)
			}
		}
		if shown != 500 {
			t.Errorf("%d of 500 were shown", shown)
		}
	})
}

// TestTailStalled: one that is not read keeps no more than its bounds, and counts all the rest; it
// goes on when it is read again. What is too large for it is skipped.
func TestTailStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tail, offer := openTail(t, &TailOptions{Where: "n >= 0"})
		defer tail.Close()
		large := bigOf(2 * tailBytes)
		offer(large)
		many, one := numbered("t", 0, 1000), numbered("t", 0, 1)
		for range 20_000 {
			offer(many)
			offer(one)
		}
		if n := cap(tail.coming.bytes) + 64*cap(tail.coming.list); n > 6*tailBytes {
			t.Errorf("it takes %d bytes", n)
		}
		left := int64(1 + 20_000*1001)
		for range 1000 {
			seen, skipped := numbersOf(t, tail, 1)
			left -= int64(len(seen)) + skipped
		}
		if left != 0 {
			t.Errorf("of %d events nobody knows what became", left)
		}
		offer(numbered("again", 1, 1))
		if seen, _ := numbersOf(t, tail, 2); len(seen) != 1 || seen[0] != `again{"n":1}` {
			t.Errorf("after that it shows %q", seen)
		}
	})
}

// TestTailWork: a tick costs so much and no more, and what is left is looked at in the next one.
func TestTailWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tail, offer := openTail(t, &TailOptions{})
		defer tail.Close()
		offer(numbered("t", 0, 100))
		offer(numbered("t", 100, 100))
		shown := 0
		for ticks := 0; shown < 200; ticks++ {
			before := shown
			skipped, err := tail.Next(t.Context(), func(_, _ string, e *forward.Entry) {
				shown++
				<-time.After(tailWork / 8)
			})
			if err != nil || skipped > 0 || shown-before > 20 || ticks > 40 {
				t.Fatalf("%d shown, %d skipped, %v", shown-before, skipped, err)
			}
		}
	})
}

// TestTailOwes: what an event takes beyond what a tick may cost, the next ticks do not have.
func TestTailOwes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tail, offer := openTail(t, &TailOptions{})
		defer tail.Close()
		offer(bigOf(tailGlance))
		offer(bigOf(tailGlance))
		var at []time.Time
		for len(at) < 2 {
			if _, err := tail.Next(t.Context(), func(_, _ string, e *forward.Entry) {
				at = append(at, time.Now())
				<-time.After(10 * tailWork)
			}); err != nil {
				t.Fatal(err)
			}
		}
		if d := at[1].Sub(at[0]); d < 9*tailTick {
			t.Errorf("the second event was looked at %v after the first", d)
		}
	})
}

// bigOf is a chunk of one event of so many bytes.
func bigOf(n int) *forward.Chunk {
	b := msgpack.AppendArrayHeader(nil, 2)
	b = forward.AppendEventTime(b, 1, 0)
	b = msgpack.AppendMapHeader(b, 1)
	b = msgpack.AppendString(b, "n")
	b = msgpack.AppendString(b, strings.Repeat("x", n))
	return &forward.Chunk{Tag: "t", Events: 1, Entries: b}
}

// TestTailMistakes names what is wrong, and there are no more tails than there may be.
func TestTailMistakes(t *testing.T) {
	c := &Collector{store: &store{}}
	for _, o := range []TailOptions{{Tag: "a**"}, {Where: "level = 1"}, {Rate: -1}, {Rate: MaxTailRate + 1}} {
		_, err := c.Tail(&o)
		var wrong *TailError
		if !errors.As(err, &wrong) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	var open []*Tail
	for range 2 {
		for range maxTails {
			tail, err := c.Tail(&TailOptions{})
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, tail)
		}
		if _, err := c.Tail(&TailOptions{}); !errors.Is(err, ErrTails) {
			t.Errorf("one more: %v", err)
		}
		for _, tail := range open {
			tail.Close()
			tail.Close()
		}
		if open = nil; c.store.tails.open.Load() != nil {
			t.Error("tails are left")
		}
	}
	tail, err := c.Tail(&TailOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer tail.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for limit := time.Now().Add(time.Minute); ; { // a tick may come first
		if _, err := tail.Next(ctx, nil); errors.Is(err, context.Canceled) {
			break
		} else if err != nil || time.Now().After(limit) {
			t.Fatal(err)
		}
	}
}

// TestTailBesideInputs: tails come and go while events pass, and none of these is held up or lost.
// What a tail shows stands in the output, too.
func TestTailBesideInputs(t *testing.T) {
	r := run(t, &Config{Dir: t.TempDir(), Outputs: Ends("discard:"), Ack: AckJournaled})
	ended := make(chan struct{})
	var lookers, senders sync.WaitGroup
	shown := make([]int, maxTails)
	for i := range maxTails {
		lookers.Go(func() {
			for again := true; again; {
				tail, err := r.Tail(&TailOptions{Tag: fmt.Sprint("t", i)})
				if err != nil {
					t.Error(err)
					return
				}
				for range 3 {
					if _, err := tail.Next(t.Context(), func(input, tag string, _ *forward.Entry) {
						if shown[i]++; tag != fmt.Sprint("t", i) || !strings.HasPrefix(input, "forward://") {
							t.Errorf("tail %d shows %s of %s", i, tag, input)
						}
					}); err != nil {
						t.Error(err)
					}
				}
				tail.Close()
				select {
				case <-ended:
					again = false
				default:
				}
			}
		})
	}
	for range 4 {
		c := r.client(t)
		senders.Go(func() {
			for n := range 100 {
				send(t, c, numbered(fmt.Sprint("t", n%maxTails), n, 20))
			}
		})
	}
	senders.Wait()
	close(ended)
	lookers.Wait()
	if s := r.Stats(); s.Stored != 8000 {
		t.Errorf("%d of 8000 events are stored; shown were %v", s.Stored, shown)
	}
}

// TestTailAllocs: what an input does for tails allocates nothing, whether nobody looks or somebody
// does.
func TestTailAllocs(t *testing.T) {
	chunk := numbered("t", 0, 1000)
	var none tails
	if n := testing.AllocsPerRun(1000, func() { none.offer("in", chunk) }); n > 0 {
		t.Errorf("%v allocations while nobody looks", n)
	}
	tail, offer := openTail(t, &TailOptions{Tag: "t"})
	defer tail.Close()
	for range 1000 {
		offer(chunk)
	}
	if n := testing.AllocsPerRun(1000, func() { offer(chunk) }); n > 0 {
		t.Errorf("%v allocations while somebody does", n)
	}
}

// BenchmarkTailOffer is what an input does for a chunk of 1,000 events of 450 bytes: while nobody
// looks, and while somebody does whose rate is used up.
func BenchmarkTailOffer(b *testing.B) {
	one := bigOf(420).Entries
	chunk := &forward.Chunk{Tag: "t", Events: 1000, Entries: bytes.Repeat(one, 1000)}
	b.Run("nobody", func(b *testing.B) {
		var none tails
		b.ReportAllocs()
		for b.Loop() {
			none.offer("in", chunk)
		}
	})
	b.Run("somebody", func(b *testing.B) {
		tail, offer := openTail(b, &TailOptions{Tag: "t"})
		defer tail.Close()
		b.ReportAllocs()
		for b.Loop() {
			offer(chunk)
		}
	})
}

// FuzzTail: whatever bytes are stored, each event is shown or counted as skipped, and none is shown
// that did not come.
func FuzzTail(f *testing.F) {
	f.Add(numbered("t", 0, 10).Entries, uint16(10), uint16(5))
	f.Add([]byte{0x92, 0xff}, uint16(1), uint16(1))
	f.Add([]byte{}, uint16(9), uint16(1))
	f.Fuzz(func(t *testing.T, entries []byte, events, rate uint16) {
		synctest.Test(t, func(t *testing.T) {
			tail, offer := openTail(t, &TailOptions{Rate: 1 + int(rate)%MaxTailRate})
			defer tail.Close()
			all := int64(0)
			for range 3 {
				whole, n := forward.ReadEntries(entries), 0
				for _, ok := whole.Next(); ok; _, ok = whole.Next() {
					n++
				}
				n = max(n, int(events)) // a chunk says no less than what is in it
				offer(&forward.Chunk{Tag: "t", Entries: entries, Events: n})
				all += int64(n)
			}
			shown, skipped := int64(0), int64(0)
			for range 30 {
				n, err := tail.Next(t.Context(), func(_, _ string, e *forward.Entry) {
					if shown++; !bytes.Contains(entries, e.Raw) {
						t.Error("an event is shown that did not come")
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				skipped += n
			}
			if shown+skipped != all {
				t.Errorf("%d events came, %d were shown and %d skipped", all, shown, skipped)
			}
		})
	})
}
