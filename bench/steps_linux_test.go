// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/bench/internal/clients"
	"github.com/spillwaylog/spillway/bench/internal/daemon"
	"github.com/spillwaylog/spillway/bench/internal/order"
	"github.com/spillwaylog/spillway/msgpack"
)

// The steps in which daichirata made a Forward client fast, each with those before it.
const (
	synchronous = iota // Post encodes, and writes to the socket itself
	// A goroutine writes; Post wakes it, with a goroutine for each wake-up, and its buffer is
	// locked while it writes.
	asynchronous
	apart     // the buffer is taken away before it is written
	pooled    // messages are used again
	oneWakeUp // only the first message in an empty buffer wakes
	steps
)

var stepNames = [steps]string{"synchronous", "asynchronous", "buffer apart", "pooled", "one wake-up"}

// maxWakeUps is how many goroutines may be about to wake the writer; his were without bound.
const maxWakeUps = 10_000

// A stepClient is such a client at one step: Message mode, no acks, nothing after an error.
type stepClient struct {
	step int
	conn net.Conn
	pool sync.Pool
	sent int64 // bytes

	mu       sync.Mutex
	buf      []byte     // synchronous, asynchronous
	messages []*message // later
	spare    []*message

	dirty  chan struct{}
	wakers chan struct{}
	ended  chan struct{}
}

type message struct{ raw []byte }

func newStepClient(step int, addr string) (*stepClient, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &stepClient{
		step: step, conn: conn, dirty: make(chan struct{}, 1), wakers: make(chan struct{}, maxWakeUps),
		ended: make(chan struct{}),
	}
	c.pool.New = func() any { return &message{} }
	if step == synchronous {
		close(c.ended)
	} else {
		go c.write()
	}
	return c, nil
}

func (c *stepClient) Post(tag string, v any) error {
	m := &message{}
	if c.step >= pooled {
		m = c.pool.Get().(*message)
	}
	b := msgpack.AppendArrayHeader(m.raw[:0], 3)
	b = msgpack.AppendString(b, tag)
	b = msgpack.AppendInt(b, time.Now().Unix())
	m.raw = spillway.AppendValue(b, v)
	c.mu.Lock()
	if c.step < apart {
		c.buf = append(c.buf, m.raw...)
	} else {
		c.messages = append(c.messages, m)
	}
	first := len(c.messages) == 1
	if c.step == synchronous {
		defer c.mu.Unlock()
		return c.flushLocked()
	}
	c.mu.Unlock()
	switch {
	case c.step < oneWakeUp:
		c.wakers <- struct{}{}
		go func() {
			c.dirty <- struct{}{}
			<-c.wakers
		}()
	case first:
		c.dirty <- struct{}{} // has room: the one before was taken with its messages
	}
	return nil
}

// flushLocked writes what is in buf.
func (c *stepClient) flushLocked() error {
	n, err := c.conn.Write(c.buf)
	c.sent += int64(n)
	c.buf = c.buf[:0]
	return err
}

func (c *stepClient) write() {
	defer close(c.ended)
	var out []byte
	for range c.dirty {
		c.mu.Lock()
		if c.step < apart {
			_ = c.flushLocked() // the count of bytes says so
			c.mu.Unlock()
			continue
		}
		taken := c.messages
		c.messages = c.spare[:0]
		c.mu.Unlock()
		out = out[:0]
		for _, m := range taken {
			out = append(out, m.raw...)
			if c.step >= pooled {
				c.pool.Put(m)
			}
		}
		clear(taken)
		c.spare = taken
		n, _ := c.conn.Write(out)
		c.sent += int64(n)
	}
}

// Close writes what is left.
func (c *stepClient) Close() error {
	if c.step != synchronous {
		for range maxWakeUps { // all that are about to wake have done so
			c.wakers <- struct{}{}
		}
		c.dirty <- struct{}{}
		close(c.dirty)
		<-c.ended
	}
	return c.conn.Close()
}

// BenchmarkSteps is what each of these steps gains, with daichirata's struct and map, beside the
// official client and the logger. All steps encode alike, with this repository's encoder: what
// differs is who writes when. cpu-ns/op is processor time of the process with all that is left to
// do behind the calls, the server's part (it reads and discards) included.
func BenchmarkSteps(b *testing.B) {
	for _, what := range []struct {
		name string
		make func(i int) any
	}{
		{"struct", func(i int) any { return order.New(i) }},
		{"map", func(int) any { return order.NewMap() }},
	} {
		for step := range steps {
			b.Run(what.name+"/"+stepNames[step], func(b *testing.B) {
				d, err := daemon.Start(daemon.Options{})
				if err != nil {
					b.Fatal(err)
				}
				defer d.Close()
				c, err := newStepClient(step, d.Addr())
				if err != nil {
					b.Fatal(err)
				}
				benchPosts(b, c, what.make)
				for deadline := time.Now().Add(time.Minute); d.Bytes() < c.sent; <-time.After(time.Millisecond) {
					if time.Now().After(deadline) {
						b.Fatalf("%d bytes of %d arrived", d.Bytes(), c.sent)
					}
				}
			})
		}
		for _, kind := range clients.Kinds {
			b.Run(what.name+"/"+kind.Name, func(b *testing.B) {
				c, err := kind.Open(newDaemon(b))
				if err != nil {
					b.Fatal(err)
				}
				benchPosts(b, c, what.make)
			})
		}
	}
}

func benchPosts(b *testing.B, c interface {
	Post(tag string, v any) error
	Close() error
}, value func(i int) any,
) {
	b.ReportAllocs()
	before := cpuTime()
	i, refused := 0, 0
	for b.Loop() {
		if err := c.Post("debug.test", value(i)); err != nil {
			refused++
		}
		i++
	}
	if err := c.Close(); err != nil {
		b.Error(err)
	}
	b.ReportMetric(float64(cpuTime()-before)/float64(i), "cpu-ns/op")
	if refused > 0 {
		b.ReportMetric(float64(refused)/float64(i), "refused/op")
	}
}

// cpuTime is what this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestSteps: whatever the step, all that was posted arrives, in order.
func TestSteps(t *testing.T) {
	for step := range steps {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		c, err := newStepClient(step, l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		const count = 2000
		got := make(chan int)
		go func() {
			defer close(got)
			n := 0
			var rest []byte
			buf := make([]byte, 64<<10)
			for {
				k, err := conn.Read(buf)
				rest = append(rest, buf[:k]...)
				for {
					size, bad := msgpack.Skip(rest)
					if bad != nil {
						break
					}
					if rest[size-1] == byte(n%100) {
						n++
					}
					rest = rest[size:]
				}
				if err != nil {
					break
				}
			}
			got <- n
		}()
		for i := range count {
			if err := c.Post("t", map[string]any{"i": i % 100}); err != nil {
				t.Error(err)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if n := <-got; n != count {
			t.Errorf("%s: %d of %d", stepNames[step], n, count)
		}
		conn.Close()
		l.Close()
	}
}
