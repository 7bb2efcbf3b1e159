// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// TestPatience: a sender that goes on, however slowly, is not cut though others wait for what it
// holds. One that stops is, and so is one that brings a byte now and then. The time is that of the
// bubble.
func TestPatience(t *testing.T) {
	for _, little := range []int{0, 1} {
		s := &Server{Handler: nothing{}, Memory: 200 << 10}
		bubble(t, s, func(t *testing.T, p *pipes, troubles func() string) {
			big := messageOf(200<<10, "x")
			steady, waits := p.peer(), p.peer()
			write(t, steady, big[:140<<10]) // it overdraws, for its buffer is larger than all
			synctest.Wait()
			rest := big[140<<10:]
			written := make(chan error, 1)
			go func() {
				_, err := waits.Write(big)
				written <- err
			}()
			for range 60 {
				<-time.After(900 * time.Millisecond)
				write(t, steady, rest[:1000])
				rest = rest[1000:]
				synctest.Wait()
			}
			if troubles() != "" || steady.closed() || s.mem.waiting.Load() == 0 {
				t.Fatalf("closed %v, %d wait: %s", steady.closed(), s.mem.waiting.Load(), troubles())
			}
			for i := 0; i < 100 && !steady.closed(); i++ {
				<-time.After(DefaultStallTimeout / 100)
				if little > 0 {
					_, _ = steady.Write(rest[:little]) // it may be closed
					rest = rest[little:]
				}
				synctest.Wait()
			}
			if err := <-written; err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if got, _ := waits.received(); !bytes.Equal(got, ackOf("x")) || troubles() != "slow sender: connection closed" {
				t.Errorf("%d bytes now and then: acks %x, closed %v, %s", little, got, steady.closed(), troubles())
			}
			_, _ = steady.Close(), waits.Close()
		})
	}
}

// TestPatienceIsLearnt: it shrinks while connections are cut and none goes on after a pause, and
// grows again otherwise.
func TestPatienceIsLearnt(t *testing.T) {
	var w watch
	w.init(DefaultStallTimeout)
	var clock int64
	// after counts time with a look each 10 ms, which cuts so many, and returns the patience.
	after := func(d time.Duration, cut int, goOn bool) time.Duration {
		for range d / (10 * time.Millisecond) {
			clock += int64(10 * time.Millisecond)
			w.look(10 * time.Millisecond)
			if goOn {
				w.completed(&conn{paused: w.patience.Load()})
			}
			w.completed(&conn{paused: w.patience.Load()/looks - 1}) // that is no pause
			w.learn(cut, clock)
		}
		return time.Duration(w.patience.Load())
	}
	for _, step := range []struct {
		d    time.Duration
		cut  int
		goOn bool
		want time.Duration
	}{
		{500 * time.Millisecond, 5, false, time.Second},
		{500 * time.Millisecond, 5, false, time.Second / 2},
		{500 * time.Millisecond, 1, false, time.Second / 4},
		{10 * time.Second, 1, false, time.Second / 10}, // and not less
		{200 * time.Millisecond, 1, true, time.Second / 5},
		{10 * time.Second, 1, true, time.Second},
		{10 * time.Second, 1, false, time.Second / 10},
		{time.Second / 2, 0, false, time.Second / 10},
		{3 * time.Second / 2, 0, false, time.Second / 5},
		{10 * time.Second, 0, false, time.Second},
	} {
		if got := after(step.d, step.cut, step.goOn); got != step.want {
			t.Errorf("after %+v: %v", step, got)
		}
	}
	w.look(time.Hour) // a watcher without a turn
	if got := time.Duration(w.looked.Load() - 1 - clock); got > 2*everyMost {
		t.Errorf("counted %v more", got)
	}
	c := &conn{}
	w.patience.Store(w.longest / lessons)
	before := w.with(c)
	c.pause.Store(w.longest / 10)
	if with := w.with(c); with < 2*before || with > 2*w.longest {
		t.Errorf("%v with a connection that makes pauses", time.Duration(with))
	}
}

// TestBytesBeforeLogin: what strangers send before a login counts, and holds up those with a login
// for no longer than half-sent messages do.
func TestBytesBeforeLogin(t *testing.T) {
	s := &Server{Handler: nothing{}, Memory: 128 << 10, HandshakeTimeout: 24 * time.Hour, Endpoint: Endpoint{Security: &Security{SharedKey: "key"}}}
	bubble(t, s, func(t *testing.T, p *pipes, troubles func() string) {
		half := letterOf("PING", "host", make([]byte, 7<<10))[:6<<10]
		var strangers []*peer
		for range 64 {
			q := p.peer()
			strangers = append(strangers, q)
			q.helo(t)
			write(t, q, half)
		}
		synctest.Wait()
		if held := s.Stats().Memory; held < 64<<10 || held > s.Memory+16<<10 { // one may overdraw
			t.Errorf("%d bytes are held", held)
		}
		good := p.peer()
		good.logIn(t, who{host: "a", key: "key"}, withID('a')...)
		for range 600 { // seconds
			if got, _ := good.received(); bytes.HasSuffix(got, ackOf("a")) {
				break
			}
			<-time.After(time.Second)
			synctest.Wait()
		}
		if got, _ := good.received(); !bytes.HasSuffix(got, ackOf("a")) || good.closed() {
			t.Errorf("received %q, closed %t: %s", got, good.closed(), troubles())
		}
		for _, q := range strangers {
			_ = q.Close()
		}
		_ = good.Close()
	})
}
