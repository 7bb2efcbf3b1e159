// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/step"
	"github.com/spillwaylog/spillway/msgpack"
)

func TestTemplates(t *testing.T) {
	record, _, err := msgpack.AppendFromJSONText(nil,
		[]byte(`{"user":{"id":"ann"},"n":7,"none":null,"empty":"","list":[1,"x"],"tag":"field"}`))
	must(t, err)
	for _, tt := range []struct{ text, tag, want string }{
		{"", "app", ""},
		{"plain", "app", "plain"},
		{"{tag}", "app.web", "app.web"},
		{"logs.{tag[0]}-{tag[1]}", "app.web.x", "logs.app-web"},
		{"{tag[2]}", "app.web.x", "x"},
		{"<{tag[3]}>", "app.web.x", "<>"},
		{"{tag[1]|rest}", "app", "rest"},
		{"{tag[0]|rest}", "", "rest"},
		{"{tag[0]|rest}{tag[1]}", ".web", "restweb"},
		{"{tag|x}", "", "x"},
		{"{user.id}/{n}", "", "ann/7"},
		{"{user.id|none}", "", "ann"},
		{"{user.name|none}", "", "none"},
		{"{user.id.x|none}", "", "none"},
		{"{none|nil}{empty|void}", "", "nilvoid"},
		{"{none}{empty}", "", ""},
		{"{n|}", "", "7"},
		{"{x|a|b}", "", "a|b"},
		{"{list}", "", `[1,"x"]`},
	} {
		p, err := parseTemplate(tt.text)
		must(t, err)
		if got := string(p.append([]byte("|"), tt.tag, record)); got != "|"+tt.want {
			t.Errorf("%s of %q: %q, want %q", tt.text, tt.tag, got, tt.want)
		}
		if p.varies() != strings.Contains(tt.text, "{") {
			t.Errorf("%s: it varies: %v", tt.text, p.varies())
		}
	}
}

// FuzzTopic reads any template and any patterns, and makes topics of any tag and record: what comes
// out is a topic's name that a pattern allows, or is refused, and there are no more than asked for.
func FuzzTopic(f *testing.F) {
	f.Add("logs.{tag[0]}", "logs.*,audit", "app.web", []byte("\x80"))
	f.Add("{user.id|none}", "*", "", []byte("\x81\xa4user\x81\xa2id\xa3ann"))
	f.Add("{tag[1]|x}{tag}", "[a-z]*", ".a..", []byte("\x81\xa4user"))
	f.Add("..", "*", "..", []byte(""))
	f.Fuzz(func(t *testing.T, text, patterns, tag string, record []byte) {
		made, err := parseTemplate(text)
		if err != nil {
			return
		}
		out := made.append([]byte("x"), tag, record)
		if out[0] != 'x' || len(out) > 1+len(text)+len(text)*(len(tag)+6*len(record)+16) {
			t.Fatalf("%q of %q and %x: %d bytes", text, tag, record, len(out))
		}
		for n, part := range strings.SplitN(tag, ".", 4)[:min(3, 1+strings.Count(tag, "."))] {
			if n < 3 && step.TagPart(tag, n) != part {
				t.Errorf("part %d of %q is %q, want %q", n, tag, step.TagPart(tag, n), part)
			}
		}
		allowed, err := parseAllowed(patterns)
		if err != nil {
			return
		}
		all := topics{choice: &choice{allowed: allowed, limit: 2, cursors: "cursors"}}
		for _, name := range []string{string(out[1:]), tag, text, "cursors", string(out)} {
			topic, why, ok := all.of([]byte(name))
			switch {
			case ok && (topic != name || !isTopic(name) || name == "cursors"):
				t.Errorf("%q is topic %q", name, topic)
			case !ok && all.error(why, []byte(name)) == nil:
				t.Errorf("%q is refused for nothing", name)
			}
		}
		if len(all.names) > 2 {
			t.Errorf("%d topics", len(all.names))
		}
	})
}

// FuzzTemplate compares a field's text with that of a slow reader.
func FuzzTemplate(f *testing.F) {
	f.Add(`{"user":{"id":"u1"},"n":5}`, "user", "id")
	f.Add(`{"user":{"id":{"x":[1,2,"a"]}}}`, "user", "id")
	f.Add(`{"user":7}`, "user", "id")
	f.Add(`{"a":{"b":"first"},"a":{"b":"last"}}`, "a", "b")
	f.Fuzz(func(t *testing.T, text, one, two string) {
		var tree map[string]any
		if json.Unmarshal([]byte(text), &tree) != nil || tree == nil {
			return
		}
		// One spelling, without repeated keys, which JSON readers of Go merge.
		text1, err := json.Marshal(tree)
		must(t, err)
		record, n, err := msgpack.AppendFromJSONText(nil, text1)
		if err != nil || n != len(text1) {
			return
		}
		want := ""
		if inner, ok := tree[one].(map[string]any); ok {
			switch v := inner[two].(type) {
			case string:
				want = v
			case nil:
			default:
				value, _, err := msgpack.AppendFromJSONText(nil, must1(t, v))
				must(t, err)
				out, _, err := msgpack.AppendJSON(nil, value, forward.AppendExtJSON)
				must(t, err)
				want = string(out)
			}
		}
		got := template{{path: []string{one, two}}}.append(nil, "tag", record)
		if string(got) != want {
			t.Errorf("%s: %q.%q is %q, want %q", text1, one, two, got, want)
		}
		for cut := range record { // whatever is missing, nothing panics
			template{{path: []string{one, two}}}.append(nil, "tag", record[:cut:cut])
		}
	})
}

func must1(t *testing.T, v any) []byte {
	b, err := json.Marshal(v)
	must(t, err)
	return bytes.TrimSpace(b)
}
