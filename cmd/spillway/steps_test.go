// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/internal/step"
)

// TestStepExamples: each step has an example, with tests that look at it.
func TestStepExamples(t *testing.T) {
	files := map[string]string{}
	for _, path := range exampleFiles(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(path)] = string(text)
	}
	for _, kind := range step.Kinds() {
		text := files["step_"+kind+".yaml"]
		if !strings.Contains(text, "- "+kind+": ") && !strings.Contains(text, "- "+kind+":\n") ||
			!strings.Contains(text, "\ntests:\n") {
			t.Errorf("there is no example of %s with tests", kind)
		}
	}
}

// TestConfigTests: check says what tests of a file differ in, each at its place, and nothing else.
func TestConfigTests(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.yaml")
	text := `outputs: {a: "discard:", b: "discard:", c: "discard:"}
routes:
  - match: "app"
    do: [{mask: user.mail}, {rename: {a: b}}, {drop: b > 5}]
    to: a
    continue: true
  - match: "**"
    do: [{tag: "{x}"}]
    to: [b, c]
    on_error: letter
`
	for _, tt := range []struct{ test, want string }{
		{
			`{name: t, input: {tag: app, record: {a: 1}}, expect: {a: {record: {b: 1.0}}, b: 1, c: 0}}`,
			"output b: the event is a dead letter: tag: x is missing, or no text and no number",
		},
		{`{name: t, input: {tag: app, record: {a: 6, x: y}}, expect: {a: 0, b: 1, c: {tag: y}}}`, ""},
		{`{name: t, input: {tag: app, record: {a: 6}}, expect: {a: 1}}`, "output a: it gets nothing"},
		{
			`{name: t, input: {tag: other, record: {x: z}}, expect: {a: 1, b: 0}}`,
			"output a: it gets nothing|output b: it gets {\"x\":\"z\"} with the tag \"z\"",
		},
		{
			`{name: t, input: {tag: app, time: "2026-11-25T12:00:00.5+01:00", record: {user: {mail: x, id: 7}, l: [1, 2.5]}}, expect: {a: {tag: aqp, time: "2026-11-25T11:00:01Z", record: {user: {mail: x}, l: [1, 2], q: 1}}}}`,
			`the tag is "app", not "aqp"|the time is 2026-11-25T11:00:00.5Z, not 2026-11-25T11:00:01Z|l is [1,2.5], not [1,2]|q is missing|user.id is there: 7|user.mail is "***", not "x"`,
		},
		{`{name: t, input: {tag: app, time: "2026-11-25T11:00:00.5Z", record: {l: [1, 2.5, null, {x: true}]}}, expect: {a: {time: "2026-11-25T12:00:00.5+01:00", record: {l: [1.0, 2.50, null, {x: true}]}}}}`, ""},
		{
			`{name: t, input: {tag: app, record: {a: 1}}, expect: {aa: 1, a: {tags: x}}}`,
			`there is no output "aa"|unknown key "tags"; did you mean "tag"?`,
		},
		{
			`{name: t, input: {tag: app, record: {a: 1}}, expect: {a: 2}}`,
			"output a: it gets 1 events, not 2: {\"b\":1} with the tag \"app\"",
		},
		{`{name: t, input: [{tag: app, record: {a: 1}}, {tag: app, record: {a: 6}}, {tag: app, record: {a: 2}}], expect: {a: [{record: {b: 1}}, {record: {b: 3}}], b: [], c: 0}}`, "output a: event 1: b is 2, not 3"},
		{
			`{name: t, input: [{tag: app, record: {a: 1}}, {tag: app, record: {a: 2}}], expect: {a: [{}]}}`,
			`it gets 2 events, not 1: {"b":1} with the tag "app", {"b":2} with the tag "app"`,
		},
		{`{name: t, input: [{tag: other, record: {a: 1}}, {tag: other, record: {x: z}}], expect: {b: 2, c: [{tag: z}]}}`, `it gets 1 events, not 2: {"x":"z"} with the tag "z"; the event is a dead letter: tag: x is missing`},
		{
			`{name: t, input: {tag: app, record: {a: 1}}, expect: {a: -1, b: x, c: [1]}}`,
			strings.Repeat("what is expected is a number of events, or a map with tag, time or record, or a list of such|", 2) + "or a list of such",
		},
		{`{name: t, input: [], expect: {a: 1}}`, "its input has no record"},
		{`{name: t, input: [{tag: app, record: {a: 1}}, {tag: app}], expect: {a: 1}}`, "its input has no record"},
		{`{name: t, input: {tag: app}, expect: {a: 1}}`, "its input has no record"},
		{`{name: t, input: {tag: app, record: {}}, expect: {a: {tag: app, record: {}}}}`, ""},
		{`{name: t, input: {tag: app, record: }, expect: {a: 1}}`, "record is a map of fields to values, not nothing"},
		{`{input: {tag: app, record: {a: 1}}}`, "a test has name, input and expect"},
		{`{name: t, input: {tag: app, time: noon, record: {a: 1}}, expect: {a: 1}}`, `the time "noon" is none such as`},
		{`{name: t, input: {tag: app, time: 1969-12-31T23:59:59Z, record: {a: 1}}, expect: {a: 1}}`, `the time "1969-12-31T23:59:59Z" is none that an event can have: 1970-01-01T00:00:00Z to 2106-02-07T06:28:15Z`},
		{`{name: t, input: {tag: app, time: 2106-02-07T06:28:16Z, record: {a: 1}}, expect: {a: 1}}`, `the time "2106-02-07T06:28:16Z" is none that`},
		{`{name: t, input: [{tag: app, time: 1970-01-01T00:00:00Z, record: {a: 1}}, {tag: app, time: "2106-02-07T07:28:15.999999999+01:00", record: {a: 1}}], expect: {a: [{time: 1970-01-01T00:00:00Z}, {time: "2106-02-07T06:28:15.999999999Z"}]}}`, ""},
	} {
		if err := os.WriteFile(file, []byte(text+"tests:\n  - "+tt.test+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		got := command(t, "", "check", "-c", file)
		if (got.code == 0) != (tt.want == "") || got.out != "" || tt.want == "" && got.err != "" {
			t.Errorf("%s: %+v", tt.test, got)
		}
		wants := strings.Split(tt.want, "|")
		for _, want := range wants {
			if !strings.Contains(got.err, want) {
				t.Errorf("%s: there is no %q in\n%s", tt.test, want, got.err)
			}
		}
		if n := strings.Count(got.err, file+":12:"); tt.want != "" && n != len(wants) {
			t.Errorf("%s: %d differences, want %d:\n%s", tt.test, n, len(wants), got.err)
		}
	}
}
