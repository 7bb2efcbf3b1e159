// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/step"
)

// testTime is the time of an event that says none.
const testTime = "2026-01-01T00:00:00Z"

// RunTests runs the tests of a file without mistakes. expressions is that of the collector.
func (f *File) RunTests(expressions step.Compiler) error {
	var names []string
	for i := range f.Outputs {
		names = append(names, f.Outputs[i].Name)
	}
	routes, err := step.Read(f.Routes, names, 64<<20, expressions)
	if err != nil {
		return err
	}
	var all Mistakes
	for i := range f.Tests {
		t := &f.Tests[i]
		at := f.said[testsKey].items[i]
		fail := func(n *node, format string, args ...any) {
			all = append(all, n.mistake("test %s: %s", quote(t.Name), f.Hide(fmt.Sprintf(format, args...))))
		}
		switch {
		case t.Name == "" || len(t.Expect) == 0:
			fail(at, "a test has name, input and expect")
			continue
		case slices.ContainsFunc(t.Input, func(e TestEvent) bool { return e.Record == nil }) || len(t.Input) == 0:
			fail(at, "its input has no record")
			continue
		}
		entries, err := t.entries()
		if err != nil {
			fail(at, "%v", err)
			continue
		}
		for _, want := range t.Expect {
			n := at.get("expect").at([]any{want.Field})
			if !slices.Contains(names, want.Field) {
				fail(n, "there is no output %s%s", quote(want.Field), meant(want.Field, names))
				continue
			}
			s := routes.For(want.Field) // which remembers nothing yet
			var got []*outcome
			var failed []string
			for i := range entries {
				one, why, err := sifted(s, t.Input[i].Tag, entries[i], uint64(i+1))
				switch {
				case err != nil:
					fail(n, "%v", err)
				case why != "":
					failed = append(failed, why)
				case one != nil:
					got = append(got, one)
				}
			}
			for _, difference := range differences(want.Value, got, failed) {
				fail(n, "output %s: %s", want.Field, difference)
			}
		}
	}
	if all != nil {
		return all
	}
	return nil
}

// entries are the events as they lie in the journal.
func (t *Test) entries() (all [][]byte, err error) {
	for i := range t.Input {
		entry, err := t.Input[i].entry()
		if err != nil {
			return nil, err
		}
		all = append(all, entry)
	}
	return all, nil
}

// entry is the event as it lies in the journal.
func (e *TestEvent) entry() ([]byte, error) {
	text := e.Time
	if text == "" {
		text = testTime
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return nil, fmt.Errorf("the time %s is none such as %s", quote(text), testTime)
	}
	if s := at.Unix(); s < 0 || s > math.MaxUint32 {
		return nil, fmt.Errorf("the time %s is none that an event can have: 1970-01-01T00:00:00Z to %s", quote(text),
			time.Unix(math.MaxUint32, 0).UTC().Format(time.RFC3339))
	}
	b := forward.AppendEventTime([]byte{0x92}, at.Unix(), uint32(at.Nanosecond()))
	return step.AppendValue(b, e.Record)
}

// An outcome is what an output gets of an event.
type outcome struct {
	tag    string
	time   time.Time
	record map[string]any
}

// sifted runs an event, which is a record of the journal, through what leads to an output: nil if
// it gets nothing. failed is why it is a dead letter.
func sifted(s *step.Sifter, tag string, entry []byte, at uint64) (got *outcome, failed string, err error) {
	if s != nil {
		var out step.Sifted
		switch s.Takes(tag) {
		case step.None:
			return nil, "", nil
		case step.Some:
			if err := s.Sift(&out, tag, entry, at, 0); err != nil {
				return nil, "", err
			}
			if len(out.Failed) > 0 {
				return nil, out.Failed[0].Reason, nil
			}
			if len(out.Runs) == 0 {
				return nil, "", nil
			}
			tag, entry = out.Runs[0].Tag, out.Entries
		}
	}
	r := forward.ReadEntries(entry)
	e, ok := r.Next()
	if !ok {
		return nil, "", r.Err()
	}
	got = &outcome{tag: tag, time: e.Time()}
	text, err := forward.Record(e.Record).AppendJSON(nil)
	if err != nil {
		return nil, "", err
	}
	got.record, _ = read(text).(map[string]any)
	return got, "", nil
}

// read reads JSON with numbers as they are written.
func read(text []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	_ = d.Decode(&v)
	return v
}

// differences says how what an output gets is something else than expected: a number of events, the
// one event that it gets, or a list of events.
func differences(want any, got []*outcome, failed []string) []string {
	events, list := want.([]any)
	if values, one := want.(collector.Values); one {
		events, list = []any{values}, true
	}
	count, number := want.(int64)
	if list {
		count = int64(len(events))
	}
	if !list && (!number || count < 0) || slices.ContainsFunc(events,
		func(e any) bool { _, ok := e.(collector.Values); return !ok }) {
		return []string{"what is expected is a number of events, or a map with tag, time or record, or a list of such"}
	}
	if int64(len(got)) == count {
		var all []string
		for i, e := range events {
			for _, difference := range unlikeEvent(e.(collector.Values), got[i]) {
				if len(events) > 1 {
					difference = fmt.Sprintf("event %d: %s", i, difference)
				}
				all = append(all, difference)
			}
		}
		return all
	}
	what := "it gets nothing"
	if len(got) > 0 {
		var texts []string
		for _, g := range got {
			text, _ := json.Marshal(g.record)
			texts = append(texts, fmt.Sprintf("%s with the tag %q", text, g.tag))
		}
		what = "it gets " + strings.Join(texts, ", ")
		if count > 1 || len(got) > 1 {
			what = fmt.Sprintf("it gets %d events, not %d: %s", len(got), count, strings.Join(texts, ", "))
		}
	}
	if len(failed) > 0 {
		dead := "the event is a dead letter: " + failed[0]
		if len(got) == 0 {
			return []string{dead}
		}
		what += "; " + dead
	}
	return []string{what}
}

// unlikeEvent says how an event is another one than expected.
func unlikeEvent(values collector.Values, got *outcome) []string {
	var all []string
	for _, v := range values {
		switch text, _ := v.Value.(string); v.Field {
		case "tag":
			if text != got.tag {
				all = append(all, fmt.Sprintf("the tag is %q, not %q", got.tag, text))
			}
		case "time":
			if at, err := time.Parse(time.RFC3339Nano, text); err != nil || !at.Equal(got.time) {
				all = append(all, fmt.Sprintf("the time is %s, not %s", got.time.UTC().Format(time.RFC3339Nano), text))
			}
		case "record":
			b, err := step.AppendValue(nil, v.Value)
			if err == nil {
				b, err = forward.Value(b).AppendJSON(nil)
			}
			if err != nil {
				return append(all, err.Error())
			}
			all = append(all, unlike("", read(b), any(got.record))...)
		default:
			all = append(all, fmt.Sprintf("unknown key %s%s", quote(v.Field),
				meant(v.Field, []string{"tag", "time", "record"})))
		}
	}
	return all
}

// unlike says which fields differ.
func unlike(path string, want, got any) (all []string) {
	a, ok := want.(map[string]any)
	b, also := got.(map[string]any)
	if !ok || !also {
		if !same(want, got) {
			x, _ := json.Marshal(got)
			y, _ := json.Marshal(want)
			return []string{fmt.Sprintf("%s is %s, not %s", strings.TrimPrefix(path, "."), x, y)}
		}
		return nil
	}
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		at := path + "." + key
		x, wanted := a[key]
		y, there := b[key]
		switch {
		case !there:
			all = append(all, at[1:]+" is missing")
		case !wanted:
			text, _ := json.Marshal(y)
			all = append(all, fmt.Sprintf("%s is there: %s", at[1:], text))
		default:
			all = append(all, unlike(at, x, y)...)
		}
	}
	return all
}

// same compares values of JSON, numbers as numbers.
func same(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		x, _, err := big.ParseFloat(a.String(), 10, 256, big.ToNearestEven)
		if !ok || err != nil {
			return false
		}
		y, _, err := big.ParseFloat(b.String(), 10, 256, big.ToNearestEven)
		return err == nil && x.Cmp(y) == 0
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, same)
	case map[string]any:
		return unlike("", a, b) == nil
	}
	return a == b
}
