// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

// Heads of entries: what stands before the record.
var (
	plainHead = []byte{0x92, 0xd7, 0, 1, 2, 3, 4, 5, 6, 7, 8}
	metaHead  = []byte("\x92\x92\xd7\x00\x01\x02\x03\x04\x05\x06\x07\x08\x81\xa1m\x01")
	longHead  = []byte("\xdc\x00\x02\x05")
)

// entryOf is an entry of a JSON text.
func entryOf(t testing.TB, head []byte, text string) []byte {
	t.Helper()
	b, _, err := msgpack.AppendFromJSONText(bytes.Clone(head), []byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return b
}

// sifterOf is that of one route with steps.
func sifterOf(t testing.TB, onError string, do ...Step) *Sifter {
	t.Helper()
	r, err := Read([]Route{{Match: "**", Do: do, To: []string{"x"}, OnError: onError}}, []string{"x"}, 1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.For("x")
}

// linesOf are the events of what was sifted, a line each: the tag, and the record as JSON. Each has
// the head.
func linesOf(t testing.TB, s *Sifted, head []byte) (lines []string) {
	t.Helper()
	from := 0
	for _, r := range s.Runs {
		n := 0
		for entries := s.Entries[from:r.End]; len(entries) > 0; n++ {
			if !bytes.HasPrefix(entries, head) {
				t.Fatalf("% x does not begin with % x", entries, head)
			}
			text, k, err := msgpack.AppendJSON(nil, entries[len(head):], nil)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, r.Tag+" "+string(text))
			entries = entries[len(head)+k:]
		}
		if n != r.Events {
			t.Errorf("a run says that it has %d events, and has %d", r.Events, n)
		}
		from = r.End
	}
	return lines
}

const (
	full = `{"level":"INFO","n":5,"user":{"id":7,"mail":"a@b.c","deep":{"x":1}},"ok":true,"none":null,"a.b":1}`
	gone = ""
)

// TestSteps has each step change an event. Nothing but that changes: not the tag, the time, what is
// beside the time, and the order of fields.
func TestSteps(t *testing.T) {
	for _, tt := range []struct {
		do   []Step
		want string // {…} is what full begins and ends with
	}{
		{[]Step{{Drop: `level == "INFO"`}}, gone},
		{[]Step{{Drop: `level == "DEBUG"`}}, "app.web " + full},
		{[]Step{{Keep: `level == "INFO"`}}, "app.web " + full},
		{[]Step{{Keep: `tag == "app.web" and user.id == 7`}}, "app.web " + full},
		{[]Step{{Keep: `tag == "app"`}}, gone},
		{[]Step{{Remove: []string{"user", "ok", "missing", "none", "`a.b`"}}}, `app.web {"level":"INFO","n":5}`},
		{
			[]Step{{Remove: []string{"user.mail", "user.deep.x", "user.id.y", "n.m"}}},
			`app.web ` + strings.NewReplacer(`,"mail":"a@b.c"`, "", `{"x":1}`, `{}`).Replace(full),
		},
		{[]Step{{Set: Values{
			{"n", int64(6)},
			{"new", "é"},
			{"user.id", Values{{"a", 1.5}, {"b", []any{nil, true, uint64(1 << 63)}}}},
		}}}, `app.web ` +
			strings.NewReplacer(`"n":5`, `"n":6`, `"id":7`, `"id":{"a":1.5,"b":[null,true,9223372036854775808]}`,
				`"a.b":1}`, `"a.b":1,"new":"é"}`).Replace(full)},
		{[]Step{{Set: Values{{"user.deep.y", 2}, {"p.q.r", 3}}}}, `app.web ` +
			strings.NewReplacer(`"x":1}`, `"x":1,"y":2}`, `"a.b":1}`, `"a.b":1,"p":{"q":{"r":3}}}`).Replace(full)},
		{
			[]Step{{Rename: Names{{"level", "severity"}, {"missing", "x"}}}},
			`app.web ` + strings.Replace(full, "level", "severity", 1),
		},
		{
			[]Step{{Rename: Names{{"n", "ok"}}}},
			`app.web ` + strings.NewReplacer(`"n":5`, `"ok":5`, `"ok":true,`, ``).Replace(full),
		},
		{
			[]Step{{Rename: Names{{"user.mail", "mail"}, {"n", "user.n"}}}},
			`app.web ` + strings.NewReplacer(`,"mail":"a@b.c"`, ``, `"n":5,`, ``, `"x":1}`, `"x":1},"n":5`, `"a.b":1}`,
				`"a.b":1,"mail":"a@b.c"}`).Replace(full),
		},
		{
			[]Step{{Copy: Names{{"user.id", "id"}, {"missing", "y"}, {"n", "level"}}}},
			`app.web ` + strings.NewReplacer(`"INFO"`, `5`, `"a.b":1}`, `"a.b":1,"id":7}`).Replace(full),
		},
		{[]Step{{Mask: []string{"user.mail", "n", "user.deep"}}}, `app.web ` +
			strings.NewReplacer(`"a@b.c"`, `"***"`, `5`, `"***"`, `{"x":1}`, `"***"`).Replace(full)},
		{[]Step{{Tag: "{tag[1]}.{user.id}.{missing|x}.{ok}"}}, `web.7.x.true ` + full},
		{[]Step{{Tag: "sys"}, {Keep: `tag == "sys"`}}, `sys ` + full},
		{
			[]Step{{Drop: `n > 5`}, {Rename: Names{{"n", "m"}}}, {Drop: `n != nil`}, {Drop: "m != 5 or m < 5e-1"}},
			`app.web ` + strings.Replace(full, `"n"`, `"m"`, 1),
		},
		{[]Step{{Tag: "{none}"}}, `app.web ` + strings.Replace(full, `"a.b":1}`,
			`"a.b":1,"spillway_error":"tag: none is missing, or no text and no number"}`, 1)},
		{
			[]Step{{Set: Values{{"x", 1}, {"n.m", 1}}}, {Remove: []string{"user"}}},
			`app.web {"level":"INFO","n":5,"ok":true,"none":null,"a.b":1,"spillway_error":"set: n.m: what it leads through is no map"}`,
		},
	} {
		for _, head := range [][]byte{plainHead, metaHead, longHead} {
			var got Sifted
			entry := entryOf(t, head, full)
			before := bytes.Clone(entry)
			if err := sifterOf(t, "", tt.do...).Sift(&got, "app.web", entry, 1, 0); err != nil {
				t.Fatal(err)
			}
			if lines := strings.Join(linesOf(t, &got, head), "\n"); lines != tt.want {
				t.Errorf("%+v:\n%s\nwant\n%s", tt.do, lines, tt.want)
			}
			if !bytes.Equal(entry, before) {
				t.Fatalf("%+v wrote into the entries", tt.do)
			}
		}
	}
}

// TestRuns: events keep their order, and neighbours of one tag are one run.
func TestRuns(t *testing.T) {
	var entries []byte
	for i, tag := range strings.Split("a a b - a c c -", " ") {
		entries = append(entries, entryOf(t, plainHead, fmt.Sprintf(`{"t":%q,"i":%d}`, tag, i))...)
	}
	s := sifterOf(t, "", Step{Drop: `t == "-"`}, Step{Tag: "{t}"}, Step{Remove: []string{"t"}})
	var got Sifted
	if err := s.Sift(&got, "x", entries, 1, 0); err != nil {
		t.Fatal(err)
	}
	want := `[a {"i":0} a {"i":1} b {"i":2} a {"i":4} c {"i":5} c {"i":6}]`
	if lines := fmt.Sprint(linesOf(t, &got, plainHead)); lines != want || len(got.Runs) != 4 {
		t.Errorf("%s in %d runs, want %s", lines, len(got.Runs), want)
	}
	if !s.Retags() || !s.Steps() || s.Takes("y") != Some {
		t.Errorf("%v %v %v", s.Retags(), s.Steps(), s.Takes("y"))
	}
}

// TestMost: steps stop when they have made much, of bytes, runs or failures, and the rest makes the
// same as it would have at once.
func TestMost(t *testing.T) {
	var entries []byte
	const events = 3 * maxMade
	for i := range events {
		entries = append(entries, entryOf(t, plainHead, fmt.Sprintf(`{"i":%d}`, i))...)
	}
	for name, tt := range map[string]struct {
		most int
		do   Step
	}{
		"bytes":    {10_000, Step{Set: Values{{"x", strings.Repeat("x", 100)}}}},
		"runs":     {1 << 30, Step{Tag: "{i}"}},
		"failures": {1 << 30, Step{Tag: "{missing}"}},
	} {
		s := sifterOf(t, OnErrorLetter, tt.do)
		var whole Sifted
		if err := s.Sift(&whole, "t", entries, 1, 0); err != nil || whole.Events != events || len(whole.Rest) > 0 {
			t.Fatal(err, whole.Events)
		}
		want := linesOf(t, &whole, plainHead)
		var got []string
		part := Sifted{Most: tt.most}
		failed, rest, at := 0, entries, 0
		for len(rest) > 0 {
			if err := s.Sift(&part, "t", rest, 1, at); err != nil {
				t.Fatal(err)
			}
			if len(part.Entries) > tt.most+200 || len(part.Runs) > maxMade || len(part.Failed) > maxMade {
				t.Fatalf("%s: %d bytes, %d runs, %d failures", name, len(part.Entries), len(part.Runs),
					len(part.Failed))
			}
			got = append(got, linesOf(t, &part, plainHead)...)
			for i := range part.Failed {
				if part.Failed[i].Index != failed+i {
					t.Fatalf("%s: %d failed", name, part.Failed[i].Index)
				}
			}
			failed += len(part.Failed)
			rest = part.Rest
			at += part.Events
		}
		if !slices.Equal(got, want) || failed != len(whole.Failed) || at != events {
			t.Errorf("%s: %d lines and %d failed of %d, want %d and %d", name, len(got), failed, at, len(want),
				len(whole.Failed))
		}
	}
}

// TestPanic: a step that panics loses nothing, and neither does one that fails every time. Of the
// others each has its effect once.
func TestPanic(t *testing.T) {
	for _, letters := range []string{"", OnErrorLetter} {
		s := sifterOf(t, letters, Step{Set: Values{{"a", 1}}}, Step{Copy: Names{{"user", "b"}}}, Step{Tag: "{tag}.x"})
		for _, r := range s.rules {
			r.program.actions[1].do = func(e *event) error {
				e.fields = e.fields[:1]
				if e.index == 1 {
					return errors.New("no")
				}
				panic("slip")
			}
		}
		var got Sifted
		entry := entryOf(t, plainHead, `{"n":1,"user":2}`)
		if err := s.Sift(&got, "t", append(bytes.Clone(entry), entry...), 1, 0); err != nil {
			t.Fatal(err)
		}
		lines := fmt.Sprint(linesOf(t, &got, plainHead))
		want := `[t.x {"n":1,"user":2,"a":1,"spillway_error":"copy: panic: slip"} t.x {"n":1,"user":2,"a":1,"spillway_error":"copy: no"}]`
		if letters != "" {
			want = "[]"
			if len(got.Failed) != 2 || got.Failed[1].Reason != "copy: no" || got.Failed[1].Index != 1 ||
				!bytes.Equal(got.Failed[1].Entry, entry) {
				t.Errorf("%+v", got.Failed)
			}
		}
		if lines != want {
			t.Errorf("%s\nwant\n%s", lines, want)
		}
	}
}

// TestStrict: where a step fails that takes something out, the event goes nowhere, whatever the
// route says, also if another one has failed before.
func TestStrict(t *testing.T) {
	for _, do := range []Step{
		{Mask: []string{"user"}},
		{Remove: []string{"user"}},
		{Hash: &Hash{Fields: []string{"user"}, Key: hashKey}},
		{Redact: &Redact{}},
		{Keep: "user == 2"},
		{Drop: "user == 3"},
		{Sample: &Sample{Share: 1}},
	} {
		s := sifterOf(t, OnErrorField, Step{Tag: "{missing}"}, do, Step{Set: Values{{"a", 1}}})
		for _, r := range s.rules {
			a := &r.program.actions[1]
			if a.holds != nil {
				a.holds = func(*event) bool { panic("slip") }
			} else {
				a.do = func(*event) error { panic("slip") }
			}
		}
		var got Sifted
		if err := s.Sift(&got, "t", entryOf(t, plainHead, `{"user":2}`), 1, 0); err != nil {
			t.Fatal(err)
		}
		if len(got.Runs) != 0 || len(got.Failed) != 1 || !strings.HasSuffix(got.Failed[0].Reason, ": panic: slip") {
			t.Errorf("%+v: %q, %+v", do, linesOf(t, &got, plainHead), got.Failed)
		}
	}
}

// TestLargeMasked: what steps leave behind while they change an event does not count as a part of
// it: a large one is masked, however many fields of a map are.
func TestLargeMasked(t *testing.T) {
	x := strings.Repeat("x", 900<<10)
	inner := fmt.Sprintf(`{"a":1,"b":2,"c":3,"d":4,"x":%q}`, x)
	for name, tt := range map[string]struct {
		do     []Step
		record string
	}{
		"a step": {[]Step{{Mask: []string{"user.a", "user.b", "user.c", "user.d"}}}, `{"user":` + inner + `}`},
		"several": {[]Step{
			{Mask: []string{"user.a"}},
			{Mask: []string{"user.b"}},
			{Mask: []string{"user.c"}},
			{Mask: []string{"user.d"}},
		}, `{"user":` + inner + `}`},
		"behind a copy": {
			[]Step{
				{Parse: &Parse{Field: "m", As: "json", Into: "user"}},
				{Mask: []string{"user.a", "user.b"}},
				{Mask: []string{"user.c", "user.d"}},
			},
			fmt.Sprintf(`{"m":%q}`, inner),
		},
		"and set": {[]Step{{Set: Values{
			{"user.a", "***"},
			{"user.b", "***"},
			{"user.c", "***"},
			{"user.d", "***"},
		}}}, `{"user":` + inner + `}`},
	} {
		s := sifterOf(t, "", append(tt.do, Step{Remove: []string{"user.x"}})...)
		var got Sifted
		if err := s.Sift(&got, "t", entryOf(t, plainHead, tt.record), 1, 0); err != nil {
			t.Fatal(err)
		}
		want := `[t {"user":{"a":"***","b":"***","c":"***","d":"***"}}]`
		if lines := fmt.Sprint(linesOf(t, &got, plainHead)); lines != want {
			t.Errorf("%s: %.300s, %d failed", name, lines, len(got.Failed))
		}
		if cap(s.event.room) > 8<<20 {
			t.Errorf("%s: %d bytes of memory", name, cap(s.event.room))
		}
	}
}

// TestParseInto: a parse into a map that is there takes as many fields as one into the record.
func TestParseInto(t *testing.T) {
	var pairs strings.Builder
	const n = 5000
	for i := range n {
		fmt.Fprintf(&pairs, `"k%d":%d,`, i, i)
	}
	text := fmt.Sprintf("{%s%q:1}", pairs.String(), "x")
	s := sifterOf(t, "", Step{Parse: &Parse{Field: "m", As: "json", Into: "p.q"}})
	var got Sifted
	if err := s.Sift(&got, "t", entryOf(t, plainHead,
		fmt.Sprintf(`{"m":%q,"p":{"q":{"x":0,"y":2,"x":3},"r":1}}`, text)), 1, 0); err != nil {
		t.Fatal(err)
	}
	want := `[t {"p":{"q":{"x":0,"y":2,"x":1,` + strings.TrimSuffix(pairs.String(), ",") + `},"r":1}}]`
	if lines := fmt.Sprint(linesOf(t, &got, plainHead)); lines != want {
		t.Errorf("%.200s … %.200s", lines, lines[max(0, len(lines)-200):])
	}
}

// TestTooLarge: steps that would make too much of an event fail.
func TestTooLarge(t *testing.T) {
	var do []Step
	for i := range 30 {
		do = append(do, Step{Copy: Names{{"a", fmt.Sprintf("b.x%d", i)}}}, Step{Copy: Names{{"b", "a.y"}}})
	}
	var got Sifted
	if err := sifterOf(t, "", do...).Sift(&got, "t",
		entryOf(t, plainHead, fmt.Sprintf(`{"a":{"z":%q}}`, strings.Repeat("x", 1000))), 1, 0); err != nil {
		t.Fatal(err)
	}
	if len(got.Entries) > 2<<20 || !bytes.Contains(got.Entries, []byte(": the event would be too large")) {
		t.Errorf("%d bytes, and at their end %q", len(got.Entries), got.Entries[max(0, len(got.Entries)-100):])
	}
}

// TestManyFields: a record with too many fields is a dead letter, whatever the route says: steps
// that would drop or mask it have not run. What made room for a large one does not keep it.
func TestManyFields(t *testing.T) {
	entry := append(bytes.Clone(plainHead), 0xdf, 0, 1, 0, 1)
	for range maxFields + 1 {
		entry = append(entry, 0xa1, 'x', 1)
	}
	small := entryOf(t, plainHead, `{"x":1}`)
	s := sifterOf(t, "", Step{Mask: []string{"x"}})
	var got Sifted
	if err := s.Sift(&got, "t", slices.Concat(small, entry, small), 1, 0); err != nil {
		t.Fatal(err)
	}
	if lines := fmt.Sprint(linesOf(t, &got, plainHead)); lines != `[t {"x":"***"} t {"x":"***"}]` {
		t.Error(lines)
	}
	if len(got.Failed) != 1 || got.Failed[0].Index != 1 || !bytes.Equal(got.Failed[0].Entry, entry) {
		t.Errorf("%d failed", len(got.Failed))
	}
	text := "{" + strings.Repeat(`"a":1,`, maxFields) + `"b":2}`
	long := msgpack.AppendString(msgpack.AppendString(append(bytes.Clone(plainHead), 0x81), "m"), text)
	if err := sifterOf(t, "", Step{Parse: &Parse{Field: "m", As: "json"}}).Sift(&got, "t", long, 1, 0); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(got.Entries, []byte("parse: m: the event would be too large")) {
		t.Errorf("%d bytes", len(got.Entries))
	}
	if cap(s.event.fields) > keepsFields || cap(s.event.room) > keepsBytes {
		t.Error("memory is kept")
	}
}

// TestAllocs: a chain of steps allocates nothing an event.
func TestAllocs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.csv")
	tableFile(t, path, "agent,kind\n"+"Mozilla/5.0 (X11; Linux x86_64),browser\n")
	s := sifterOf(t, "", Step{Drop: `level == "DEBUG"`}, Step{Rename: Names{{"msg", "message"}}},
		Step{Set: Values{{"env", "production"}}}, Step{Mask: []string{"user.email"}}, Step{Tag: "x.{host}"},
		Step{Lookup: &Lookup{File: path, Field: "agent", Into: "client"}},
		Step{Throttle: &Throttle{Events: 1e6, Per: time.Hour, By: []string{"host", "bytes", "tag"}, Count: "more"}},
		Step{Dedup: &Dedup{Window: time.Second, Keys: 100}}, Step{Dedup: &Dedup{
			Window: 1, By: []string{"trace"},
			Keys: 100,
		}})
	entries := tenFields(1000)
	var into Sifted
	if n := testing.AllocsPerRun(100, func() {
		if err := s.Sift(&into, "app.web", entries, 1, 0); err != nil {
			t.Fatal(err)
		}
		record, _ := s.Learnt()
		s.Settle(record)
	}); n > 0 && !raceEnabled {
		t.Errorf("%v allocations in 1000 events", n)
	}
}

// TestGlobs has tags match patterns, or not.
func TestGlobs(t *testing.T) {
	for _, tt := range []struct{ pattern, yes, no string }{
		{"**", "a a.b . .. ", ""},
		{"*", "a abc", "a.b ."},
		{"app.**", "app app.a app.a.b app.", "apps xapp x.app"},
		{"**.app", "app a.app a.b.app .app", "app.x apps"},
		{"a.**.z", "a.z a.b.z a.b.c.z a.z.z", "a z a.b"},
		{"a.*.z", "a.b.z a..z", "a.z a.b.c.z"},
		{"{a,b}.{c,d*}", "a.c b.d b.dx", "a a.e c.a"},
		{"a{,.b}", "a a.b", "a.c ab"},
		{"w*b*x", "wbx wabcx wbbx", "wb bx w.b.x"},
		{"**.a.**.b.**", "a.b x.a.y.b.z a.a.b", "b.a a b"},
		{"", "", ""},
	} {
		g, err := parseGlob(tt.pattern)
		if (err != nil) != (tt.pattern == "") {
			t.Errorf("%s: %v", tt.pattern, err)
		}
		for _, tag := range strings.Fields(tt.yes) {
			if !g.match(tag) {
				t.Errorf("%s does not match %s", tt.pattern, tag)
			}
		}
		for _, tag := range strings.Fields(tt.no) {
			if g.match(tag) {
				t.Errorf("%s matches %s", tt.pattern, tag)
			}
		}
	}
	for _, bad := range []string{"a**", "a.**b", "{a", "a}", "{a,{b}}", strings.Repeat("{a,b}", 9)} {
		if _, err := parseGlob(bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// TestMark: the same steps have the same mark each time that they are read, for ids of chunks come
// of it; others have another one. Same compares all that an output gets.
func TestMark(t *testing.T) {
	routes := func(pattern, key string, share float64) []Route {
		return []Route{
			{Match: "a", To: []string{"y"}},
			{
				Match: pattern, To: []string{"x"},
				Do: []Step{
					{Hash: &Hash{Fields: []string{"a"}, Key: key}},
					{Sample: &Sample{Share: share}},
					{Set: Values{{"a", Values{{"b", []any{1.5, nil}}}}}},
				},
			},
		}
	}
	letters, float := routes("**", hashKey, 0.5), routes("**", hashKey, 0.5)
	letters[1].OnError = OnErrorLetter
	float[1].Do[2].Set = Values{{"a", Values{{"b", []any{1.5, nil}}, {"c", 1.0}}}}
	whole := routes("**", hashKey, 0.5)
	whole[1].Do[2].Set = Values{{"a", Values{{"b", []any{1.5, nil}}, {"c", 1}}}}
	most := int64(1 << 20)
	read := func(list []Route) *Sifter {
		r, err := Read(list, []string{"x", "y"}, most, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r.For("x")
	}
	first := read(routes("**", hashKey, 0.5))
	for name, other := range map[string]struct {
		routes []Route
		mark   bool // the same
	}{
		"again":   {routes("**", hashKey, 0.5), true},
		"key":     {routes("**", hashKey+"x", 0.5), false},
		"share":   {routes("**", hashKey, 0.25), false},
		"pattern": {routes("*", hashKey, 0.5), false},
		"beside": {
			append([]Route{{Match: "b", To: []string{"y"}, Continue: true}}, routes("**", hashKey, 0.5)...),
			true,
		},
		"more": {append([]Route{{Match: "b", To: []string{"y"}}}, routes("**", hashKey, 0.5)...), true},
	} {
		s := read(other.routes)
		if bytes.Equal(s.Mark(), first.Mark()) != other.mark || s.Same(first) != (name == "again" || name == "beside") {
			t.Errorf("%s: mark %v, same %v", name, bytes.Equal(s.Mark(), first.Mark()), s.Same(first))
		}
	}
	if a, b := read(float), read(whole); bytes.Equal(a.Mark(), b.Mark()) || a.Same(b) {
		t.Error("1 is 1.0")
	}
	if a := read(letters); bytes.Equal(a.Mark(), first.Mark()) || a.Same(first) {
		t.Error("where events go of which a step fails makes no difference")
	}
	most *= 2
	if a := read(routes("**", hashKey, 0.5)); bytes.Equal(a.Mark(), first.Mark()) || a.Same(first) {
		t.Error("how large an event may be makes no difference")
	}
	most /= 2
	other := routes("**", hashKey, 0.5) // routes for another output, before and behind
	other[1].Continue = true
	other = slices.Concat([]Route{{Match: "b", To: []string{"y"}, Continue: true}}, other,
		[]Route{{Match: "c", To: []string{"y"}}})
	if s := read(other); !s.Same(first) || len(s.rules) != len(first.rules) {
		t.Error("routes that do not concern the output make a difference")
	}
	if (*Sifter)(nil).Same(first) || first.Same(nil) || !(*Sifter)(nil).Same(nil) {
		t.Error("one that is none")
	}
}

// TestShares: by first match, unless it says continue; an output gets an event once at most.
func TestShares(t *testing.T) {
	r, err := Read([]Route{
		{Match: "a.**", To: []string{"x"}, Continue: true},
		{Match: "a.b", To: []string{"y"}, Do: []Step{{Remove: []string{"x"}}}},
		{Match: "drop.**"},
		{Match: "**", To: []string{"x", "y", "z"}},
	}, []string{"x", "y", "z"}, 1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	for tag, want := range map[string]string{"a.c": "[1 1 1]", "a.b": "[1 2 0]", "drop": "[0 0 0]", "q": "[1 1 1]"} {
		if got := fmt.Sprintf("%d", []Share{
			r.For("x").Takes(tag), r.For("y").Takes(tag),
			r.For("z").Takes(tag),
		}); got != want {
			t.Errorf("%s: %s, want %s", tag, got, want)
		}
	}
	one, err := Read([]Route{{Match: "**", To: []string{"x"}}}, []string{"x"}, 1<<20, nil)
	if err != nil || one.For("x") != nil {
		t.Errorf("one route without steps costs something: %v", err)
	}
	s := r.For("x")
	for i := range 3 * maxTags {
		s.Takes(fmt.Sprint("t", i))
	}
	if len(s.shares) > maxTags {
		t.Errorf("%d tags are remembered", len(s.shares))
	}
}
