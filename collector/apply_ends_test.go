// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/needs"
)

// applied is a collector whose configuration changes, and what came in.
type applied struct {
	*running
	t    *testing.T
	dir  string
	conf Config
	sent int
}

// apply changes the configuration as edit does, and puts the collector to it.
func (a *applied) apply(edit func(c *Config)) {
	a.t.Helper()
	next := a.conf
	next.Inputs, next.Outputs = slices.Clone(next.Inputs), slices.Clone(next.Outputs)
	edit(&next)
	if err := a.Apply(&next); err != nil {
		a.t.Fatal(err)
	}
	a.conf = next
}

// fails is apply for what is refused.
func (a *applied) fails(want string, edit func(c *Config)) {
	a.t.Helper()
	next := a.conf
	next.Inputs, next.Outputs = slices.Clone(next.Inputs), slices.Clone(next.Outputs)
	edit(&next)
	if err := a.Apply(&next); err == nil || !strings.Contains(err.Error(), want) {
		a.t.Errorf("got %v, want %q", err, want)
	}
}

// send stores five events by the input of a name.
func (a *applied) send(input string) {
	a.t.Helper()
	i := slices.IndexFunc(a.conf.Inputs, func(e End) bool { return e.Name == input })
	addr := a.Addrs()[i]
	c := &forward.Client{Network: addr.Network(), Address: addr.String()}
	defer c.Close()
	send(a.t, c, numbered("t", a.sent, 5))
	a.sent += 5
}

// out is an output that writes a file of its name.
func (a *applied) out(name, params string) End {
	return End{Name: name, URL: fileURL(filepath.Join(a.dir, name+".jsonl")) + params}
}

// of returns what an output is said to have got.
func of(t *testing.T, s *Stats, name string) *OutputStats {
	t.Helper()
	i := slices.IndexFunc(s.Outputs, func(o OutputStats) bool { return o.Name == name })
	if i < 0 {
		t.Fatalf("no output %s in %+v", name, s.Outputs)
	}
	return &s.Outputs[i]
}

// settled waits until an output has all that it is to get.
func (a *applied) settled(name string) {
	a.t.Helper()
	waitStats(a.t, a.running, name+" has all", func(s *Stats) bool { return of(a.t, s, name).Behind == 0 })
}

// parked waits until a removed output has ended.
func (a *applied) parked(name string) {
	a.t.Helper()
	waitStats(a.t, a.running, name+" has ended", func(*Stats) bool {
		for _, p := range *a.backlogs.pumps.Load() {
			if p.name == name {
				return p.follower == nil
			}
		}
		return false
	})
}

func (a *applied) wantFile(name string, want ...string) {
	a.t.Helper()
	wantFile(a.t, filepath.Join(a.dir, name+".jsonl"), strings.Join(want, ""))
}

func lines5(from int) string { return numberedLines("t", from, 5) }

// TestApplyEnds: each difference does what it says, and the account holds.
func TestApplyEnds(t *testing.T) {
	in := End{Name: "in", URL: "forward://127.0.0.1:0"}
	for name, do := range map[string]func(a *applied){
		"nothing": func(a *applied) {
			a.send("in")
			a.apply(func(*Config) {})
			a.send("in")
			a.settled("one")
			a.wantFile("one", lines5(0), lines5(5))
		},
		"an output is added": func(a *applied) {
			a.send("in")
			a.apply(func(c *Config) { c.Outputs = append(c.Outputs, a.out("two", "")) })
			a.send("in")
			a.settled("two")
			a.wantFile("two", lines5(5))
			s := a.Stats()
			if o := of(a.t, &s, "two"); o.Outside != 5 || o.Out != 5 || o.Removed {
				a.t.Errorf("%+v", o)
			}
		},
		"an output is removed, and comes again": func(a *applied) {
			two := a.out("two", "")
			a.apply(func(c *Config) { c.Outputs = append(c.Outputs, two) })
			a.send("in")
			a.apply(func(c *Config) { c.Outputs = c.Outputs[:1] })
			a.parked("two")
			a.wantFile("two", lines5(0))
			a.send("in")
			s := a.Stats()
			if o := of(a.t, &s, "two"); o.Behind != 5 || o.Out != 5 || !o.Removed {
				a.t.Errorf("%+v", o)
			}
			a.apply(func(c *Config) { c.Outputs = append(c.Outputs, two) })
			a.send("in")
			a.settled("two")
			a.wantFile("two", lines5(0), lines5(5), lines5(10))
		},
		"an output is changed": func(a *applied) {
			a.send("in")
			a.settled("one")
			a.apply(func(c *Config) { c.Outputs[0] = a.out("one", "?time_key=-") })
			a.send("in")
			a.settled("one")
			a.wantFile("one", lines5(0), strings.ReplaceAll(lines5(5), `"time":"2023-11-14T22:13:20.000000005Z",`, ""))
		},
		"an output gets a name": func(a *applied) {
			plain := End{URL: fileURL(filepath.Join(a.dir, "plain.jsonl"))}
			a.apply(func(c *Config) { c.Outputs = append(c.Outputs, plain) })
			a.send("in")
			a.apply(func(c *Config) { c.Outputs[1].Name = "plain" })
			a.send("in")
			a.settled("plain")
			a.wantFile("plain", lines5(0), lines5(5))
			if s := a.Stats(); len(s.Outputs) != 2 {
				a.t.Errorf("%+v", s.Outputs)
			}
			if cursors := a.journal.Cursors(); len(cursors) != 3 { // and that of repeats
				a.t.Error(cursors)
			}
		},
		"an output gives its file to another one": func(a *applied) {
			a.send("in")
			a.apply(func(c *Config) { c.Outputs[0].Name = "other" })
			a.send("in")
			a.settled("other")
			a.wantFile("one", lines5(0), lines5(5))
			a.parked("one")
		},
		"an output changes its file, and a new one takes that": func(a *applied) {
			a.send("in")
			a.settled("one")
			a.apply(func(c *Config) {
				c.Outputs = []End{{Name: "new", URL: c.Outputs[0].URL}, {Name: "one", URL: a.out("moved", "").URL}}
			})
			a.send("in")
			a.settled("new")
			a.settled("one")
			a.wantFile("one", lines5(0), lines5(5))
			a.wantFile("moved", lines5(5))
		},
		"inputs are in another order": func(a *applied) {
			a.apply(func(c *Config) { c.Inputs = append(c.Inputs, End{Name: "more", URL: "forward://127.0.0.1:0"}) })
			addrs := a.Addrs()
			a.apply(func(c *Config) { slices.Reverse(c.Inputs) })
			slices.Reverse(addrs)
			if now := a.Addrs(); !slices.Equal(now, addrs) {
				a.t.Errorf("%v, want %v", now, addrs)
			}
		},
		"an input is added": func(a *applied) {
			a.apply(func(c *Config) { c.Inputs = append(c.Inputs, End{Name: "more", URL: "forward://127.0.0.1:0"}) })
			a.send("more")
			a.send("in")
			a.settled("one")
			a.wantFile("one", lines5(0), lines5(5))
		},
		"an input is removed, and comes again": func(a *applied) {
			more := End{Name: "more", URL: "forward://127.0.0.1:0"}
			a.apply(func(c *Config) { c.Inputs = append(c.Inputs, more) })
			a.send("more")
			addr := a.Addrs()[1].String()
			a.apply(func(c *Config) { c.Inputs = c.Inputs[:1] })
			waitStats(a.t, a.running, "it has ended", func(*Stats) bool {
				a.mu.Lock()
				defer a.mu.Unlock()
				return len(a.crew.leavers) == 0
			})
			if conn, err := net.Dial("tcp", addr); err == nil {
				conn.Close()
				a.t.Error("it still listens")
			}
			s := a.Stats()
			if n := s.Inputs[1]; !n.Removed || n.In != 5 || n.Stored != 5 || n.Connections != 0 ||
				n.Server.Accepted != 1 {
				a.t.Errorf("%+v", n)
			}
			a.apply(func(c *Config) { c.Inputs = append(c.Inputs, more) })
			a.send("more")
			s = a.Stats()
			if n := s.Inputs[1]; n.Removed || n.In != 10 || n.Stored != 10 || n.Server.Accepted != 2 ||
				len(s.Inputs) != 2 {
				a.t.Errorf("%+v", n)
			}
		},
		"an input is changed on its port": func(a *applied) {
			port := needs.Address()
			a.apply(func(c *Config) { c.Inputs = append(c.Inputs, End{Name: "more", URL: "forward://" + port}) })
			a.send("more")
			a.apply(func(c *Config) { c.Inputs[1].URL += "?tag=u" })
			a.send("more")
			a.settled("one")
			a.wantFile("one", lines5(0), numberedLines("u", 5, 5))
		},
		"an input of lines is changed on its port": func(a *applied) {
			port := needs.Address()
			say := func(text string) {
				conn, err := net.Dial("tcp", port)
				if err != nil {
					a.t.Fatal(err)
				}
				defer conn.Close()
				before := a.Stats().Stored
				if _, err := io.WriteString(conn, text); err != nil {
					a.t.Fatal(err)
				}
				waitStats(a.t, a.running, "it is stored", func(s *Stats) bool { return s.Stored > before })
			}
			a.apply(func(c *Config) { c.Inputs = append(c.Inputs, End{Name: "lines", URL: "lines://" + port}) })
			say("x\n")
			a.apply(func(c *Config) { c.Inputs[1].URL += "?tag=u" })
			say("y\n")
			a.settled("one")
			text, err := os.ReadFile(filepath.Join(a.dir, "one.jsonl"))
			if err != nil || !strings.Contains(string(text), `"tag":"lines","message":"x"`) ||
				!strings.Contains(string(text), `"tag":"u","message":"y"`) {
				a.t.Errorf("%s, %v", text, err)
			}
		},
		"an output comes with a route, and a step changes": func(a *applied) {
			a.apply(func(c *Config) {
				c.Routes = []Route{{Match: "**", To: []string{"one"}, Do: []Step{{Drop: "n < 2"}}, Continue: true}}
			})
			a.send("in")
			a.settled("one")
			pump := (*a.backlogs.pumps.Load())[0]
			a.apply(func(c *Config) {
				c.Outputs = append(c.Outputs, a.out("two", ""))
				c.Routes = append(slices.Clone(c.Routes), Route{Match: "**", To: []string{"two"}})
			})
			if (*a.backlogs.pumps.Load())[0] != pump {
				a.t.Error("a route behind those of an output has changed it")
			}
			a.send("in")
			a.settled("one")
			a.settled("two")
			a.wantFile("one", numberedLines("t", 2, 3), lines5(5))
			a.wantFile("two", lines5(5))
			a.apply(func(c *Config) {
				c.Routes = slices.Clone(c.Routes)
				c.Routes[0].Do = []Step{{Drop: "n < 12"}}
			})
			a.send("in")
			a.settled("one")
			a.settled("two")
			a.wantFile("one", numberedLines("t", 2, 3), lines5(5), numberedLines("t", 12, 3))
			a.wantFile("two", lines5(5), lines5(10))
			a.fails("no route leads to the output two", func(c *Config) { c.Routes = c.Routes[:1] })
		},
		"all at once": func(a *applied) {
			a.send("in")
			a.apply(func(c *Config) {
				c.Inputs = []End{{Name: "new", URL: "forward://127.0.0.1:0"}}
				c.Outputs = []End{a.out("two", ""), a.out("three", "")}
			})
			a.send("new")
			a.settled("two")
			a.settled("three")
			a.parked("one")
			a.wantFile("one", lines5(0))
			a.wantFile("two", lines5(5))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &applied{t: t, dir: t.TempDir()}
			a.conf = Config{Dir: filepath.Join(a.dir, "data"), Inputs: []End{in}, Drain: time.Minute}
			a.conf.Outputs = []End{a.out("one", "")}
			conf := a.conf
			a.running = run(t, &conf)
			do(a)
			if err := a.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestApplyUndone: what cannot be done leaves all as it was, be it known at once or only when
// something was ended for it.
func TestApplyUndone(t *testing.T) {
	a := &applied{t: t, dir: t.TempDir()}
	port := needs.Address()
	a.conf = Config{
		Dir: filepath.Join(a.dir, "data"), Inputs: []End{
			{Name: "in", URL: "forward://127.0.0.1:0"},
			{Name: "more", URL: "forward://" + port},
		},
		Drain: time.Minute, OutputKinds: map[string]OutputKind{"none": func(*URL, *Params) (*OutputPlan, error) {
			return &OutputPlan{Open: func(*OutputEnv) (Output, error) {
				return nil,
					errors.New("it cannot be opened")
			}}, nil
		}},
		InputKinds: map[string]InputKind{"none": func(*URL, *Params) (func(*InputEnv) (Input, error), error) {
			return func(*InputEnv) (Input, error) { return nil, errors.New("it cannot be opened") }, nil
		}},
	}
	a.conf.Outputs = []End{a.out("one", ""), a.out("two", "")}
	conf := a.conf
	a.running = run(t, &conf)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	conn, err := net.Dial("tcp", a.Addrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ack(t, conn, "a")
	a.sent = 5
	if err := os.WriteFile(filepath.Join(a.dir, "plain"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cursors := a.journal.Cursors()
	for want, edit := range map[string]func(c *Config){
		"the scheme is missing": func(c *Config) { c.Outputs = append(c.Outputs, End{Name: "x", URL: "nowhere"}) },
		"address already in use": func(c *Config) {
			c.Inputs = append(c.Inputs, End{Name: "x", URL: "forward://" + taken.Addr().String()})
		},
		"x: it cannot be opened": func(c *Config) {
			c.Outputs = append(c.Outputs[1:],
				End{Name: "x", URL: "none:"})
		},
		"two: it cannot be opened":  func(c *Config) { c.Outputs[1].URL = "none:" },
		"more: it cannot be opened": func(c *Config) { c.Inputs[1].URL = "none://" + port; c.Outputs = c.Outputs[:1] },
		"no such file": func(c *Config) {
			c.Inputs[1].URL += "?shared_key_file=" +
				filepath.Join(a.dir, "none")
		},
		"ack: it changed": func(c *Config) { c.Ack = AckDelivered; c.Outputs = c.Outputs[:1] },
		"x: open ": func(c *Config) {
			c.Outputs = append(c.Outputs,
				a.out("plain/x", ""))
			c.Outputs[2].Name = "x"
		},
		"given twice": func(c *Config) {
			c.Outputs = append(c.Outputs,
				End{Name: "x", URL: a.conf.Outputs[0].URL})
		},
	} {
		a.fails(want, edit)
		a.send("more")
		if got := a.journal.Cursors(); !slices.Equal(got, cursors) {
			t.Errorf("%s: cursors %q", want, got)
		}
	}
	ack(t, conn, "b")
	a.settled("one")
	a.settled("two")
	s := a.Stats()
	for _, o := range s.Outputs {
		if o.Removed || o.Out != s.Stored {
			t.Errorf("%+v of %d", o, s.Stored)
		}
	}
}

// ack sends one event with an ack by a connection, and waits for that.
func ack(t *testing.T, conn net.Conn, id string) {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(4 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "\x93\xa1t\x91\x92\x01\x80\x81\xa5chunk\xa1"+id); err != nil {
		t.Fatal(err)
	}
	got, want := make([]byte, 7), "\x81\xa3ack\xa1"+id
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Fatalf("ack %q, %v", got, err)
	}
}

// TestApplyKeepsConnections: a connection of an input that does not change gets its acks, whatever
// comes and goes beside it.
func TestApplyKeepsConnections(t *testing.T) {
	a := &applied{t: t, dir: t.TempDir()}
	a.conf = Config{
		Dir: filepath.Join(a.dir, "data"), Inputs: []End{{Name: "in", URL: "forward://127.0.0.1:0"}},
		Drain: time.Minute,
	}
	a.conf.Outputs = []End{a.out("one", "")}
	conf := a.conf
	a.running = run(t, &conf)
	conn, err := net.Dial("tcp", a.Addrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ack(t, conn, "0")
	for i, edit := range []func(c *Config){
		func(c *Config) { c.Inputs = append(c.Inputs, End{Name: "more", URL: "forward://127.0.0.1:0"}) },
		func(c *Config) { c.Inputs[1].URL += "?tag=x" },
		func(c *Config) { c.Inputs = c.Inputs[:1] },
		func(c *Config) { c.Outputs = append(c.Outputs, a.out("two", "")) },
		func(c *Config) { c.Outputs[0] = a.out("one", "?time_key=-") },
		func(c *Config) { c.Outputs = c.Outputs[1:] },
	} {
		a.apply(edit)
		ack(t, conn, string(rune('a'+i)))
	}
	s := a.Stats()
	if n := s.Inputs[0]; n.Server.Accepted != 1 || n.Connections != 1 || n.Stored != 7 {
		t.Errorf("%+v", n)
	}
}

// TestApplyAcksInFlight: an input that is removed answers what it has, then ends its connections.
func TestApplyAcksInFlight(t *testing.T) {
	a := &applied{t: t, dir: t.TempDir()}
	g := &gate{open: make(chan struct{})}
	a.conf = Config{
		Dir: filepath.Join(a.dir, "data"),
		Inputs: []End{
			{Name: "in", URL: "forward://127.0.0.1:0"},
			{Name: "more", URL: "forward://127.0.0.1:0"},
		}, Drain: time.Minute, Stdout: g, Ack: AckDelivered,
	}
	a.conf.Outputs = Ends("stdout:")
	conf := a.conf
	a.running = run(t, &conf)
	conn, err := net.Dial("tcp", a.Addrs()[1].String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "\x93\xa1t\x91\x92\x01\x80\x81\xa5chunk\xa1x"); err != nil {
		t.Fatal(err)
	}
	waitStats(t, a.running, "it is stored", func(s *Stats) bool { return s.Stored == 1 })
	a.apply(func(c *Config) { c.Inputs = c.Inputs[:1] })
	close(g.open)
	got, err := io.ReadAll(conn)
	if err != nil || string(got) != "\x81\xa3ack\xa1x" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestApplyBeforeRun: a collector that is open and does not run is changed as well.
func TestApplyBeforeRun(t *testing.T) {
	a := &applied{t: t, dir: t.TempDir()}
	a.conf = Config{
		Dir: filepath.Join(a.dir, "data"), Drain: time.Minute, Log: logTo(testWriter{t}),
		Inputs: []End{{Name: "in", URL: "forward://127.0.0.1:0"}, {Name: "gone", URL: "forward://127.0.0.1:0"}},
	}
	a.conf.Outputs = []End{a.out("one", ""), a.out("gone", "")}
	conf := a.conf
	c, err := Open(&conf)
	if err != nil {
		t.Fatal(err)
	}
	a.running = &running{Collector: c, done: make(chan error, 1)}
	a.apply(func(c *Config) {
		c.Inputs[1] = End{Name: "new", URL: "forward://127.0.0.1:0"}
		c.Outputs[0] = a.out("one", "?time_key=-")
		c.Outputs[1] = a.out("two", "")
	})
	var ctx context.Context
	ctx, a.cancel = context.WithCancel(t.Context())
	go func() { a.done <- c.Run(ctx) }()
	a.send("in")
	a.send("new")
	if err := a.stop(); err != nil {
		t.Error(err)
	}
	s := c.Stats()
	wantLaws(t, s)
	if o := of(t, &s, "gone"); !o.Removed || o.Out != 0 || o.Behind != 10 {
		t.Errorf("%+v", o)
	}
	a.wantFile("two", lines5(0), lines5(5))
}

// TestApplyFreesAcks: acks of delivered chunks do not wait for an output that was removed, though
// it has its time to deliver.
func TestApplyFreesAcks(t *testing.T) {
	a := &applied{t: t, dir: t.TempDir()}
	g := &gate{open: make(chan struct{})}
	a.conf = Config{
		Dir: filepath.Join(a.dir, "data"), Inputs: []End{{Name: "in", URL: "forward://127.0.0.1:0"}},
		Drain: time.Minute, Stdout: g, Ack: AckDelivered,
		Outputs: []End{{Name: "one", URL: "discard:"}, {Name: "two", URL: "stdout:"}},
	}
	conf := a.conf
	a.running = run(t, &conf)
	acked := make(chan struct{})
	go func() {
		defer close(acked)
		a.send("in")
	}()
	waitStats(t, a.running, "it is stored", func(s *Stats) bool { return s.Stored == 5 })
	select {
	case <-acked:
		t.Error("it was acked before both outputs had it")
	default:
	}
	a.apply(func(c *Config) { c.Outputs = c.Outputs[:1] })
	<-acked
	close(g.open)
	a.parked("two")
	if s := a.Stats(); of(t, &s, "two").Out != 5 {
		t.Errorf("%+v", s.Outputs)
	}
}

// TestApplyGivesPlaceUp: the place of a removed output keeps what comes until the journal is full;
// then it goes, nobody waits, and what was there is counted.
func TestApplyGivesPlaceUp(t *testing.T) {
	a := &applied{t: t, dir: t.TempDir()}
	a.conf = Config{
		Dir: filepath.Join(a.dir, "data"), Inputs: []End{{Name: "in", URL: "forward://127.0.0.1:0"}},
		Drain:   time.Minute,
		Outputs: []End{{Name: "one", URL: "discard:"}, {Name: "two", URL: "discard:"}}, JournalBytes: 48 << 20,
	}
	conf := a.conf
	a.running = run(t, &conf)
	a.send("in")
	a.apply(func(c *Config) { c.Outputs = c.Outputs[:1] })
	a.parked("two")
	c := a.client(t)
	gone := false
	for range 80 {
		send(t, c, big())
	}
	s := a.Stats()
	o := of(t, &s, "two")
	if gone = o.Dropped[placeGivenUp] > 0; !gone || o.Behind != 0 || o.Out != 5 || o.Outside+o.Lost() != 80 {
		t.Errorf("%+v", o)
	}
	a.apply(func(c *Config) { c.Outputs = append(c.Outputs, End{Name: "two", URL: "discard:"}) })
	a.send("in")
	a.settled("two")
	s = a.Stats()
	if o := of(t, &s, "two"); o.Out != 10 || o.Removed || o.Outside+o.Lost() != 80 {
		t.Errorf("%+v", o)
	}
}
