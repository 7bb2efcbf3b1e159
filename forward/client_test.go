// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/forward/internal/wire"
	"github.com/spillwaylog/spillway/msgpack"
)

// fake is a server that does with each connection what a test says.
type fake struct {
	*testing.T
	mu    sync.Mutex
	log   []string // n: id, for message n of the log on connection n
	conns int
	serve func(n int, c *fakeConn)
	wg    sync.WaitGroup
}

type fakeConn struct {
	net.Conn
	f    *fake
	n    int
	scan msgpack.Scanner
	buf  []byte
}

func (f *fake) dial(context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns++
	c := &fakeConn{Conn: far, f: f, n: f.conns}
	f.wg.Go(func() {
		f.serve(c.n, c)
		_ = far.Close()
	})
	return near, nil
}

// next reads a message.
func (c *fakeConn) next() (*Chunk, error) {
	seen := 0
	for {
		n, done, err := c.scan.Scan(c.buf[seen:])
		if err != nil {
			return nil, err
		}
		if seen += n; done {
			msg := c.buf[:seen]
			c.buf = c.buf[seen:]
			ch, err := parseAny(msg)
			if err == nil {
				c.f.mu.Lock()
				c.f.log = append(c.f.log, fmt.Sprintf("%d: %s", c.n, ch.ID))
				c.f.mu.Unlock()
			}
			return ch, err
		}
		b := make([]byte, 4096)
		n, err = c.Read(b)
		c.buf = append(c.buf, b[:n]...)
		if err != nil {
			return nil, err
		}
	}
}

// parseAny is Parse that undoes compression.
func parseAny(msg []byte) (*Chunk, error) {
	var out *Chunk
	o := play(func(s *Server) {
		s.Handler = HandlerFunc(func(_ context.Context, c *Chunk) error {
			d := *c
			d.ID, d.Entries = slices.Clone(c.ID), slices.Clone(c.Entries)
			out = &d
			return nil
		})
	}, msg)
	if out == nil {
		return nil, fmt.Errorf("no chunk: %s", o.kinds())
	}
	return out, nil
}

func (c *fakeConn) ack(id []byte) { _, _ = c.Write(wire.AppendAck(nil, id, false, false)) }

// ackAll acks everything.
func (c *fakeConn) ackAll() {
	for {
		ch, err := c.next()
		if err != nil {
			return
		}
		c.ack(ch.ID)
	}
}

func (f *fake) logged() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.log, ", ")
}

// withClient runs a test in a bubble.
func withClient(t *testing.T, c *Client, serve func(n int, c *fakeConn), test func(t *testing.T, f *fake)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{T: t, serve: serve}
		c.Dial, c.Address = f.dial, "192.0.2.1:24224"
		test(t, f)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := c.Send(t.Context(), oneChunk("z")); !errors.Is(err, ErrClientClosed) {
			t.Error(err)
		}
		f.wg.Wait()
	})
}

func oneChunk(id string) *Chunk {
	return &Chunk{Tag: "t", ID: []byte(id), Entries: unhex(hexEntry1), Events: 1}
}

// sendAll sends chunks a, b, c… at the same time, but in that order.
func sendAll(t *testing.T, c *Client, n int) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = c.Send(t.Context(), oneChunk(string(rune('a'+i)))) })
		synctest.Wait()
	}
	wg.Wait()
	return errs
}

func noErrors(t *testing.T, errs []error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

func TestClientPipelines(t *testing.T) {
	c := &Client{Window: 4}
	withClient(t, c, func(_ int, fc *fakeConn) {
		var ids [][]byte
		for {
			ch, err := fc.next()
			if err != nil {
				return
			}
			if ids = append(ids, ch.ID); len(ids) == 4 { // not before the window is full
				for _, id := range ids {
					fc.ack(id)
				}
				ids = nil
			}
		}
	}, func(t *testing.T, f *fake) {
		noErrors(t, sendAll(t, c, 8))
		if got := f.logged(); got != "1: a, 1: b, 1: c, 1: d, 1: e, 1: f, 1: g, 1: h" {
			t.Error(got)
		}
		if st := c.Stats(); st.Acked != 8 || st.Sent != 8 || st.Resent != 0 || st.Connects != 1 || st.Queued != 0 ||
			st.InFlight != 0 {
			t.Errorf("%+v", st)
		}
	})
}

func TestRule28Resend(t *testing.T) {
	for name, first := range map[string]func(fc *fakeConn){
		"closes at once":        func(*fakeConn) {},
		"closes after reading":  func(fc *fakeConn) { _, _ = fc.next() },
		"never acks":            func(fc *fakeConn) { _, _ = io.Copy(io.Discard, fc) },
		"never reads":           func(fc *fakeConn) { <-time.After(time.Hour) },
		"acks another":          func(fc *fakeConn) { _, _ = fc.next(); fc.ack([]byte("x")); fc.drain() },
		"acks the second first": func(fc *fakeConn) { _, _ = fc.next(); fc.ack([]byte("b")); fc.drain() },
		"garbage":               func(fc *fakeConn) { _, _ = fc.next(); _, _ = fc.Write([]byte{0xc1}); fc.drain() },
		"half an ack":           func(fc *fakeConn) { _, _ = fc.next(); _, _ = fc.Write(ackOf("a")[:3]) },
	} {
		t.Run(name, func(t *testing.T) {
			c := &Client{}
			withClient(t, c, func(n int, fc *fakeConn) {
				if n < 3 {
					first(fc)
					return
				}
				fc.ackAll()
			}, func(t *testing.T, f *fake) {
				noErrors(t, sendAll(t, c, 3))
				if got := f.logged(); !strings.HasSuffix(got, "3: a, 3: b, 3: c") || f.conns != 3 {
					t.Error(got)
				}
				if st := c.Stats(); st.Failures != 2 || st.Acked != 3 {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

func (c *fakeConn) drain() { _, _ = io.Copy(io.Discard, c) }

// What was acked is not sent again, what was not is, in order.
func TestRule28ResendsTheRest(t *testing.T) {
	c := &Client{}
	withClient(t, c, func(n int, fc *fakeConn) {
		if n > 1 {
			fc.ackAll()
			return
		}
		for range 4 {
			ch, err := fc.next()
			if err != nil {
				t.Error(err)
			}
			if id := string(ch.ID); id == "a" || id == "b" {
				fc.ack(ch.ID)
			}
		}
	}, func(t *testing.T, f *fake) {
		noErrors(t, sendAll(t, c, 4))
		if got := f.logged(); got != "1: a, 1: b, 1: c, 1: d, 2: c, 2: d" {
			t.Error(got)
		}
	})
}

func TestRule29Acks(t *testing.T) {
	for name, tc := range map[string]struct {
		writes []string // hexadecimal
		conns  int
	}{
		"one":              {[]string{"81 a3 61636b a1 61", "81 a3 61636b a1 62"}, 1},
		"two in one":       {[]string{"81 a3 61636b a1 61  81 a3 61636b a1 62"}, 1},
		"split":            {[]string{"81 a3 61", "636b a1", "61", "81 a3 61636b a1 62"}, 1},
		"split and joined": {[]string{"81 a3 61636b a1 61 81", "a3 61636b a1 62"}, 1},
		"bin":              {[]string{"81 a3 61636b c4 01 61  81 a3 61636b c4 01 62"}, 1},
		"more keys":        {[]string{"82 a1 78 92 01 02 a3 61636b a1 61  82 a3 61636b a1 62 a1 78 05"}, 1},
		"long forms":       {[]string{"de 0001 d9 03 61636b da 0001 61  81 a3 61636b a1 62"}, 1},
		"empty map":        {[]string{"80"}, 2},
		"nil":              {[]string{"c0"}, 2},
		"ack is nil":       {[]string{"81 a3 61636b c0"}, 2},
		"good, then NACK":  {[]string{"81 a3 61636b a1 61 80"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Client{}
			withClient(t, c, func(n int, fc *fakeConn) {
				if n > 1 {
					fc.ackAll()
					return
				}
				for range 2 {
					if _, err := fc.next(); err != nil {
						t.Error(err)
					}
				}
				for _, w := range tc.writes {
					_, _ = fc.Write(unhex(w))
				}
				fc.drain()
			}, func(t *testing.T, f *fake) {
				noErrors(t, sendAll(t, c, 2))
				if f.conns != tc.conns {
					t.Errorf("%d connections", f.conns)
				}
			})
		})
	}
}

func TestRule44PackedAsBin(t *testing.T) {
	for _, how := range []string{"", "gzip", "zstd"} {
		c := &Client{Compress: how}
		var first [4]byte
		withClient(t, c, func(_ int, fc *fakeConn) {
			if _, err := io.ReadFull(fc, first[:]); err != nil {
				t.Error(err)
			}
			fc.buf = append(fc.buf, first[:]...)
			fc.ackAll()
		}, func(t *testing.T, f *fake) {
			noErrors(t, sendAll(t, c, 1))
			if want := [4]byte{0x93, 0xa1, 't', 0xc4}; first != want {
				t.Errorf("%q: %x", how, first)
			}
		})
	}
}

func TestRule45SameBytesAgain(t *testing.T) {
	for _, how := range []string{"", "gzip", "zstd"} {
		c := &Client{Compress: how}
		var got [][]byte
		withClient(t, c, func(n int, fc *fakeConn) {
			ch, err := fc.next()
			if err != nil || !ch.UniqueID || len(ch.ID) != 24 {
				t.Errorf("%+v %v", ch, err)
				return
			}
			got = append(got, slices.Concat(ch.ID, ch.Entries))
			if n == 3 {
				fc.ack(ch.ID)
			}
		}, func(t *testing.T, f *fake) {
			ch := oneChunk("")
			ch.ID = nil
			if err := c.Send(t.Context(), ch); err != nil || ch.ID != nil {
				t.Error(err)
			}
			if len(got) != 3 || !bytes.Equal(got[0], got[1]) || !bytes.Equal(got[0], got[2]) {
				t.Errorf("%q", got)
			}
		})
	}
	if a, b := NewID(), NewID(); len(a) != 24 || bytes.Equal(a, b) {
		t.Errorf("%s %s", a, b)
	}
}

func TestClientContext(t *testing.T) {
	c := &Client{}
	withClient(t, c, func(n int, fc *fakeConn) {
		if n == 1 {
			fc.drain()
			return
		}
		fc.ackAll()
	}, func(t *testing.T, f *fake) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		err := c.Send(ctx, oneChunk("a"))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "192.0.2.1:24224") ||
			time.Since(start) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		// The chunk that was left behind is not acked: the connection is given up, and only the
		// other one is sent again.
		if err := c.Send(t.Context(), oneChunk("b")); err != nil {
			t.Error(err)
		}
		if got := f.logged(); got != "2: b" {
			t.Error(got)
		}
	})
}

// A server that reads nothing: the caller gets its bytes back at once when its ctx ends, although
// they are being written.
func TestClientContextWhileWriting(t *testing.T) {
	c := &Client{}
	withClient(t, c, func(n int, fc *fakeConn) {
		if n == 1 {
			<-time.After(time.Minute / 2)
			return
		}
		fc.ackAll()
	}, func(t *testing.T, f *fake) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		big := oneChunk("a")
		big.Entries = entries(1000)
		big.Events = 1000
		if err := c.Send(ctx, big); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		clear(big.Entries)
		if err := c.Send(t.Context(), oneChunk("b")); err != nil {
			t.Error(err)
		}
		if got := f.logged(); got != "2: b" {
			t.Error(got)
		}
	})
}

func TestClientLateAck(t *testing.T) {
	c := &Client{}
	withClient(t, c, func(_ int, fc *fakeConn) {
		for {
			ch, err := fc.next()
			if err != nil {
				return
			}
			<-time.After(10 * time.Second)
			fc.ack(ch.ID)
		}
	}, func(t *testing.T, f *fake) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Send(ctx, oneChunk("a")); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := c.Send(t.Context(), oneChunk("b")); err != nil || f.conns != 1 {
			t.Error(err, f.conns)
		}
	})
}

// A server that waits for messages while a client waits for its answer to a handshake is one that
// is not set up for it: the error says so.
func TestClientSilence(t *testing.T) {
	for want, c := range map[string]*Client{
		"speaks no TLS":     {TLS: &tls.Config{InsecureSkipVerify: true}},
		"asks for no login": {Login: &Login{SharedKey: "k"}},
	} {
		withClient(t, c, func(_ int, fc *fakeConn) { fc.drain() }, func(t *testing.T, _ *fake) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := c.Send(ctx, oneChunk("a")); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not tell of a server that %s", err, want)
			}
		})
	}
}

func TestClientRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("dial tcp 192.0.2.1:24224: connection refused")
		tries := 0
		c := &Client{Address: "192.0.2.1:24224", Dial: func(context.Context) (net.Conn, error) {
			tries++
			return nil, refused
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := c.Send(ctx, oneChunk("a"))
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, refused) {
			t.Error(err)
		}
		synctest.Wait()
		if tries < 10 || tries > 25 {
			t.Errorf("%d tries in a minute", tries)
		}
		before := tries
		<-time.After(time.Hour)
		if tries != before {
			t.Error("tries although nobody waits")
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestClientNoConnection has a Dial that returns nothing at all.
func TestClientNoConnection(t *testing.T) {
	told := make(chan error, 1)
	c := &Client{
		Address: "h:1", Dial: func(context.Context) (net.Conn, error) { return nil, nil },
		Report: func(err error) {
			select {
			case told <- err:
			default:
			}
		},
	}
	defer c.Close()
	c.Connect(true)
	if err := <-told; !strings.Contains(err.Error(), "neither a connection nor an error") {
		t.Error(err)
	}
}

func TestClientCloseWhileSending(t *testing.T) {
	c := &Client{}
	withClient(t, c, func(_ int, fc *fakeConn) { <-time.After(time.Hour) }, func(t *testing.T, f *fake) {
		result := make(chan error)
		go func() {
			big := oneChunk("a")
			big.Entries = entries(100)
			result <- c.Send(t.Context(), big)
		}()
		synctest.Wait()
		go func() { _ = c.Close() }()
		if err := <-result; !errors.Is(err, ErrClientClosed) {
			t.Error(err)
		}
	})
}

func TestClientNoAck(t *testing.T) {
	c := &Client{NoAck: true}
	withClient(t, c, func(_ int, fc *fakeConn) {
		for {
			ch, err := fc.next()
			if err != nil {
				return
			}
			if ch.ID != nil {
				t.Errorf("id %q", ch.ID)
			}
		}
	}, func(t *testing.T, f *fake) {
		noErrors(t, sendAll(t, c, 40))
		synctest.Wait()
		if n := len(f.log); n != 40 {
			t.Errorf("%d chunks", n)
		}
	})
}

func TestClientBadCompression(t *testing.T) {
	c := &Client{Compress: "lzma"}
	if err := c.Send(t.Context(), oneChunk("a")); err == nil || !strings.Contains(err.Error(), "lzma") {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// Many senders over one connection to a server that closes it again and again: everything arrives,
// and what is acked was stored.
func TestClientServer(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			address := "127.0.0.1:0"
			if network == "unix" {
				address = filepath.Join(t.TempDir(), "s")
			}
			l, err := net.Listen(network, address)
			if err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			stored := make(map[string]int)
			calls := 0
			s := &Server{Handler: HandlerFunc(func(_ context.Context, c *Chunk) error {
				mu.Lock()
				defer mu.Unlock()
				if calls++; calls%37 == 0 {
					return errors.New("now and then")
				}
				stored[string(c.ID)]++
				return nil
			})}
			served := make(chan error)
			go func() { served <- s.Serve(l) }()
			c := &Client{
				Network: network, Address: l.Addr().String(), Compress: "gzip", MinBackoff: time.Millisecond,
				MaxBackoff: 5 * time.Millisecond,
			}
			var wg sync.WaitGroup
			for g := range 8 {
				wg.Go(func() {
					for i := range 50 {
						id := fmt.Sprintf("%d-%d", g, i)
						if err := c.Send(t.Context(), oneChunk(id)); err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						n := stored[id]
						mu.Unlock()
						if n == 0 {
							t.Errorf("%s is acked, not stored", id)
						}
					}
				})
			}
			wg.Wait()
			if err := errors.Join(c.Close(), s.Close()); err != nil {
				t.Error(err)
			}
			<-served
			if st := c.Stats(); st.Acked != 400 || st.Failures == 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}
