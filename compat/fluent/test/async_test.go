// SPDX-License-Identifier: Apache-2.0

package test_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/compat/fluent/fluent"
	"github.com/spillwaylog/spillway/internal/needs"
)

// TestAsync posts each way over each network.
func TestAsync(t *testing.T) {
	for name, base := range modes {
		t.Run(name, func(t *testing.T) {
			for _, network := range []string{"tcp", "unix", "tls"} {
				t.Run(network, func(t *testing.T) {
					s := listenOn(t, network)
					config := s.config()
					config.Async, config.TagPrefix, config.WriteTimeout = true, "pre", patience
					config.MarshalAsJSON, config.RequestAck, config.SubSecondPrecision =
						base.MarshalAsJSON, base.RequestAck, base.SubSecondPrecision
					if network == "tls" {
						config.FluentNetwork, config.TlsInsecureSkipVerify = "tls", true
					}
					f := open(t, config)
					const count = 300
					for n := range count {
						must(t, f.PostWithTime("tag", clock, text("line %d", n)))
					}
					want := clock.Truncate(time.Second)
					if base.SubSecondPrecision && !base.MarshalAsJSON {
						want = clock
					}
					for n, e := range s.wait(count) {
						equal(t, e, event{"pre.tag", want, text("line %d", n)})
					}
					must(t, f.Close())
					if asked := s.ids[0] != "" || s.ids[len(s.ids)-1] != ""; asked != base.RequestAck {
						t.Errorf("ids %q", s.ids)
					}
					err := f.Post("tag", text("late"))
					if err == nil || err.Error() != "fluent#appendBuffer: Logger already closed" ||
						!errors.Is(err, spillway.ErrClosed) {
						t.Errorf("after Close: %v", err)
					}
					must(t, f.Close())
				})
			}
		})
	}
}

// TestAsyncRaw posts what EncodeData made, and all that PostWithTime takes.
func TestAsyncRaw(t *testing.T) {
	for name, config := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, direct := listen(t, "tcp", "127.0.0.1:0"), listen(t, "tcp", "127.0.0.1:0")
			at, to := config, config
			at.FluentPort, to.FluentPort = s.config().FluentPort, direct.config().FluentPort
			at.AsyncConnect = true //nolint:staticcheck // SA1019: the old name is what is tested
			f, err := fluent.NewWith(at, &spillway.Options{FlushInterval: time.Millisecond})
			must(t, err)
			defer func() { must(t, f.Close()) }()
			g := open(t, to)
			for i, v := range posts() {
				must(t, f.PostWithTime("tag", clock, v))
				must(t, g.PostWithTime("tag", clock, v))
				want := direct.wait(i + 1)[i]
				equal(t, s.wait(2*i + 1)[2*i], want)
				m, err := f.EncodeData("tag", clock, want.Record)
				must(t, err)
				f.PostRawData(m) //nolint:staticcheck // SA1019: it still works
				equal(t, s.wait(2*i + 2)[2*i+1], want)
			}
			if err := f.EncodeAndPostData("tag", clock, 5); !errors.Is(err, spillway.ErrNotRecord) {
				t.Errorf("a number as record: %v", err)
			}
		})
	}
}

// nowhere is an address at which nobody listens.
func nowhere(t testing.TB) net.Addr {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", needs.Address())
	must(t, err)
	return a
}

// patient is a Config that tries again soon.
func patient(address net.Addr) fluent.Config {
	config := pointAt(address)
	config.Async, config.RequestAck, config.RetryWait, config.MaxRetryWait = true, true, 1, 20
	return config
}

// TestBufferLimit fills a logger while the server is down.
func TestBufferLimit(t *testing.T) {
	address := nowhere(t)
	config := patient(address)
	config.BufferLimit = 10
	f := open(t, config)
	for n := range 10 {
		must(t, f.Post("tag", text("%d", n)))
	}
	for range 3 {
		err := f.Post("tag", text("too many"))
		if !errors.Is(err, spillway.ErrFull) || err.Error() != "fluent#appendBuffer: Buffer full, limit 10" {
			t.Fatal(err)
		}
	}
	s := listen(t, "tcp", address.String())
	s.wait(10)
	until := time.Now().Add(patience)
	for f.Post("tag", text("10")) != nil { // the events that are there have been counted off
		if time.Now().After(until) {
			t.Fatal("still full")
		}
		<-time.After(time.Millisecond)
	}
	for n, e := range s.wait(11) {
		equal(t, e.Record, any(text("%d", n)))
	}
}

// TestRingIsTheLimit fills a logger without a BufferLimit.
func TestRingIsTheLimit(t *testing.T) {
	address := nowhere(t)
	f, err := fluent.NewWith(patient(address), &spillway.Options{RingSize: 1 << 20, MaxEvent: 64 << 10})
	must(t, err)
	defer func() { _ = f.Close() }()
	record := map[string]string{"log": strings.Repeat("x", 10000)}
	posted := 0
	for ; posted < 1000; posted++ {
		if err = f.Post("tag", record); err != nil {
			break
		}
	}
	if !errors.Is(err, spillway.ErrFull) || !strings.HasPrefix(err.Error(),
		"fluent#appendBuffer: Buffer full, limit ") {
		t.Fatalf("after %d events: %v", posted, err)
	}
	if err := f.Post("tag", map[string]string{"log": strings.Repeat("x", 100000)}); !errors.Is(err,
		spillway.ErrTooLarge) {
		t.Errorf("a large event: %v", err)
	}
	s := listen(t, "tcp", address.String())
	s.wait(posted)
}

// TestSpill posts five times what the ring holds while the server is down; a folder takes it.
func TestSpill(t *testing.T) {
	t.Setenv("SPILLWAY_DIR", t.TempDir())
	address := nowhere(t)
	f, err := fluent.NewWith(patient(address), &spillway.Options{RingSize: 1 << 20, MaxEvent: 64 << 10})
	must(t, err)
	defer func() { must(t, f.Close()) }()
	const count = 500
	record := map[string]any{"log": strings.Repeat("x", 10000)}
	until := time.Now().Add(patience)
	for n := 0; n < count; {
		record["n"] = n
		switch err := f.Post("tag", record); {
		case err == nil:
			n++
		case !errors.Is(err, spillway.ErrFull) || time.Now().After(until):
			t.Fatalf("event %d: %v", n, err)
		default: // the disk is slower than this loop
			<-time.After(time.Millisecond)
		}
	}
	s := listen(t, "tcp", address.String())
	var came []any
	for want := count; len(came) < count; want++ {
		came = nil
		for _, e := range s.wait(want) {
			if e.Tag == "tag" { // and not the summary that tells of the refusals
				came = append(came, e.Record.(map[string]any)["n"])
			}
		}
	}
	for n := range count {
		equal(t, fmt.Sprint(came[n]), fmt.Sprint(n))
	}
}

// results collects what a callback is told.
type results struct {
	mu   sync.Mutex
	data [][]byte
	errs []error
}

func (r *results) callback(data []byte, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.data, r.errs = append(r.data, data), append(r.errs, err)
}

// wait returns what was told when it is n.
func (r *results) wait(t testing.TB, n int) ([][]byte, []error) {
	t.Helper()
	until := time.Now().Add(patience)
	for {
		r.mu.Lock()
		data, errs := r.data, r.errs
		r.mu.Unlock()
		if len(data) >= n {
			return data, errs
		}
		if time.Now().After(until) {
			t.Fatalf("%d events were told, want %d", len(data), n)
		}
		<-time.After(time.Millisecond)
	}
}

// TestCallback is told of each event once, with the message that EncodeData makes.
func TestCallback(t *testing.T) {
	for name, base := range modes {
		t.Run(name, func(t *testing.T) {
			var told results
			address := nowhere(t)
			config := patient(address)
			config.MarshalAsJSON, config.RequestAck, config.SubSecondPrecision =
				base.MarshalAsJSON, base.RequestAck, base.SubSecondPrecision
			config.MaxRetry, config.AsyncResultCallback = 1, told.callback
			f := open(t, config)
			check := func(from int, failed bool) {
				t.Helper()
				for n := range 5 {
					must(t, f.PostWithTime("tag", clock, text("%d", from+n)))
				}
				data, errs := told.wait(t, from+5)
				for n := range 5 {
					if (errs[from+n] != nil) != failed {
						t.Errorf("event %d: %v", from+n, errs[from+n])
					}
					plain := config
					plain.RequestAck = false // ids belong to chunks
					m, err := (&fluent.Fluent{Config: plain}).EncodeData("tag", clock, text("%d", from+n))
					must(t, err)
					equal(t, string(data[from+n]), string(dataOf(t, m)))
				}
			}
			check(0, true)
			s := listen(t, "tcp", address.String())
			until := time.Now().Add(patience)
			from := 5
			for { // the breaker closes when it has found the server
				must(t, f.PostWithTime("tag", clock, text("%d", from)))
				_, errs := told.wait(t, from+1)
				from++
				if errs[from-1] == nil {
					break
				}
				if time.Now().After(until) {
					t.Fatal("the server is not found")
				}
			}
			check(from, false)
			must(t, f.Close())
			events := s.wait(6)
			equal(t, len(events), 6) // what was given up does not come
			if data, _ := told.wait(t, from+5); len(data) != from+5 {
				t.Errorf("%d events were told, want %d", len(data), from+5)
			}
		})
	}
}

// TestCloseOfAsyncReturns closes while the server does not ack, does not read, or is not there.
// What is left is not lost: it comes to the next logger.
func TestCloseOfAsyncReturns(t *testing.T) {
	for name, base := range map[string]fluent.Config{
		"forced, no acks":   {ForceStopAsyncSend: true, RequestAck: true},
		"forced, no server": {ForceStopAsyncSend: true},
		"no acks":           {RequestAck: true}, "no server": {RequestAck: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &spillway.Options{Shm: t.TempDir(), RingSize: 1 << 20}
			s := play(t)
			config := patient(s.l.Addr())
			config.ForceStopAsyncSend, config.RequestAck = base.ForceStopAsyncSend, base.RequestAck
			config.Timeout, config.MaxRetry = 100*time.Millisecond, 2
			down := strings.Contains(name, "server")
			if down {
				must(t, s.l.Close())
			}
			f, err := fluent.NewWith(config, o)
			must(t, err)
			for n := range 5 {
				must(t, f.PostWithTime("tag", clock, text("%d", n)))
			}
			if !down {
				var b [1]byte
				_, err := s.accept().nc.Read(b[:]) // a chunk is on its way
				must(t, err)
			}
			var left *spillway.UndeliveredError
			in(t, "Close", func() { err = f.Close() })
			if !errors.As(err, &left) || left.Events != 5 {
				t.Fatalf("Close: %v", err)
			}
			in(t, "Close again", func() { _ = f.Close() })
			must(t, closed(s.l))
			needs.Have(t, len(left.Where) > 0,
				"a ring in shared memory (Linux): in plain memory it ends with its logger")

			again := listen(t, "tcp", s.l.Addr().String())
			f, err = fluent.NewWith(config, o)
			must(t, err)
			defer func() { must(t, f.Close()) }()
			must(t, f.PostWithTime("tag", clock, text("5")))
			events := again.wait(6)
			for n := range 6 {
				equal(t, events[n].Record, any(text("%d", n)))
			}
		})
	}
}

// closed closes a listener that may be closed.
func closed(l net.Listener) error {
	if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// TestReconnectInterval has connections end by age: no event is lost or comes twice.
func TestReconnectInterval(t *testing.T) {
	for name, base := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			must(t, err)
			counted := &countingListener{Listener: l}
			s := serve(t, counted)
			config := patient(l.Addr())
			config.MarshalAsJSON, config.RequestAck = base.MarshalAsJSON, base.RequestAck
			config.AsyncReconnectInterval = 1
			f, err := fluent.NewWith(config, &spillway.Options{FlushInterval: time.Millisecond})
			must(t, err)
			defer func() { must(t, f.Close()) }()
			until := time.Now().Add(patience)
			n := 0
			for ; counted.count() < 3 || n < 20; n++ {
				must(t, f.Post("tag", text("%d", n)))
				s.wait(n + 1)
				if time.Now().After(until) {
					t.Fatalf("%d connections after %d events", counted.count(), n)
				}
			}
			must(t, f.Close())
			events := s.wait(n)
			equal(t, len(events), n)
			for n, e := range events {
				equal(t, e.Record, any(text("%d", n)))
			}
		})
	}
}

type countingListener struct {
	net.Listener
	mu sync.Mutex
	n  int
}

func (l *countingListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	l.mu.Lock()
	l.n++
	l.mu.Unlock()
	return nc, err
}

func (l *countingListener) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

// TestAsyncTogether posts from many goroutines while the server comes and goes.
func TestAsyncTogether(t *testing.T) {
	address := nowhere(t)
	f := open(t, patient(address))
	const posters, each = 8, 500
	var wg sync.WaitGroup
	for p := range posters {
		wg.Go(func() {
			for n := range each {
				if err := f.Post(fmt.Sprint("tag", p), map[string]int{"p": p, "n": n}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	s := listen(t, "tcp", address.String())
	wg.Wait()
	next := map[string]int{}
	for _, e := range s.wait(posters * each) {
		want := map[string]any{"p": e.Tag[3] - '0', "n": next[e.Tag]}
		if fmt.Sprint(e.Record) != fmt.Sprint(want) { // numbers come back in several types
			t.Fatalf("%s: %v, want %v", e.Tag, e.Record, want)
		}
		next[e.Tag]++
	}
	must(t, f.Close())
}
