// SPDX-License-Identifier: Apache-2.0

package clients_test

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/internal/testcert"
	"github.com/spillwaylog/spillway/test/clients"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// ibm is a program of its own because that client cannot be in one with the official one: both
// register the same extension.
var ibm = clients.Built("Go IBM/fluent-forward-go", (&rig.Program{Dir: clients.Dir, Name: "ibm"}).Make)

// TestClients has the clients of the ecosystem send their events, in each way that they know: each
// event must be in the output once, with its time, its tag and its record.
func TestClients(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		client *clients.Client
		order  clients.Order
		unix   bool
		guard  guard
		share  int // which one of the number of events; a tenth where 0
	}{
		{name: "python", client: clients.Python, order: clients.Order{Times: clients.Seconds, Huge: true}},
		{
			name: "python nanoseconds", client: clients.Python, order: clients.Order{Times: clients.Nanoseconds},
			share: 1,
		},
		{name: "python floats", client: clients.Python, order: clients.Order{Times: clients.Eighths}},
		{name: "python async", client: clients.Python, order: clients.Order{Times: clients.Nanoseconds, Async: true}},
		{name: "python unix", client: clients.Python, order: clients.Order{Times: clients.Nanoseconds}, unix: true},

		{
			name: "node message", client: clients.Node,
			order: clients.Order{Mode: "message", Times: clients.Nanoseconds, Batch: 1000},
		},
		{
			name: "node message ack", client: clients.Node,
			order: clients.Order{Mode: "message", Times: clients.Seconds, Ack: true, Batch: 10}, share: 50,
		},
		{
			name: "node packed", client: clients.Node,
			order: clients.Order{Mode: "packed", Times: clients.Seconds, Batch: 1000},
		},
		{
			name: "node packed ack", client: clients.Node,
			order: clients.Order{Mode: "packed", Times: clients.Nanoseconds, Ack: true, Batch: 1000}, share: 1,
		},
		{
			name: "node compressed ack", client: clients.Node,
			order: clients.Order{Mode: "compressed", Times: clients.Nanoseconds, Ack: true, Batch: 1000},
		},
		{
			name: "node unix", client: clients.Node,
			order: clients.Order{Mode: "compressed", Times: clients.Nanoseconds, Ack: true, Batch: 100}, unix: true,
		},

		{
			name: "node tls", client: clients.Node,
			order: clients.Order{Mode: "compressed", Times: clients.Nanoseconds, Batch: 1000},
			guard: guard{tls: true, certificate: true},
		},
		{
			name: "node shared key", client: clients.Node,
			order: clients.Order{Mode: "packed", Times: clients.Nanoseconds, Ack: true, Batch: 1000},
			guard: guard{key: true},
		},
		{
			name: "node tls shared key user", client: clients.Node,
			order: clients.Order{Mode: "message", Times: clients.Nanoseconds, Batch: 1000},
			guard: guard{tls: true, key: true, user: true},
		},

		{
			name: "node org message", client: clients.NodeOrg,
			order: clients.Order{Mode: "message", Times: clients.Seconds, Batch: 1000},
		},
		{
			name: "node org message ack", client: clients.NodeOrg,
			order: clients.Order{Mode: "message", Times: clients.Nanoseconds, Ack: true, Batch: 100},
		},
		{
			name: "node org forward ack", client: clients.NodeOrg,
			order: clients.Order{Mode: "forward", Times: clients.Milliseconds, Ack: true, Batch: 1000},
		},
		{
			name: "node org packed", client: clients.NodeOrg,
			order: clients.Order{Mode: "packed", Times: clients.Milliseconds, Batch: 1000},
		},
		{
			name: "node org packed ack", client: clients.NodeOrg,
			order: clients.Order{Mode: "packed", Times: clients.Nanoseconds, Ack: true, Batch: 1000},
		},
		{
			name: "node org compressed ack", client: clients.NodeOrg,
			order: clients.Order{Mode: "compressed", Times: clients.Nanoseconds, Ack: true, Batch: 1000}, share: 1,
		},
		{
			name: "node org unix", client: clients.NodeOrg,
			order: clients.Order{Mode: "compressed", Times: clients.Nanoseconds, Ack: true, Batch: 100}, unix: true,
		},
		{
			name: "node org tls", client: clients.NodeOrg,
			order: clients.Order{Mode: "compressed", Times: clients.Nanoseconds, Ack: true, Batch: 1000},
			guard: guard{tls: true, certificate: true},
		},
		{
			name: "node org shared key", client: clients.NodeOrg,
			order: clients.Order{Mode: "forward", Times: clients.Nanoseconds, Ack: true, Batch: 1000},
			guard: guard{key: true},
		},
		{
			name: "node org shared key user", client: clients.NodeOrg,
			order: clients.Order{Mode: "packed", Times: clients.Nanoseconds, Ack: true, Batch: 1000},
			guard: guard{key: true, user: true},
		},
		{
			name: "node org tls shared key user", client: clients.NodeOrg,
			order: clients.Order{Mode: "message", Times: clients.Nanoseconds, Ack: true, Batch: 100},
			guard: guard{tls: true, key: true, user: true},
		},

		{
			name: "fluency", client: clients.Fluency,
			order: clients.Order{Mode: "packed", Times: clients.Seconds, Huge: true},
		},
		{
			name: "fluency ack", client: clients.Fluency,
			order: clients.Order{Mode: "packed", Times: clients.Nanoseconds, Huge: true, Ack: true}, share: 1,
		},
		{
			name: "java", client: clients.Java,
			order: clients.Order{Mode: "message", Times: clients.Seconds, Huge: true},
			share: 1,
		},

		{
			name: "fluency tls ack", client: clients.Fluency,
			order: clients.Order{Mode: "packed", Times: clients.Nanoseconds, Ack: true}, guard: guard{tls: true},
		},
		{
			name: "fluency client certificate", client: clients.Fluency,
			order: clients.Order{Mode: "packed", Times: clients.Nanoseconds, Ack: true},
			guard: guard{tls: true, certificate: true},
		},

		{name: "ibm message", client: ibm, order: clients.Order{
			Mode: "message", Times: clients.Seconds, Huge: true,
			Batch: 100,
		}},
		{
			name: "ibm message ack", client: ibm,
			order: clients.Order{Mode: "message", Times: clients.Nanoseconds, Ack: true, Batch: 100}, share: 50,
		},
		{name: "ibm forward", client: ibm, order: clients.Order{
			Mode: "forward", Times: clients.Nanoseconds, Huge: true,
			Batch: 100,
		}},
		{
			name: "ibm forward ack", client: ibm,
			order: clients.Order{Mode: "forward", Times: clients.Nanoseconds, Huge: true, Ack: true, Batch: 1000},
		},
		{
			name: "ibm packed ack", client: ibm,
			order: clients.Order{Mode: "packed", Times: clients.Nanoseconds, Huge: true, Ack: true, Batch: 1000},
			share: 1,
		},
		{
			name: "ibm compressed ack", client: ibm,
			order: clients.Order{Mode: "compressed", Times: clients.Nanoseconds, Huge: true, Ack: true, Batch: 1000},
		},
		{name: "ibm unix", client: ibm, order: clients.Order{
			Mode: "compressed", Times: clients.Nanoseconds, Ack: true,
			Batch: 100,
		}, unix: true},
		{name: "ibm tls", client: ibm, order: clients.Order{
			Mode: "packed", Times: clients.Nanoseconds, Ack: true,
			Batch: 1000,
		}, guard: guard{tls: true, certificate: true}},
		{
			name: "ibm shared key", client: ibm,
			order: clients.Order{Mode: "forward", Times: clients.Nanoseconds, Ack: true, Batch: 1000},
			guard: guard{key: true},
		},
		{
			name: "ibm tls shared key", client: ibm,
			order: clients.Order{Mode: "compressed", Times: clients.Nanoseconds, Ack: true, Batch: 1000},
			guard: guard{tls: true, key: true},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start(t, tt.client)
			s, out := rig.NewSetup(t)
			o := tt.order
			o.Tag = "client"
			o.Count = events(t) / cmp.Or(tt.share, 10)
			if o.Mode == "" {
				o.Mode = "message"
			}
			u := url.URL{Scheme: "forward", Host: "127.0.0.1:0"}
			if tt.unix {
				o.Path = rig.SocketPath(t)
				u = url.URL{Scheme: "forward+unix", Path: o.Path}
			}
			tt.guard.put(t, &u, &o)
			s.Listen = []string{u.String()}
			c := rig.StartCollector(t, s)
			if !tt.unix {
				o.Host, o.Port = hostPort(t, c.Addr)
			}
			begin := time.Now()
			acked := make([]bool, o.Count)
			if err := run(t, tt.client, &o, func(n int) { acked[n] = true }); err != nil {
				t.Fatal(err)
			}
			rig.Figure(t, "%d events in %.1f s", o.Count, time.Since(begin).Seconds())
			for n, ok := range acked {
				if ok != o.Ack {
					t.Fatalf("event %d: acked %t, want %t", n, ok, o.Ack)
				}
			}
			rig.WaitLines(t, out, o.Count)
			c.Stop()
			wantSent(t, rig.ReadLines(t, out), &o)
		})
	}
}

// TestClientsRestart kills and ends the collector under the clients that wait for acks: what they
// take for stored is there. Each event is there once where the client resends a chunk as it was;
// some give it a new id, and what was stored but not acked is then there twice, which no server can
// know.
func TestClientsRestart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		client *clients.Client
		order  clients.Order
		guard  guard
		count  int
		again  bool // new ids
	}{
		{name: "node", client: clients.Node, order: clients.Order{Mode: "message", Batch: 10}, count: 500, again: true},
		{
			name: "node tls", client: clients.Node, order: clients.Order{Mode: "compressed", Batch: 10},
			guard: guard{tls: true, key: true, user: true}, count: 500, again: true,
		},
		{
			name: "node org", client: clients.NodeOrg, order: clients.Order{Mode: "forward", Batch: 20},
			guard: guard{key: true}, count: 2000, again: true,
		},
		{
			name: "node org tls", client: clients.NodeOrg, order: clients.Order{Mode: "compressed", Batch: 20},
			guard: guard{tls: true, key: true, user: true}, count: 2000, again: true,
		},
		{
			name: "fluency tls", client: clients.Fluency, order: clients.Order{Mode: "packed"}, guard: guard{tls: true},
			count: 50_000,
		},
		{name: "ibm", client: ibm, order: clients.Order{Mode: "message", Batch: 100}, count: 500},
		{
			name: "ibm tls", client: ibm, order: clients.Order{Mode: "compressed", Batch: 10},
			guard: guard{tls: true, key: true}, count: 5000,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start(t, tt.client)
			s, out := rig.NewSetup(t)
			o := tt.order
			o.Tag, o.Count, o.Times, o.Ack, o.Retry = "client", min(tt.count,
				events(t)), clients.Nanoseconds, true, true
			o.Host, o.Port = "127.0.0.1", needs.Port("127.0.0.1")
			u := url.URL{Scheme: "forward", Host: fmt.Sprintf("%s:%d", o.Host, o.Port)}
			tt.guard.put(t, &u, &o)
			s.Listen = []string{u.String()}
			begin := time.Now()
			restartUnder(t, s, &o, func(acked func(n int)) { send(t, tt.client, &o, acked) })
			lines := rig.ReadLines(t, out)
			read := len(lines)
			if tt.again {
				lines = slices.CompactFunc(slices.SortedFunc(slices.Values(lines), func(a, b rig.Line) int {
					return cmp.Compare(a.Number(), b.Number())
				}), func(a, b rig.Line) bool { return a.Number() == b.Number() })
			}
			wantSent(t, lines, &o)
			rig.Figure(t, "%d events, %d of them twice, in %.1f s", o.Count, read-len(lines),
				time.Since(begin).Seconds())
		})
	}
}

// restartUnder kills and ends the collector under a client that sends the order and tells of acks;
// at the end all is acked and delivered.
func restartUnder(t *testing.T, s *rig.Setup, o *clients.Order, send func(acked func(n int))) {
	t.Helper()
	c := rig.StartCollector(t, s)
	var acks atomic.Int64
	acked := make([]bool, o.Count)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		send(func(n int) {
			acked[n] = true
			acks.Add(1)
		})
	}()
	for i := range 2 {
		rig.Eventually(t, "the client goes on", func() bool {
			select {
			case <-ended:
				return true
			default:
				return acks.Load() > int64((i+1)*o.Count/4)
			}
		})
		if i == 0 {
			c.Kill()
		} else {
			c.Stop()
		}
		c = rig.StartCollector(t, s)
	}
	<-ended
	for n, ok := range acked {
		if !ok {
			t.Fatalf("the client ended, but event %d is not acked", n)
		}
	}
	for c.Stop(); c.Log.Find("not everything was handed on") != ""; c.Stop() {
		c = rig.StartCollector(t, s)
	}
}

// TestClientsDenied has clients come with a wrong key and a wrong password: they say so, and
// nothing is stored.
func TestClientsDenied(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		client *clients.Client
		order  clients.Order
		guard  guard
		spoil  func(o *clients.Order)
		says   string
	}{
		{"node key", clients.Node, clients.Order{Mode: "packed"}, guard{key: true}, wrongKey, "shared_key mismatch"},
		{
			"node password", clients.Node,
			clients.Order{Mode: "message"},
			guard{key: true, user: true},
			wrongPassword,
			"username/password mismatch",
		},
		{
			"node org key", clients.NodeOrg,
			clients.Order{Mode: "packed"},
			guard{key: true},
			wrongKey,
			"shared_key mismatch",
		},
		{
			"node org password", clients.NodeOrg,
			clients.Order{Mode: "packed"},
			guard{tls: true, key: true, user: true},
			wrongPassword, "username/password mismatch",
		},
		{"ibm key", ibm, clients.Order{Mode: "packed"}, guard{tls: true, key: true}, wrongKey, "no match"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start(t, tt.client)
			s, out := rig.NewSetup(t)
			o := tt.order
			o.Tag, o.Count, o.Batch, o.Times, o.Ack = "client", 10, 10, clients.Nanoseconds, true
			u := url.URL{Scheme: "forward", Host: "127.0.0.1:0"}
			tt.guard.put(t, &u, &o)
			s.Listen = []string{u.String()}
			right := o
			tt.spoil(&o)
			c := rig.StartCollector(t, s)
			o.Host, o.Port = hostPort(t, c.Addr)
			err := run(t, tt.client, &o, func(n int) { t.Errorf("event %d is acked", n) })
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the client says %.500v, want %s", err, tt.says)
			}
			if said := c.Log.String(); strings.Contains(said, right.SharedKey) || right.Password != "" &&
				strings.Contains(said, right.Password) {
				t.Errorf("a secret in the log: %s", said)
			}
			c.Stop()
			if lines := rig.ReadLines(t, out); len(lines) > 0 {
				t.Errorf("stored: %v", lines[0])
			}
		})
	}
}

func wrongKey(o *clients.Order)      { o.SharedKey += "x" }
func wrongPassword(o *clients.Order) { o.Password += "x" }

// TestClientsBuffer has clients keep events while there is no server.
func TestClientsBuffer(t *testing.T) {
	t.Parallel()
	t.Run("python", func(t *testing.T) {
		s, out, o := absent(t, clients.Python)
		o.Mode, o.Times, o.Phase, o.Count = "message", clients.Nanoseconds, "buffer", 1000
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			send(t, clients.Python, o, func(int) {})
		}()
		rig.Eventually(t, "the client keeps what it has", func() bool {
			_, err := os.Stat(filepath.Join(o.Dir, "buffered"))
			return err == nil
		})
		c := rig.StartCollector(t, s)
		<-ended
		rig.WaitLines(t, out, o.Count)
		c.Stop()
		wantSent(t, rig.ReadLines(t, out), o)
	})
	t.Run("fluency", func(t *testing.T) { // in files, for a process that comes later
		s, out, o := absent(t, clients.Fluency)
		o.Mode, o.Times, o.Ack, o.Phase, o.Count = "packed", clients.Nanoseconds, true, "leave", 10_000
		acked := 0
		count := func(int) { acked++ }
		send(t, clients.Fluency, o, count)
		if acked != 0 {
			t.Fatalf("%d events are acked by nobody", acked)
		}
		c := rig.StartCollector(t, s)
		o.Phase = "resume"
		send(t, clients.Fluency, o, count)
		if acked != o.Count {
			t.Errorf("%d events acked of %d", acked, o.Count)
		}
		rig.WaitLines(t, out, o.Count)
		c.Stop()
		wantSent(t, rig.ReadLines(t, out), o)
	})
}

// absent is a collector that is not there yet.
func absent(t *testing.T, client *clients.Client) (s *rig.Setup, out string, o *clients.Order) {
	t.Helper()
	start(t, client)
	s, out = rig.NewSetup(t)
	o = &clients.Order{Tag: "client", Host: "127.0.0.1", Port: needs.Port("127.0.0.1"), Dir: t.TempDir()}
	s.Listen = []string{fmt.Sprintf("forward://127.0.0.1:%d", o.Port)}
	return s, out, o
}

// wantSent checks that each event of the order is in the lines once.
func wantSent(t testing.TB, lines []rig.Line, o *clients.Order) {
	t.Helper()
	wantEvents(t, lines, o.Count, func(n int) rig.Line {
		when, tag, record := o.Event(n)
		return rig.Line{Time: when, Tag: tag, Record: record}
	})
}

// A guard says what a listener asks of its clients.
type guard struct {
	tls, certificate bool // the client's
	key, user        bool
}

// put has the listener ask and the client know.
func (g guard) put(t testing.TB, u *url.URL, o *clients.Order) {
	t.Helper()
	query := url.Values{}
	if g.tls {
		ca := testcert.New(t)
		u.Scheme = "forward+tls"
		query.Set("cert", ca.Server.Cert)
		query.Set("key", ca.Server.Key)
		o.CA = ca.File
		if g.certificate {
			query.Set("client_ca", ca.File)
			o.Cert, o.Key = ca.Client.Cert, ca.Client.Key
		}
	}
	secret := func(parameter, text string) {
		name := filepath.Join(t.TempDir(), parameter)
		rig.Must(t, os.WriteFile(name, []byte(text), 0o600))
		query.Set(parameter, name)
	}
	if g.key {
		o.Hostname, o.SharedKey = "client.example", "a key: ü\t€"
		secret("shared_key_file", o.SharedKey+"\n")
	}
	if g.user {
		o.Username, o.Password = "sender", "a password: ö"
		secret("users_file", "other:x\n"+o.Username+":"+o.Password+"\n")
	}
	u.RawQuery = query.Encode()
}

// start begins a test that needs a client.
func start(t *testing.T, c *clients.Client) {
	t.Helper()
	err := c.Install()
	needs.Have(t, err == nil, "%v", err)
	t.Parallel()
}

// send has a client send an order, to its end.
func send(t *testing.T, c *clients.Client, o *clients.Order, acked func(n int)) {
	t.Helper()
	if err := run(t, c, o, acked); err != nil {
		t.Error(err)
	}
}

func run(t *testing.T, c *clients.Client, o *clients.Order, acked func(n int)) error {
	t.Helper()
	patience := 4*time.Minute + time.Duration(o.Count)*time.Millisecond
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, fmt.Errorf("%s takes too long", c.Name))
	defer cancel()
	return c.Run(ctx, o, acked)
}

func hostPort(t testing.TB, addr string) (string, int) {
	t.Helper()
	host, text, err := net.SplitHostPort(addr)
	rig.Must(t, err)
	port, err := strconv.Atoi(text)
	rig.Must(t, err)
	return host, port
}
