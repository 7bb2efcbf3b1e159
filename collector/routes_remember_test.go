// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/step"
)

// TestRoutesRemember: what a step remembers is each output's own, outlives restarts and changes of
// other steps, and begins anew where the step is another one.
func TestRoutesRemember(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	dedup := Step{Dedup: &step.Dedup{Window: time.Hour, By: []string{"n"}}}
	conf := func(one, two []Step) *Config {
		return &Config{
			Inputs: Ends("forward://127.0.0.1:0"), Dir: path("data"), Drain: time.Minute, Log: logTo(testWriter{t}),
			Ack:     AckDelivered, // so that an output has begun with what was sent, and ended
			Outputs: []End{{Name: "one", URL: fileURL(path("one"))}, {Name: "two", URL: fileURL(path("two"))}},
			Routes: []Route{
				{Match: "**", To: []string{"one"}, Do: one, Continue: true},
				{Match: "**", To: []string{"two"}, Do: two},
			},
		}
	}
	before := []Step{{Drop: "n == 2"}, dedup}
	r := run(t, conf([]Step{dedup}, before))
	send(t, r.client(t), numbered("t", 0, 4), numbered("t", 0, 5))
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r = run(t, conf([]Step{dedup}, before))
	c := r.client(t)
	send(t, c, numbered("t", 0, 6))
	if err := r.Apply(conf([]Step{{Dedup: &step.Dedup{Window: 2 * time.Hour, By: []string{"n"}}}},
		[]Step{dedup})); err != nil {
		t.Fatal(err)
	}
	send(t, c, numbered("t", 0, 7), numbered("t", 0, 7))
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	wantFile(t, path("one"), numberedLines("t", 0, 6)+numberedLines("t", 0, 7))
	wantFile(t, path("two"), numberedLines("t", 0, 2)+numberedLines("t", 3, 3)+numberedLines("t", 2,
		1)+numberedLines("t", 6, 1))
	if s := r.Stats(); s.Outputs[0].Filtered != 12 || s.Outputs[1].Filtered != 17 {
		t.Errorf("%+v", s.Outputs)
	}
}

// TestRouteTables: a table is read at the start, at Apply, and when its file changes; a broken file
// stops neither, but is a mistake of a configuration.
func TestRouteTables(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path("x.csv"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	conf := func() *Config {
		return &Config{
			Inputs: Ends("forward://127.0.0.1:0"), Dir: path("data"), Drain: time.Minute, Log: logTo(testWriter{t}),
			Ack:     AckDelivered,
			Outputs: []End{{Name: "out", URL: fileURL(path("out"))}},
			Routes: []Route{{
				Match: "**", To: []string{"out"},
				Do: []Step{{Lookup: &step.Lookup{Field: "n", File: path("x.csv")}}},
			}},
		}
	}
	missing := "routes[0].do[0].lookup.file: " + path("x.csv") + ": "
	if err := conf().Check(); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("%v, want %s", err, missing)
	}
	write("n,is\n0,nought\n")
	r := run(t, conf())
	c := r.client(t)
	untouched := r.pumpNamed("out")
	say := func() {
		t.Helper()
		send(t, c, numbered("t", 0, 1))
	}
	say()
	write("n,is\n0,zero\n")
	if err := r.Apply(conf()); err != nil {
		t.Fatal(err)
	}
	say()
	write("n,is\n0,null\n")
	if err := r.routes.Load().Refresh(); err != nil { // as watchTables does
		t.Fatal(err)
	}
	say()
	write("n,is\n0\n")
	if err := r.routes.Load().Refresh(); err == nil ||
		!strings.Contains(err.Error(), "line 2: wrong number of fields; what was read before stays in force") {
		t.Error(err)
	}
	if err := r.Apply(conf()); err == nil || !strings.Contains(err.Error(), missing+"line 2: wrong number of fields") {
		t.Error(err)
	}
	say()
	if r.pumpNamed("out") != untouched {
		t.Error("the output was opened again")
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	var want string
	for _, is := range []string{"nought", "zero", "null", "null"} {
		want += lineOf("t", 0, `,"is":"`+is+`"`)
	}
	wantFile(t, path("out"), want)
}
