// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/spillwaylog/spillway/forward"
)

// keeper is an output that is done with nothing before Close, or all that it gets.
type keeper struct {
	mu   sync.Mutex
	got  chan string // ids
	open []func(Result)
	does bool
}

func (k *keeper) Submit(c *forward.Chunk, done func(Result)) {
	k.got <- string(c.ID)
	if k.does {
		done(Result{})
		done(Result{}) // which is a fault that costs nothing
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.open = append(k.open, done)
}

func (k *keeper) Flush(context.Context) error { return nil }

func (k *keeper) Close(context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, done := range k.open {
		done(Result{Err: ErrClosed})
	}
	k.open = nil
	return nil
}

// keepers is an OutputKind that opens one output, or nothing.
func keepers(k Output) map[string]OutputKind {
	return map[string]OutputKind{"keep": func(_ *URL, p *Params) (*OutputPlan, error) {
		p.String("x", "")
		return &OutputPlan{Open: func(*OutputEnv) (Output, error) { return k, nil }}, nil
	}}
}

// TestIDsStay: a chunk that comes again has the id that it had, also when the output's settings are
// others; what an output says twice counts once.
func TestIDsStay(t *testing.T) {
	dir := t.TempDir()
	first, second := &keeper{got: make(chan string, 3)}, &keeper{got: make(chan string, 3), does: true}
	r := run(t, &Config{Dir: dir, Outputs: Ends("keep:a?x=1"), OutputKinds: keepers(first), Drain: 1})
	c := numbered("t", 0, 1)
	c.UniqueID = false
	send(t, r.client(t), c, numbered("t", 1, 1), numbered("t", 2, 1))
	ids := []string{<-first.got, <-first.got, <-first.got}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	r = run(t, &Config{Dir: dir, Outputs: Ends("keep:a?x=2"), OutputKinds: keepers(second)})
	for i, id := range ids {
		if again := <-second.got; again != id {
			t.Errorf("chunk %d has the id %q again as %q", i, id, again)
		}
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if o := r.Stats().Outputs[0]; o.Out != 3 || o.Behind != 0 {
		t.Errorf("%+v", o)
	}
}

// TestWrongKinds: a plan that cannot be one, or opens no output, is a mistake that is told.
func TestWrongKinds(t *testing.T) {
	open := func(*OutputEnv) (Output, error) { return nil, nil }
	for name, tt := range map[string]struct {
		plan *OutputPlan
		want string
	}{
		"no plan":        {nil, "keep:a: its kind opens nothing"},
		"no output":      {&OutputPlan{Open: open}, "keep:a: its kind opens nothing"},
		"negative bytes": {&OutputPlan{Open: open, Bytes: -1}, "keep:a: its kind asks for -1 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Open(&Config{
				Dir: t.TempDir(), Inputs: Ends("forward://127.0.0.1:0"), Outputs: Ends("keep:a"),
				OutputKinds: map[string]OutputKind{
					"keep": func(*URL, *Params) (*OutputPlan, error) { return tt.plan, nil },
				},
			})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
			if c != nil {
				_ = c.Close()
			}
		})
	}
}

// TestFailsAtStart: an output may fail before the collector is open, and one that can be opened
// later does not keep it from starting.
func TestFailsAtStart(t *testing.T) {
	k := &keeper{got: make(chan string, 1), does: true}
	tries := 0
	kinds := map[string]OutputKind{"keep": func(*URL, *Params) (*OutputPlan, error) {
		return &OutputPlan{Bytes: 9 << 20, Open: func(env *OutputEnv) (Output, error) {
			if env.Identity == "" || env.Chunks == 0 || env.Bytes != 9<<20 {
				t.Errorf("%+v", env)
			}
			if tries++; tries > 1 {
				return k, nil
			}
			env.Failed(errors.New("nobody is there"), 0)
			return nil, fmt.Errorf("not yet; %w", ErrReopen)
		}}, nil
	}}
	log := make(messages, 1000)
	r := run(t, &Config{
		Dir: t.TempDir(), Outputs: Ends("keep:a"), OutputKinds: kinds, Log: slog.New(slog.NewJSONHandler(log, nil)),
	})
	broken := log.next(t, "output broken")
	for _, word := range []string{"behind", "behind_bytes", "behind_for", "holds_up"} {
		if said, ok := broken[word]; ok {
			t.Errorf("%s=%v is told, though nobody knows it yet", word, said)
		}
	}
	send(t, r.client(t), numbered("t", 0, 1))
	<-k.got
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

// TestParseEnd: a name that is empty is a mistake, such as a variable that is not set.
func TestParseEnd(t *testing.T) {
	for text, want := range map[string]End{
		"discard:":             {URL: "discard:"},
		"a=discard:":           {Name: "a", URL: "discard:"},
		"file:///var/a=b.json": {URL: "file:///var/a=b.json"},
		"file:a?tag_key=t":     {URL: "file:a?tag_key=t"},
		"=discard:":            {},
		"a=":                   {Name: "a"},
	} {
		got, err := ParseEnd(text)
		if got != want || (err == nil) != (want.URL != "") {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}
