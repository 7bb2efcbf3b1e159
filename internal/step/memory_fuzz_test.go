// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

// A diary does slowly what a memory does: keys as texts, those used last first, and spans as they
// were begun.
type diary struct {
	most   int
	limit  int
	length float64 // seconds
	keys   []diaryKey
}

type diaryKey struct {
	key   string
	spans []diarySpan // the one used last first
	left  int
}

type diarySpan struct {
	from   float64
	passed int
}

func (d *diary) clone() *diary {
	c := *d
	c.keys = slices.Clone(d.keys)
	for i := range c.keys {
		c.keys[i].spans = slices.Clone(c.keys[i].spans)
	}
	return &c
}

func (d *diary) let(key string, at float64) (passes bool, left int) {
	k := diaryKey{key: key}
	if i := slices.IndexFunc(d.keys, func(k diaryKey) bool { return k.key == key }); i >= 0 {
		k = d.keys[i]
		d.keys = slices.Delete(d.keys, i, i+1)
	}
	s := diarySpan{from: at}
	i := slices.IndexFunc(k.spans, func(s diarySpan) bool { return s.from <= at && at < s.from+d.length })
	if i < 0 {
		i = slices.IndexFunc(k.spans, func(s diarySpan) bool { return math.Abs(at-s.from) < d.length })
	}
	if i >= 0 {
		s = k.spans[i]
		k.spans = slices.Delete(k.spans, i, i+1)
	}
	if passes = s.passed < d.limit; passes {
		s.passed++
		left, k.left = k.left, 0
	} else {
		k.left++
	}
	k.spans = append([]diarySpan{s}, k.spans...)
	k.spans = k.spans[:min(len(k.spans), 2)]
	d.keys = append([]diaryKey{k}, d.keys...)
	d.keys = d.keys[:min(len(d.keys), d.most)]
	return passes, left
}

// diaryText is a value of a record as part of a key.
func diaryText(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case string:
		return fmt.Sprintf("text %q", v)
	case float64:
		if v-v != 0 {
			return fmt.Sprint("number ", v)
		}
		return "number " + new(big.Rat).SetFloat64(v).String()
	case int64:
		return "number " + new(big.Rat).SetInt64(v).String()
	case uint64:
		return "number " + new(big.Rat).SetInt(new(big.Int).SetUint64(v)).String()
	}
	return fmt.Sprintf("%T %v", v, v)
}

// FuzzMemory has throttle and dedup see events, ends of records, and crashes, beside the diary.
func FuzzMemory(f *testing.F) {
	for i := range 40 {
		var plan []byte
		for k := range 60 {
			plan = append(plan, byte(i*k+k), byte(k*k>>3), byte(i+7*k))
		}
		f.Add(byte(i), byte(i*5), plan)
	}
	// Two events a span of 10 s, at 0, 10, 9 and 11: that at 9 has the share of the first span.
	f.Add(byte(9), byte(72), []byte{3, 0, 0, 5<<4 | 3, 0, 0, 4<<4 | 3, 0, 0, 6<<4 | 3, 0, 0})
	values := []any{
		nil, "1", int64(1), 1.0, uint64(math.MaxUint64), math.MaxFloat64, 1.5, -1.0, int64(-1), 0.0,
		math.Copysign(0, -1), true,
		[]any{int64(1)},
		Values{{"a", int64(1)}},
		"", "x",
	}
	times := []float64{0, 1, 4, 5, 9, 10, 11, 100, 101, 95, 4e9, 4e9 + 4, -7, 0.5, 10.25, 20}
	f.Fuzz(func(t *testing.T, kind, size byte, plan []byte) {
		d := &diary{most: 1 + int(size)%5, limit: 1, length: float64(1 + size/8%16)}
		by := [][]string{nil, {"a"}, {"a", "tag"}, {"b", "a"}}[kind/2%4]
		var do Step
		if kind%2 == 0 {
			do.Dedup = &Dedup{Window: time.Duration(d.length) * time.Second, Keys: int64(d.most), By: by, Count: "left"}
		} else {
			d.limit = 1 + int(kind/8)%4
			do.Throttle = &Throttle{
				Events: int64(d.limit), Per: time.Duration(d.length) * time.Second,
				Keys: int64(d.most), By: by, Count: "left",
			}
		}
		open := func() *Sifter {
			r, err := Read([]Route{{Match: "**", Do: []Step{do}, To: []string{"x"}}}, []string{"x"}, 1<<20, nil)
			if err != nil {
				t.Fatal(err)
			}
			return r.For("x")
		}
		s := open()
		if err := s.Recall(nil, 1); err != nil {
			t.Fatal(err)
		}
		kept := d.clone()
		ends := map[uint64]*diary{}
		index := 0
		var out Sifted
		for len(plan) >= 3 {
			op, x, y := plan[0], plan[1], plan[2]
			plan = plan[3:]
			switch op % 16 {
			case 0:
				end, _ := s.Learnt()
				ends[end] = d.clone()
				index = 0
			case 1: // one of the records that are on their way is passed
				if all := slices.Sorted(maps.Keys(ends)); len(all) > 0 {
					end := all[int(x)%len(all)]
					s.Settle(end)
					kept = ends[end]
					maps.DeleteFunc(ends, func(e uint64, _ *diary) bool { return e <= end })
				}
			case 2:
				state := s.AppendState(nil)
				if x%2 == 0 {
					s = open()
				}
				if err := s.Recall(state, 2); err != nil {
					t.Fatal(err)
				}
				d, index = kept.clone(), 0
				clear(ends)
			default:
				sec := times[int(op/16)]
				a, b := values[x%16], values[y%16]
				tag := []string{"t", "u"}[x/16%2]
				record := Values{{"a", a}, {"b", b}}
				if y >= 128 {
					record = record[:1]
				}
				entry, err := AppendValue(at(sec), record)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Sift(&out, tag, entry, 1, index); err != nil {
					t.Fatal(err)
				}
				index++
				key := ""
				for _, name := range by {
					switch {
					case name == "tag":
						key += "tag " + tag
					case name == "a":
						key += diaryText(a)
					case name == "b" && len(record) == 2:
						key += diaryText(b)
					default:
						key += "nothing"
					}
					key += "\n"
				}
				if by == nil && do.Dedup != nil {
					key = tag + string(entry[len(at(sec)):])
				}
				passes, left := d.let(key, sec)
				if passes != (len(out.Runs) == 1) {
					t.Fatalf("%+v: an event of %v with %v at %v passes: %v, not %v", do, tag, record, sec, !passes,
						passes)
				}
				if !passes {
					continue
				}
				want := entry
				if left > 0 {
					want, err = AppendValue(at(sec), append(slices.Clone(record), Value{"left", left}))
				}
				if err != nil || !bytes.Equal(out.Entries, want) {
					t.Fatalf("% x, want % x, %v", out.Entries, want, err)
				}
			}
		}
	})
}

// FuzzRecall: no state makes steps do more than refuse it. One that they take is the same when it
// is written again and read.
func FuzzRecall(f *testing.F) {
	open := func() *Sifter {
		r, err := Read([]Route{{Match: "**", Do: []Step{
			{Throttle: &Throttle{Events: 3, Per: time.Minute, By: []string{"k"}, Keys: 100}},
			{Dedup: &Dedup{Window: time.Hour, Keys: 10}},
		}, To: []string{"x"}}}, []string{"x"}, 1<<20, nil)
		if err != nil {
			f.Fatal(err)
		}
		return r.For("x")
	}
	var entries []byte
	for i := range 30 {
		entries = msgpack.AppendMapHeader(append(entries, at(float64(i*20))...), 1)
		entries = msgpack.AppendInt(msgpack.AppendString(entries, "k"), int64(i*i%7))
	}
	s := open()
	var out Sifted
	if err := s.Sift(&out, "t", entries, 1, 0); err != nil {
		f.Fatal(err)
	}
	end, _ := s.Learnt()
	s.Settle(end)
	f.Add(s.AppendState(nil))
	f.Add([]byte{1, 0})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, state []byte) {
		s := open()
		if err := s.Recall(state, 5); err != nil {
			if !errors.Is(err, ErrState) || len(s.memories[0].known)+len(s.memories[1].known) > 0 ||
				s.memories[0].born != 5 {
				t.Fatal(err)
			}
		}
		first := s.AppendState(nil)
		again := open()
		if err := again.Recall(first, 6); err != nil || !bytes.Equal(again.AppendState(nil), first) {
			t.Fatalf("% x is read as % x, %v", first, again.AppendState(nil), err)
		}
		var a, b Sifted
		for _, x := range []struct {
			s   *Sifter
			out *Sifted
		}{{s, &a}, {again, &b}} {
			if err := x.s.Sift(x.out, "t", entries, 1, 0); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(a.Entries, b.Entries) {
			t.Error("what was read again lets other events pass")
		}
	})
}
