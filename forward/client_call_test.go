// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// outcomes notes what done is called with.
type outcomes struct {
	mu  sync.Mutex
	log []string
}

func (o *outcomes) done(id string) func(error) {
	return func(err error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		verdict := "acked"
		switch {
		case errors.Is(err, ErrCanceled):
			verdict = "canceled"
		case errors.Is(err, ErrClientClosed):
			verdict = "closed"
		case err != nil:
			verdict = err.Error()
		}
		o.log = append(o.log, id+" "+verdict)
	}
}

func (o *outcomes) start(t *testing.T, c *Client, ids string) (calls []*Call) {
	t.Helper()
	for _, id := range ids {
		k, err := c.Start(oneChunk(string(id)), o.done(string(id)))
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, k)
	}
	return calls
}

func (o *outcomes) logged() string {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	s := strings.Join(o.log, ", ")
	o.log = nil
	return s
}

func TestClientStart(t *testing.T) {
	for _, how := range []string{"", "gzip", "zstd"} {
		c := &Client{Window: 3, Compress: how}
		withClient(t, c, func(_ int, fc *fakeConn) { fc.ackAll() }, func(t *testing.T, f *fake) {
			var o outcomes
			calls := o.start(t, c, "abcdefgh")
			if got := o.logged(); got != "a acked, b acked, c acked, d acked, e acked, f acked, g acked, h acked" {
				t.Error(got)
			}
			if got := f.logged(); got != "1: a, 1: b, 1: c, 1: d, 1: e, 1: f, 1: g, 1: h" {
				t.Error(got)
			}
			if calls[0].Cancel() || !calls[0].Written() {
				t.Error("taken back after its ack")
			}
		})
	}
}

func TestClientStartAfterClose(t *testing.T) {
	c := &Client{}
	var o outcomes
	withClient(t, c, func(_ int, fc *fakeConn) { fc.drain() }, func(t *testing.T, _ *fake) {
		o.start(t, c, "ab")
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if got := o.logged(); got != "a closed, b closed" {
			t.Error(got)
		}
		if _, err := c.Start(oneChunk("c"), o.done("c")); !errors.Is(err, ErrClientClosed) {
			t.Error(err)
		}
		if got := o.logged(); got != "" {
			t.Error(got)
		}
	})
}

func TestClientCancel(t *testing.T) {
	c := &Client{Window: 2}
	var answer chan struct{} // of the bubble
	withClient(t, c, func(_ int, fc *fakeConn) {
		for {
			ch, err := fc.next()
			if err != nil {
				return
			}
			<-answer
			fc.ack(ch.ID)
		}
	}, func(t *testing.T, f *fake) {
		var o outcomes
		answer = make(chan struct{})
		calls := o.start(t, c, "abcd")
		synctest.Wait()
		// a is read, b is being written, c and d wait for room in the window.
		for i, want := range []struct{ written, taken bool }{
			{true, false},
			{true, false},
			{false, true},
			{false, false},
		} {
			if got := calls[i].Written(); got != want.written {
				t.Errorf("%d: written %v", i, got)
			}
		}
		if !calls[2].Cancel() || calls[2].Cancel() {
			t.Error("what waits can be taken back, once")
		}
		answer <- struct{}{}
		answer <- struct{}{}
		if got := o.logged(); got != "a acked, b acked" {
			t.Error(got)
		}
		if !calls[3].Written() {
			t.Error("it is there, and not acked")
		}
		if !calls[3].Cancel() {
			t.Error("its bytes are not in use")
		}
		o.start(t, c, "e")
		close(answer) // the late ack is for the chunk that was left
		if got := o.logged(); got != "e acked" {
			t.Error(got)
		}
		if got := f.logged(); got != "1: a, 1: b, 1: d, 1: e" {
			t.Error(got)
		}
	})
}

// A chunk whose bytes are in use is given back when they are not; the server, which reads nothing,
// cannot have it.
func TestClientCancelWhileWriting(t *testing.T) {
	c := &Client{}
	withClient(t, c, func(n int, fc *fakeConn) {
		if n == 1 {
			_, _ = io.ReadFull(fc, make([]byte, 3))
			<-time.After(time.Hour)
			return
		}
		fc.ackAll()
	}, func(t *testing.T, f *fake) {
		var o outcomes
		calls := o.start(t, c, "ab")
		synctest.Wait()
		if calls[0].Cancel() {
			t.Error("its bytes are in use")
		}
		<-time.After(time.Second)
		if got := o.logged(); got != "a canceled, b acked" {
			t.Error(got)
		}
		if calls[0].Written() {
			t.Error("three bytes are not a chunk")
		}
		if got := f.logged(); got != "2: b" {
			t.Error(got)
		}
	})
}

// A farewell on an idle connection is seen, with and without acks: what is sent next is not lost.
func TestClientIdleEnd(t *testing.T) {
	for _, noAck := range []bool{false, true} {
		c := &Client{NoAck: noAck}
		var changes []string
		c.Changed = func(up bool, err error) { changes = append(changes, fmt.Sprint(up, " ", err)) }
		var got []string
		var mu sync.Mutex
		withClient(t, c, func(_ int, fc *fakeConn) { // one chunk a connection
			ch, err := fc.next()
			if err != nil {
				return
			}
			mu.Lock()
			got = append(got, ch.Tag)
			mu.Unlock()
			if !noAck {
				fc.ack(ch.ID)
			}
		}, func(t *testing.T, _ *fake) {
			start := time.Now()
			for _, tag := range []string{"1", "2", "3"} {
				ch := oneChunk("x")
				ch.Tag = tag
				if err := c.Send(t.Context(), ch); err != nil {
					t.Error(err)
				}
				synctest.Wait()
			}
			if d := time.Since(start); d != 0 {
				t.Errorf("it took %v", d)
			}
			if got := fmt.Sprint(got); got != "[1 2 3]" {
				t.Error(got)
			}
			if got := fmt.Sprint(changes); got != "[true <nil> false <nil> true <nil> false <nil> true <nil> false <nil>]" {
				t.Error(got)
			}
			if st := c.Stats(); st.Failures != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// Without acks, what left in one piece before the connection broke is done, and the rest is sent
// again.
func TestClientNoAckBroken(t *testing.T) {
	c := &Client{NoAck: true}
	withClient(t, c, func(n int, fc *fakeConn) {
		if n > 1 {
			fc.drainChunks()
			return
		}
		for range 2 {
			_, _ = fc.next()
		}
	}, func(t *testing.T, f *fake) {
		var o outcomes
		for i := range 5 {
			ch := oneChunk("x")
			ch.Tag, ch.Entries = fmt.Sprint(i), entries(2000) // each is written for itself
			if _, err := c.Start(ch, o.done(ch.Tag)); err != nil {
				t.Error(err)
			}
		}
		<-time.After(time.Minute)
		if got := o.logged(); got != "0 acked, 1 acked, 2 acked, 3 acked, 4 acked" {
			t.Error(got)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.log) < 5 || len(f.log) > 6 {
			t.Error(f.log)
		}
	})
}

// drainChunks reads chunks.
func (c *fakeConn) drainChunks() {
	for {
		if _, err := c.next(); err != nil {
			return
		}
	}
}

// An ack that was not asked for is nobody's.
func TestClientNoAckAcked(t *testing.T) {
	c := &Client{NoAck: true}
	withClient(t, c, func(_ int, fc *fakeConn) {
		go fc.ack(nil)
		fc.drainChunks()
	}, func(t *testing.T, _ *fake) {
		var o outcomes
		o.start(t, c, "abc")
		<-time.After(time.Minute)
		if got := o.logged(); got != "a acked, b acked, c acked" {
			t.Error(got)
		}
	})
}

func TestClientConnect(t *testing.T) {
	c := &Client{}
	var mu sync.Mutex
	var changes []bool
	c.Changed = func(up bool, _ error) {
		mu.Lock()
		defer mu.Unlock()
		changes = append(changes, up)
	}
	withClient(t, c, func(n int, fc *fakeConn) {
		switch n {
		case 1:
			return
		case 2:
			fc.drain()
			return
		}
		fc.ackAll()
	}, func(t *testing.T, f *fake) {
		c.Connect(true)
		<-time.After(time.Second)
		synctest.Wait()
		mu.Lock()
		if got := fmt.Sprint(changes); got != "[true false true]" {
			t.Error(got)
		}
		mu.Unlock()
		c.Connect(false)
		c.Disconnect(errors.New("enough"))
		<-time.After(time.Hour)
		if f.conns != 2 {
			t.Errorf("%d connections", f.conns)
		}
		if err := c.Send(t.Context(), oneChunk("a")); err != nil || f.conns != 3 {
			t.Error(err, f.conns)
		}
	})
}

// A Dial that ignores its context is called again only when it has returned, and is left
// behind by Close.
func TestClientDialHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		release := make(chan struct{})
		c := &Client{Address: "192.0.2.1:24224", Dial: func(context.Context) (net.Conn, error) {
			dials.Add(1)
			<-release
			return nil, os.ErrNotExist
		}}
		var o outcomes
		o.start(t, c, "a")
		<-time.After(time.Minute)
		if n, st := dials.Load(), c.Stats(); n != 1 || st.Failures < 3 {
			t.Errorf("%d, %+v", n, st)
		}
		release <- struct{}{}
		<-time.After(time.Minute)
		if n := dials.Load(); n != 2 {
			t.Errorf("%d calls", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := c.CloseContext(ctx)
		if !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "192.0.2.1:24224: left behind: an attempt to connect") {
			t.Error(err)
		}
		if got := o.logged(); got != "a closed" {
			t.Error(got)
		}
		close(release)
		if err := c.CloseContext(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// deaf is a connection that knows no deadlines: it is closed to end a write.
type deaf struct{ net.Conn }

func (deaf) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }

func TestClientWithoutDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Client{Dial: func(context.Context) (net.Conn, error) {
			near, far := net.Pipe()
			t.Cleanup(func() { _ = far.Close() })
			return deaf{near}, nil
		}}
		var o outcomes
		o.start(t, c, "a")
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if got := o.logged(); got != "a closed" {
			t.Error(got)
		}
	})
}

// Cancel, Close and acks at the same time: done is called once unless Cancel says that it is not.
func TestClientCancelRaces(t *testing.T) {
	for range 20 {
		c := &Client{Window: 4, MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond}
		f := &fake{T: t, serve: func(_ int, fc *fakeConn) {
			for i := 0; ; i++ {
				ch, err := fc.next()
				if err != nil || i == 7 {
					return
				}
				fc.ack(ch.ID)
			}
		}}
		c.Dial = f.dial
		var ends [100]atomic.Int32
		var wg sync.WaitGroup
		for i := range ends {
			k, err := c.Start(oneChunk(fmt.Sprint(i)), func(error) { ends[i].Add(1) })
			if err != nil {
				t.Fatal(err)
			}
			if i%3 == 0 {
				wg.Go(func() {
					if k.Cancel() {
						ends[i].Add(1)
					}
				})
			}
		}
		wg.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		f.wg.Wait()
		for i := range ends {
			if n := ends[i].Load(); n != 1 {
				t.Errorf("chunk %d ended %d times", i, n)
			}
		}
	}
}
