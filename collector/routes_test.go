// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/follow"
	"github.com/spillwaylog/spillway/msgpack"
)

// lineOf is the line of an event as numbered makes it, with what steps add.
func lineOf(tag string, n int, more string) string {
	return fmt.Sprintf(`{"time":"2023-11-14T22:13:20.000000005Z","tag":%q,"n":%d%s}`+"\n", tag, n, more)
}

// TestRoutes: each output has what its routes lead to it, made by their steps, in order; what it
// does not get is filtered, and the laws hold, over restarts.
func TestRoutes(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	var out syncBuffer
	conf := &Config{
		Dir: path("data"), Stdout: &out,
		Outputs: []End{
			{Name: "some", URL: fileURL(path("some"))},
			{Name: "all", URL: fileURL(path("all"))},
			{Name: "tags", URL: fileURL(path("tags"))},
			{Name: "none", URL: "discard:"},
			{Name: "out", URL: "stdout:"},
		},
		Routes: []Route{
			{
				Match: "app.**", To: []string{"some", "none"}, Continue: true,
				Do: []Step{{Drop: "n >= 3"}, {Set: Values{{Field: "x", Value: "y"}}}},
			},
			{
				Match: "app.*", To: []string{"tags", "out"}, Continue: true,
				Do: []Step{{Keep: "n < 4 or n > 100"}, {Tag: "t.{n}"}},
			},
			{Match: "none.*", To: []string{"none"}},
			{Match: "**", To: []string{"all"}},
		},
	}
	var some, all, tags string
	for round := range 3 {
		r := run(t, conf)
		c := r.client(t)
		send(t, c, numbered("app.a", 0, 6), numbered("other", 10*round, 2), numbered("app.b", 3, 3),
			numbered("app.c", 101, 2))
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		for n := range 3 {
			some += lineOf("app.a", n, `,"x":"y"`)
		}
		for _, n := range []int{0, 1, 2, 3, 3, 101, 102} {
			tags += lineOf(fmt.Sprint("t.", n), n, "")
		}
		all += numberedLines("app.a", 0, 6) + numberedLines("other", 10*round, 2) + numberedLines("app.b", 3,
			3) + numberedLines("app.c", 101, 2)
		s := r.Stats()
		wantLaws(t, s)
		for i, want := range []struct{ out, filtered, chunks int64 }{
			{3, 10, 1},
			{13, 0, 4},
			{7, 6, 7},
			{3, 10, 1},
			{7, 6, 7},
		} {
			if o := s.Outputs[i]; o.Out != want.out || o.Filtered != want.filtered || o.Chunks != want.chunks ||
				o.Behind != 0 || o.Found != 0 {
				t.Errorf("round %d: %+v, want %+v", round, o, want)
			}
		}
	}
	wantFile(t, path("some"), some)
	wantFile(t, path("all"), all)
	wantFile(t, path("tags"), tags)
	if out.String() != tags {
		t.Errorf("standard output: %s", out.String())
	}
}

// TestRouteLetters: an event of which a step fails goes on with a field that says so, or is a dead
// letter as it came, as the route says.
func TestRouteLetters(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	bad := []Step{{Set: Values{{Field: "a", Value: 1}}}, {Tag: "x.{missing}"}, {Set: Values{{Field: "b", Value: 2}}}}
	r := run(t, &Config{
		Dir:     path("data"),
		Outputs: []End{{Name: "field", URL: fileURL(path("field"))}, {Name: "letter", URL: fileURL(path("letter"))}},
		Routes: []Route{
			{Match: "**", To: []string{"field"}, Do: bad, Continue: true},
			{Match: "**", To: []string{"letter"}, Do: bad, OnError: "letter"},
		},
	})
	send(t, r.client(t), numbered("t", 0, 3))
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	var want string
	for n := range 3 {
		want += lineOf("t", n, `,"a":1,"b":2,"spillway_error":"tag: missing is missing, or no text and no number"`)
	}
	wantFile(t, path("field"), want)
	s := r.Stats()
	if o := s.Outputs[1]; o.Out != 0 || o.DeadLettered != 3 || o.Filtered != 0 || s.Letters.Events != 3 {
		t.Errorf("%+v, letters %+v", o, s.Letters)
	}
	if b, err := os.ReadFile(path("letter")); err == nil && len(b) > 0 {
		t.Errorf("the output got %s", b)
	}
}

// TestRouteMistakes: all that is wrong is told, with its place.
func TestRouteMistakes(t *testing.T) {
	err := (&Config{
		Outputs: []End{{Name: "a", URL: "discard:"}, {Name: "b", URL: "discard:"}, {URL: "stdout:?format=text"}},
		Routes: []Route{
			{Match: "", To: []string{"a", "c"}},
			{
				Match: "x", To: []string{"a", "a"}, OnError: "no",
				Do: []Step{{}, {Drop: "a", Keep: "b"}, {Drop: "a ="}, {Rename: Names{{"x", "x"}}}},
			},
		},
	}).Check()
	for _, want := range []string{
		"routes[0].match: match is missing", `routes[0].to[1]: there is no output "c"`,
		"routes[1].to[1]: a is named twice",
		"routes[1].on_error: on_error is field or letter", "routes[1].do[0]: a step is one of keep, drop,",
		"routes[1].do[1]: these are 2 steps",
		"routes[1].do[2].drop: = is no comparison; == is", "routes[1].do[3].rename.x: both names are the same",
		"routes: no route leads to the output b", "and stdout: has none",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%v", want, err)
		}
	}
	err = (&Config{
		Outputs: []End{{Name: "a", URL: "discard:"}, {Name: "b", URL: "discard:"}},
		Routes: []Route{
			{Match: "x.**", To: []string{"b"}},
			{Match: "**", To: []string{"a"}},
			{Match: "app.**", To: []string{"b"}},
		},
	}).Check()
	if want := "routes[2].match: no event comes here: routes[1] matches all, and does not say continue"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%q is not in\n%v", want, err)
	}
	var one *RouteError
	if !errors.As(err, &one) {
		t.Errorf("%T", err)
	}
}

// TestRoutesLarge: steps run on an event that an output would else read where it stands, and on one
// in a record that is cut into pieces.
func TestRoutesLarge(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	c := numbered("t", 0, 2)
	text := strings.Repeat("x", 5<<20)
	c.Entries = append(c.Entries, "\x92\x01\x82\xa1n\x02\xa1x"...)
	c.Entries = msgpack.AppendString(c.Entries, text)
	c.Entries = append(c.Entries, numbered("t", 3, 2).Entries...)
	c.Events = 5
	r := run(t, &Config{
		Dir: filepath.Join(dir, "data"), Outputs: []End{{Name: "out", URL: fileURL(path) + "?time_key=-&tag_key=-"}},
		Routes: []Route{{
			Match: "**", To: []string{"out"},
			Do: []Step{
				{Drop: "n == 1 or n == 4"},
				{Rename: Names{{"x", "y"}}},
				{Set: Values{{Field: "z", Value: true}}},
			},
		}},
	})
	send(t, r.client(t), c)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	wantFile(t, path, `{"n":0,"z":true}`+"\n"+`{"n":2,"y":"`+text+`","z":true}`+"\n"+`{"n":3,"z":true}`+"\n")
	if o := r.Stats().Outputs[0]; o.Out != 3 || o.Filtered != 2 {
		t.Errorf("%+v", o)
	}
}

// TestApplyRoutes: other routes begin behind what an output has begun, while the collector runs;
// those to which nothing else leads are not touched.
func TestApplyRoutes(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	conf := func(limit int, more ...End) *Config {
		all := Route{Match: "**", To: []string{"all"}}
		for _, e := range more {
			all.To = append(all.To, e.Name)
		}
		return &Config{
			Inputs: Ends("forward://127.0.0.1:0"), Dir: path("data"), Drain: time.Minute, Log: logTo(testWriter{t}),
			Ack: AckDelivered, // so that an output has begun with what was sent, and ended
			Outputs: append([]End{{Name: "some", URL: fileURL(path("some"))}, {Name: "all", URL: fileURL(path("all"))}},
				more...),
			Routes: []Route{{
				Match: "**", To: []string{"some"}, Continue: true,
				Do: []Step{{Drop: fmt.Sprintf("n >= %d", limit)}},
			}, all},
		}
	}
	r := run(t, conf(3))
	c := r.client(t)
	send(t, c, numbered("t", 0, 5))
	untouched := r.pumpNamed("all")
	for _, err := range []error{r.Apply(conf(3)), r.Apply(conf(4))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	send(t, c, numbered("t", 0, 5))
	if r.pumpNamed("all") != untouched {
		t.Error("an output to which nothing else leads was opened again")
	}
	if err := r.Apply(conf(4, End{Name: "new", URL: fileURL(path("new"))})); err != nil {
		t.Fatal(err)
	}
	send(t, c, numbered("t", 5, 5))
	bad := conf(4)
	bad.Routes[0].Do = []Step{{Drop: "n ="}}
	if err := r.Apply(bad); err == nil {
		t.Error("a mistake in a route is taken")
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	wantFile(t, path("some"), numberedLines("t", 0, 3)+numberedLines("t", 0, 4))
	wantFile(t, path("all"), numberedLines("t", 0, 5)+numberedLines("t", 0, 5)+numberedLines("t", 5, 5))
	wantFile(t, path("new"), numberedLines("t", 5, 5))
}

// pumpNamed is the follower of an output that runs.
func (r *running) pumpNamed(name string) *follow.Follower {
	for _, p := range *r.backlogs.pumps.Load() {
		if p.plan.name == name {
			return p.follower
		}
	}
	return nil
}
