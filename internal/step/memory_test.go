// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

// at is the head of an entry with a time, in seconds.
func at(sec float64) []byte { return msgpack.AppendFloat64([]byte{0x92}, sec) }

// TestThrottle has events come, each "time tag record", and says which pass, and what they say of
// those that did not.
func TestThrottle(t *testing.T) {
	for name, tt := range map[string]struct {
		do   Step
		come []string
		want []string // {…} of those that pass
	}{
		"one key": {
			Step{Throttle: &Throttle{Events: 2, Per: 10 * time.Second, Count: "more"}},
			[]string{
				`0 a {"i":0}`, `1 b {"i":1}`, `2 a {"i":2}`, `9.9 a {"i":3}`, `10 a {"i":4}`, `11 a {"i":5}`,
				`12 a {"i":6}`, `25 a {"i":7}`,
			},
			[]string{`{"i":0}`, `{"i":1}`, `{"i":4,"more":2}`, `{"i":5}`, `{"i":7,"more":1}`},
		},
		"keys, numbers are what they are, and missing is nil": {
			Step{Throttle: &Throttle{Events: 1, Per: time.Minute, By: []string{"a.b", "tag"}}},
			[]string{
				`0 x {"a":{"b":1}}`, `1 y {"a":{"b":1}}`, `2 x {"a":{"b":1.0}}`, `3 x {"a":{"b":"1"}}`,
				`4 x {"a":null}`, `5 x {"c":1}`, `6 x {"a":{"b":null}}`,
				`7 x {"a":{"b":1.5}}`, `8 x {"a":{"b":-1}}`, `9 x {"a":{"b":-1.0}}`, `10 x {"a":{"b":[1]}}`,
				`11 x {"a":{"b":[1]}}`,
			},
			[]string{
				`{"a":{"b":1}}`, `{"a":{"b":1}}`, `{"a":{"b":"1"}}`, `{"a":null}`, `{"a":{"b":1.5}}`,
				`{"a":{"b":-1}}`, `{"a":{"b":[1]}}`,
			},
		},
		"two fields are not one": {
			Step{Throttle: &Throttle{Events: 1, Per: time.Minute, By: []string{"a", "b"}}},
			[]string{`0 x {"a":"x","b":"yz"}`, `0 x {"a":"xy","b":"z"}`, `0 x {"b":"yz","a":"x"}`},
			[]string{`{"a":"x","b":"yz"}`, `{"a":"xy","b":"z"}`},
		},
		"a field that is called tag": {
			Step{Throttle: &Throttle{Events: 1, Per: time.Minute, By: []string{"`tag`"}}},
			[]string{`0 x {"tag":1}`, `0 y {"tag":1}`, `0 x {"tag":2}`},
			[]string{`{"tag":1}`, `{"tag":2}`},
		},
		"late events, and two clocks": {
			Step{Throttle: &Throttle{Events: 1, Per: 10 * time.Second}},
			[]string{
				`100 x {"i":0}`, `95 x {"i":1}`, `91 x {"i":2}`, // less than a span away
				// A clock that is wrong has its own span.
				`4000000000 x {"i":3}`, `101 x {"i":4}`, `4000000001 x {"i":5}`,
				`-1e300 x {"i":6}`, `4000000002 x {"i":7}`, `101 x {"i":8}`, // three of them: more pass, not fewer
			},
			[]string{`{"i":0}`, `{"i":3}`, `{"i":6}`, `{"i":8}`},
		},
		"a late event has the share of the span that began before it": {
			Step{Throttle: &Throttle{Events: 2, Per: 10 * time.Second, Count: "more"}},
			[]string{
				`0 x {"i":0}`, `12 x {"i":1}`, `9 x {"i":2}`, `13 x {"i":3}`, `8 x {"i":4}`, `21.9 x {"i":5}`,
				`22 x {"i":6}`,
			},
			[]string{`{"i":0}`, `{"i":1}`, `{"i":2}`, `{"i":3}`, `{"i":6,"more":2}`},
		},
		"the key that was not used for longest is forgotten": {
			Step{Throttle: &Throttle{Events: 1, Per: time.Minute, By: []string{"k"}, Keys: 2, Count: "more"}},
			[]string{
				`0 x {"k":1}`, `0 x {"k":2}`, `0 x {"k":1}`, `0 x {"k":3}`, `0 x {"k":1}`, `0 x {"k":2}`,
				`60 x {"k":1}`,
			},
			[]string{`{"k":1}`, `{"k":2}`, `{"k":3}`, `{"k":2}`, `{"k":1,"more":2}`},
		},
		"dedup": {
			Step{Dedup: &Dedup{Window: 10 * time.Second, Count: "again"}},
			[]string{
				`0 x {"a":1,"b":2}`, `5 x {"a":1,"b":2}`, `5 y {"a":1,"b":2}`, `5 x {"b":2,"a":1}`, `9 x {"a":1,"b":2}`,
				`10 x {"a":1,"b":2}`, `19 x {"a":1,"b":2}`, `3 x {"a":1,"b":2}`,
			},
			[]string{`{"a":1,"b":2}`, `{"a":1,"b":2}`, `{"b":2,"a":1}`, `{"a":1,"b":2,"again":2}`},
		},
		"dedup by fields": {
			Step{Dedup: &Dedup{Window: time.Hour, By: []string{"id"}}},
			[]string{`0 x {"id":1,"b":2}`, `5 y {"id":1}`, `5 y {"id":2}`, `7000 y {"id":2,"c":1}`, `0 x {"id":1}`},
			[]string{`{"id":1,"b":2}`, `{"id":2}`, `{"id":2,"c":1}`},
		},
	} {
		for _, pieces := range []bool{false, true} {
			s := sifterOf(t, "", tt.do)
			if !s.Remembers() || !s.Steps() || s.Retags() {
				t.Fatalf("%s: it remembers nothing", name)
			}
			var got []string
			for i, text := range tt.come {
				var sec float64
				var tag, record string
				if _, err := fmt.Sscan(text, &sec, &tag, &record); err != nil {
					t.Fatal(err)
				}
				head := at(sec)
				if i%2 == 1 { // with something beside the time
					head = append(append([]byte{0x92, 0x92}, head[1:]...), 0x80)
				}
				var out Sifted
				if err := s.Sift(&out, tag, entryOf(t, head, record), uint64(i/3), i%3); err != nil {
					t.Fatal(err)
				}
				for _, line := range linesOf(t, &out, head) {
					got = append(got, strings.TrimPrefix(line, tag+" "))
				}
				if pieces && i%3 == 2 { // the end of a record, and a crash
					record, _ := s.Learnt()
					s.Settle(record)
					state := s.AppendState(nil)
					s = sifterOf(t, "", tt.do)
					if err := s.Recall(state, 7); err != nil {
						t.Fatal(err)
					}
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s: these pass:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		}
	}
}

// TestThrottleOnce: an event whose steps run again, since one behind them has failed, is one; and
// whole events are alike also where steps have written one anew.
func TestThrottleOnce(t *testing.T) {
	s := sifterOf(t, "", Step{Throttle: &Throttle{Events: 2, Per: time.Second, Count: "c"}}, Step{Tag: "{missing}"})
	var out Sifted
	var entries []byte
	for range 3 {
		entries = append(entries, entryOf(t, plainHead, `{"a":1}`)...)
	}
	if err := s.Sift(&out, "x", entries, 1, 0); err != nil || len(linesOf(t, &out, plainHead)) != 2 {
		t.Error(err, linesOf(t, &out, plainHead))
	}
	s = sifterOf(t, "", Step{Remove: []string{"z"}}, Step{Dedup: &Dedup{Window: time.Second}})
	entries = append(entryOf(t, plainHead, `{"a":1,"b":{"c":[]}}`),
		entryOf(t, metaHead, `{"a":1,"z":5,"b":{"c":[]}}`)...)
	if err := s.Sift(&out, "x", entries, 1, 0); err != nil || len(out.Runs) != 1 || out.Runs[0].Events != 1 {
		t.Errorf("%v, %+v", err, out.Runs)
	}
}

// TestTimes reads the time of an event, of each kind.
func TestTimes(t *testing.T) {
	for _, tt := range []struct {
		time string
		want int64
	}{
		{"\xd7\x00\x00\x00\x00\x05\x00\x00\x00\x07", 5_000_000_007},
		{"\xc7\x08\x00\xff\xff\xff\xff\x00\x00\x00\x00", math.MaxUint32 * 1e9},
		{"\x05", 5e9},
		{"\xff", -1e9},
		{"\xcf\xff\xff\xff\xff\xff\xff\xff\xff", math.MaxUint32 * 1e9},
		{"\xd3\x80\x00\x00\x00\x00\x00\x00\x00", -math.MaxUint32 * 1e9},
		{"\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00", 1_500_000_000},
		{"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x01", 0},
		{"\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00", math.MaxUint32 * 1e9},
		{"\xc0", 0},
		{"\xd4\x00\x01", 0},
		{"\x92\x05\x80", 5e9},
	} {
		var e event
		if _, err := e.read("x", []byte("\x92"+tt.time+"\x80")); err != nil || e.time() != tt.want {
			t.Errorf("% x: %v, %d, want %d", tt.time, err, e.time(), tt.want)
		}
	}
}

// TestRecall: what is kept is what was known at the record that is settled; a step that is the same
// goes on with it, whatever else changes, and others begin anew.
func TestRecall(t *testing.T) {
	dedup := Step{Dedup: &Dedup{Window: time.Hour, By: []string{"k"}}}
	list := func(match string, do ...Step) *Sifter {
		r, err := Read([]Route{{Match: match, Do: do, To: []string{"x"}}}, []string{"x"}, 1<<20, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r.For("x")
	}
	passes := func(s *Sifter, key int) bool {
		var out Sifted
		if err := s.Sift(&out, "app", entryOf(t, plainHead, fmt.Sprintf(`{"k":%d}`, key)), 1, 0); err != nil {
			t.Fatal(err)
		}
		return len(out.Runs) > 0
	}
	s := list("**", dedup)
	if err := s.Recall(nil, 100); err != nil {
		t.Fatal(err)
	}
	var ends []uint64
	for key := range 3 {
		if !passes(s, key) || passes(s, key) {
			t.Fatal("it knows nothing")
		}
		end, news := s.Learnt()
		if ends = append(ends, end); news != newsBytes {
			t.Errorf("%d bytes of news", news)
		}
	}
	s.Settle(ends[1])
	state := s.AppendState(nil)
	knows := func(s *Sifter, want string) {
		t.Helper()
		got := ""
		for key := range 4 {
			if !passes(s, key) {
				got += fmt.Sprint(key)
			}
		}
		if got != want {
			t.Errorf("it knows %q, want %q", got, want)
		}
	}
	other := Step{Dedup: &Dedup{Window: 2 * time.Hour, By: []string{"k"}}}
	for name, tt := range map[string]struct {
		s     *Sifter
		knows string
	}{
		"the same":          {list("**", dedup), "01"},
		"more steps":        {list("**", Step{Drop: "a == 1"}, dedup, Step{Set: Values{{"x", 1}}}), "01"},
		"one more before":   {list("**", other, dedup), "01"},
		"another window":    {list("**", other), ""},
		"another pattern":   {list("*", dedup), ""},
		"nothing remembers": {list("**", Step{Drop: "a == 1"}), ""},
	} {
		if err := tt.s.Recall(state, 200); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if want := tt.knows; tt.s.Remembers() {
			knows(tt.s, want)
		}
	}
	again, anew := list("**", dedup), list("**", dedup)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(again.Recall(state, 200))
	must(anew.Recall(nil, 200))
	if !bytes.Equal(again.Mark(), s.Mark()) || bytes.Equal(anew.Mark(), s.Mark()) || !again.Same(anew) {
		t.Error("chunks are called by where the memory began")
	}
	for n := range state { // cut anywhere
		bad := list("**", dedup)
		if err := bad.Recall(state[:n], 300); n > 0 && !errors.Is(err, ErrState) {
			t.Fatalf("%d bytes: %v", n, err)
		}
		knows(bad, "")
	}
}

// TestKeysOfAll: what the steps of an output may know is bounded.
func TestKeysOfAll(t *testing.T) {
	var do []Step
	for range maxKeysOfAll/maxKeys + 1 {
		do = append(do, Step{Dedup: &Dedup{Window: time.Second, Keys: maxKeys}})
	}
	_, err := Read([]Route{{Match: "**", Do: do, To: []string{"x"}}}, []string{"x"}, 1<<20, nil)
	var e *Error
	if !errors.As(err, &e) || e.Output != "x" ||
		!strings.Contains(err.Error(), "the steps for the output x know 327680 keys; all together may know 262144") {
		t.Error(err)
	}
}

// TestMemory fills a memory, and has it forget, with keys that fall on one cell.
func TestMemory(t *testing.T) {
	m := &memory{maxKeys: 300, length: 10, limit: 1}
	m.begin(0)
	key := func(i int) (k [keyLen]byte) {
		k[0], k[8], k[9] = byte(i%7), byte(i), byte(i>>8)
		return k
	}
	for i := range 3000 {
		k := key(i)
		if passes, _ := m.let(&k, 0); !passes {
			t.Fatalf("%d is known", i)
		}
		if i >= 300 {
			old, gone := key(i-299), key(i-300)
			if m.find(&old) == none || m.find(&gone) != none {
				t.Fatalf("%d: the wrong one was forgotten", i)
			}
		}
		if i%10 == 0 {
			m.learn(uint64(i))
			m.settle(uint64(max(i-30, 0)))
		}
	}
	if len(m.known) != 300 || len(m.kept) != 300 || len(m.news) > 100 {
		t.Errorf("%d known, %d kept, %d news", len(m.known), len(m.kept), len(m.news))
	}
}

// TestStateSize holds what docs/steps.md says a key takes of what is written, after a billion
// events.
func TestStateSize(t *testing.T) {
	for spans, most := range []int{1: 32, 2: 40} {
		const keys = 1000
		s := sifterOf(t, "", Step{Throttle: &Throttle{Events: 1, Per: time.Second, By: []string{"k"}}})
		s.memories[0].calls = 1_000_000_000
		empty := len(s.AppendState(nil))
		var out Sifted
		for span := range spans {
			for key := range keys {
				entry := entryOf(t, at(float64(span*10)), fmt.Sprintf(`{"k":%d}`, key))
				if err := s.Sift(&out, "t", entry, 1, 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		record, _ := s.Learnt()
		s.Settle(record)
		if got := (len(s.AppendState(nil)) - empty) / keys; spans > 0 && got != most {
			t.Errorf("%d spans: %d bytes a key, want %d", spans, got, most)
		}
	}
}
