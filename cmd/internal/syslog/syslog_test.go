// SPDX-License-Identifier: Apache-2.0

package syslog

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/internal/testcert"
	"github.com/spillwaylog/spillway/internal/urls"
	"github.com/spillwaylog/spillway/msgpack"
)

const patience = 2 * time.Minute

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stored is an event as a sink got it.
type stored struct {
	tag  string
	when time.Time
	line string // the record as JSON
}

// sink keeps what it gets.
type sink struct {
	mu   sync.Mutex
	all  []stored
	err  error
	gate chan struct{} // Store waits for it, if it is set
}

func (s *sink) Position() []byte { return nil }

func (s *sink) Store(ctx context.Context, chunks []*forward.Chunk, _ []byte) (func(context.Context) error, error) {
	if s.gate != nil {
		<-s.gate
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	for _, c := range chunks {
		n := 0
		r := forward.ReadEntries(c.Entries)
		for e, ok := r.Next(); ok; e, ok = r.Next() {
			line, _, err := msgpack.AppendJSON(nil, e.Record, forward.AppendExtJSON)
			if err != nil {
				return nil, err
			}
			s.all = append(s.all, stored{c.Tag, time.Unix(e.Sec, int64(e.Nsec)).UTC(), string(line)})
			n++
		}
		if r.Err() != nil || n != c.Events {
			return nil, fmt.Errorf("a chunk of %d events that has %d: %w", c.Events, n, r.Err())
		}
	}
	return func(context.Context) error { return nil }, nil
}

func (s *sink) events() []stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// plan reads a URL as the collector does.
func plan(text string) (func(*collector.InputEnv) (collector.Input, error), error) {
	u, err := urls.Parse(text, "syslog+udp", "syslog+tcp", "syslog+tls", "syslog+unix")
	if err != nil {
		return nil, err
	}
	p := u.Params()
	open, err := Kinds[u.Scheme](u, p)
	return open, errors.Join(err, p.Err())
}

// run opens an input and runs it until the test ends, or stop is called.
func run(t *testing.T, url string, to *sink) (in *input, log *bytes.Buffer, stop func() error) {
	t.Helper()
	open, err := plan(url)
	must(t, err)
	log = &bytes.Buffer{}
	opened, err := open(&collector.InputEnv{Name: "in", Log: slog.New(slog.NewTextHandler(&lockedWriter{w: log}, nil))})
	must(t, err)
	in = opened.(*input)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- in.Run(ctx, to) }()
	stop = sync.OnceValue(func() error {
		cancel()
		err := <-ended
		return errors.Join(err, in.Close())
	})
	t.Cleanup(func() { _ = stop() }) // the test has looked at it, or it was nothing
	return in, log, stop
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not so", what)
		}
	}
}

// TestOriginHost: a host is the same whichever port it sends from.
func TestOriginHost(t *testing.T) {
	for o, want := range map[origin]string{
		{addr: netip.MustParseAddrPort("192.0.2.1:514")}:           "192.0.2.1",
		{addr: netip.MustParseAddrPort("[::ffff:192.0.2.1]:1514")}: "192.0.2.1",
		{addr: netip.MustParseAddrPort("[2001:db8::1]:514")}:       "2001:db8::1",
		{name: "/run/app"}: "/run/app",
	} {
		if got := o.host(); got != want {
			t.Errorf("%v: %q, want %q", o, got, want)
		}
	}
}

func TestURLs(t *testing.T) {
	for _, tt := range []struct{ url, want string }{
		{"syslog+udp://0.0.0.0:514", ""},
		{"syslog+tcp://[::1]:514?tag=sys.{host}&zone=UTC&max_message=8KiB&address_key=peer&max_connections=5", ""},
		{"syslog+tls://h:6514?cert=a&key=b&client_ca=c", ""},
		{"syslog+unix:///dev/log?receive_buffer=1MiB", ""},
		{"syslog+unix:///dev/log?type=stream", ""},
		{"syslog+udp://0.0.0.0", "host:port"},
		{"syslog+tls://h:6514?cert=a&key=b&client_ca=c&client_auth=request", ""},
		{"syslog+tls://h:6514", "cert= and key="},
		{"syslog+tls://h:6514?cert=a&key=b&client_auth=require", "client_ca="},
		{"syslog+tcp://h:1?cert=a", "unknown parameter"},
		{"syslog+tcp://h:1?tag={x}", "no placeholder {x}"},
		{"syslog+tcp://h:1?tag={app", "without its '}'"},
		{"syslog+tcp://h:1?zone=Mars/One", "zone"},
		{"syslog+tcp://h:1?max_message=1", "max_message"},
		{"syslog+udp://h:1?max_connections=1", "unknown parameter"},
		{"syslog+udp://h:1?receive_buffer=2GiB", "receive_buffer"},
		{"syslog+tcp://h:1?address_key=host", "address_key=host is a key"},
		{"syslog+udp://h:1?address_key=message", "address_key=message is a key"},
		{"syslog+unix://log.sock", "syslog+unix:///path"},
	} {
		_, err := plan(tt.url)
		if (tt.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.url, err, tt.want)
		}
	}
}

// TestSockets sends the same messages over every kind of socket, and ends the input while a sender
// is connected.
func TestSockets(t *testing.T) {
	ca := testcert.New(t)
	dir := t.TempDir()
	const n = 500
	for _, tt := range []struct {
		name, url string
		dial      func(in *input) (net.Conn, error)
		packets   bool
	}{
		{"udp", "syslog+udp://127.0.0.1:0", func(in *input) (net.Conn,
			error,
		) {
			return net.Dial("udp", in.Addr().String())
		}, true},
		{"tcp", "syslog+tcp://127.0.0.1:0", func(in *input) (net.Conn,
			error,
		) {
			return net.Dial("tcp", in.Addr().String())
		}, false},
		{
			"tls", "syslog+tls://127.0.0.1:0?cert=" + ca.Server.Cert + "&key=" + ca.Server.Key,
			func(in *input) (net.Conn, error) {
				return tls.Dial("tcp", in.Addr().String(), &tls.Config{RootCAs: ca.Pool})
			}, false,
		},
		{
			"unix", "syslog+unix://" + dir + "/s?type=stream",
			func(*input) (net.Conn, error) { return net.Dial("unix", dir+"/s") }, false,
		},
		{
			"unixgram", "syslog+unix://" + dir + "/d",
			func(*input) (net.Conn, error) { return net.Dial("unixgram", dir+"/d") }, true,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			to := &sink{}
			in, _, stop := run(t, tt.url, to)
			c, err := tt.dial(in)
			must(t, err)
			defer c.Close()
			for i := range n {
				text := fmt.Sprintf("<%d>Nov 24 14:05:06 web1 app[%d]: number %d", 8*(i%24)+i%8, i, i)
				switch {
				case tt.packets:
				case i%3 == 0:
					text = fmt.Sprintf("%d %s", len(text), text)
				default:
					text += "\n"
				}
				_, err := io.WriteString(c, text)
				must(t, err)
				if tt.packets && i%50 == 49 {
					eventually(t, "what was sent is stored", func() bool { return len(to.events()) == i+1 })
				}
			}
			eventually(t, "all is stored", func() bool { return len(to.events()) == n })
			if err := stop(); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			byApp := map[string]int{}
			for _, e := range to.events() {
				var r struct{ Facility, Severity, Host, App, PID, Message string }
				must(t, json.Unmarshal([]byte(e.line), &r))
				i := byApp[r.PID]
				byApp[r.PID]++
				_, _ = fmt.Sscan(r.PID, &i)
				want := [...]string{
					facilities[i%24], severities[i%8], "web1", "app", fmt.Sprintf("number %d", i),
					"syslog." + facilities[i%24] + ".app",
				}
				if got := [...]string{r.Facility, r.Severity, r.Host, r.App, r.Message, e.tag}; got != want {
					t.Fatalf("got %q, want %q", got, want)
				}
			}
			if len(byApp) != n {
				t.Errorf("%d different messages", len(byApp))
			}
		})
	}
}

// TestStored: a stream is not read on while what was read is not stored, and what was read when the
// input ends is stored.
func TestStored(t *testing.T) {
	to := &sink{gate: make(chan struct{})}
	in, _, stop := run(t, "syslog+tcp://127.0.0.1:0", to)
	c, err := net.Dial("tcp", in.Addr().String())
	must(t, err)
	_, err = io.WriteString(c, "<13>one\n<13>two\n<13>three")
	must(t, err)
	eventually(t, "it is read", func() bool { return in.bytes.Load() == 25 })
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	select {
	case <-ended:
		t.Fatal("the input ended while it could not store what it had read")
	case <-time.After(50 * time.Millisecond):
	}
	close(to.gate)
	<-ended
	if got := to.events(); len(got) != 3 || !strings.Contains(got[2].line, `"message":"three"`) {
		t.Errorf("stored: %+v", got)
	}
	c.Close()
}

// TestSinkFails: the input ends with the sink's error.
func TestSinkFails(t *testing.T) {
	for _, network := range []string{"udp", "tcp"} {
		broken := errors.New("broken")
		to := &sink{err: broken}
		open, err := plan("syslog+" + network + "://127.0.0.1:0")
		must(t, err)
		in, err := open(&collector.InputEnv{Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
		must(t, err)
		ended := make(chan error, 1)
		go func() { ended <- in.Run(context.Background(), to) }()
		c, err := net.Dial(network, in.(*input).Addr().String())
		must(t, err)
		_, err = io.WriteString(c, "<13>one\n")
		must(t, err)
		select {
		case err := <-ended:
			if !errors.Is(err, broken) {
				t.Errorf("%s: %v", network, err)
			}
		case <-time.After(patience):
			t.Errorf("%s: it goes on", network)
		}
		c.Close()
		must(t, in.(*input).Close())
	}
}

// TestLogger has util-linux's logger send in each of its forms.
func TestLogger(t *testing.T) {
	path, err := exec.LookPath("logger")
	needs.Have(t, err == nil, "logger of util-linux is missing (apt-get install bsdutils)")
	dir := t.TempDir()
	for _, tt := range []struct {
		name, url string
		args      func(in *input) []string
	}{
		{
			"udp 3164", "syslog+udp://127.0.0.1:0",
			func(in *input) []string { return append(server(in), "--udp", "--rfc3164") },
		},
		{
			"udp 5424", "syslog+udp://127.0.0.1:0",
			func(in *input) []string { return append(server(in), "--udp", "--rfc5424") },
		},
		{
			"tcp 3164", "syslog+tcp://127.0.0.1:0",
			func(in *input) []string { return append(server(in), "--tcp", "--rfc3164") },
		},
		{"tcp 5424, counted", "syslog+tcp://127.0.0.1:0", func(in *input) []string {
			return append(server(in), "--tcp", "--rfc5424", "--octet-count")
		}},
		{
			"dgram", "syslog+unix://" + filepath.Join(dir, "d"),
			func(*input) []string { return []string{"--socket", filepath.Join(dir, "d")} },
		},
		{"stream", "syslog+unix://" + filepath.Join(dir, "s") + "?type=stream", func(*input) []string {
			return []string{"--socket", filepath.Join(dir, "s"), "--tcp"}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			to := &sink{}
			in, _, _ := run(t, tt.url, to)
			began := time.Now()
			args := append(tt.args(in), "--priority", "local3.warning", "--tag", "shop", "--id=77", "order placed: 42")
			out, err := exec.Command(path, args...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			eventually(t, "it is stored", func() bool { return len(to.events()) == 1 })
			e := to.events()[0]
			for _, want := range []string{
				`"facility":"local3"`, `"severity":"warning"`, `"app":"shop"`, `"pid":"77"`,
				`"message":"order placed: 42"`,
			} {
				if !strings.Contains(e.line, want) {
					t.Errorf("%s lacks %s", e.line, want)
				}
			}
			if d := e.when.Sub(began).Abs(); d > patience || e.tag != "syslog.local3.shop" {
				t.Errorf("under %s, %v from now", e.tag, d)
			}
		})
	}
}

func server(in *input) []string {
	host, port, err := net.SplitHostPort(in.Addr().String())
	if err != nil {
		return nil
	}
	return []string{"--server", host, "--port", port}
}
