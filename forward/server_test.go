// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/forward/internal/budget"
)

// pipes is a listener in memory, for tests in a bubble.
type pipes struct {
	in   chan net.Conn
	done chan struct{}
	once sync.Once
}

func newPipes() *pipes { return &pipes{in: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.in:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) dial() net.Conn {
	near, far := net.Pipe()
	p.in <- far
	return near
}

// peer reads what a server writes, until it closes.
type peer struct {
	net.Conn
	mu     sync.Mutex
	got    []byte
	writes int
	done   chan struct{}
}

func (p *pipes) peer() *peer { return reading(p.dial()) }

func reading(nc net.Conn) *peer {
	q := &peer{Conn: nc, done: make(chan struct{})}
	go func() {
		defer close(q.done)
		buf := make([]byte, 1<<16)
		for {
			n, err := q.Read(buf)
			q.mu.Lock()
			q.got = append(q.got, buf[:n]...)
			if n > 0 {
				q.writes++
			}
			q.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return q
}

func (q *peer) received() ([]byte, int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.got), q.writes
}

// closed tells whether the server has closed.
func (q *peer) closed() bool {
	select {
	case <-q.done:
		return true
	default:
		return false
	}
}

// bubble runs a test with a server in a bubble, where time is not real and every goroutine has to
// end.
func bubble(t *testing.T, s *Server, test func(t *testing.T, p *pipes, peerErrors func() string)) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []string
		also := s.PeerError
		s.PeerError = func(tr PeerError) {
			mu.Lock()
			defer mu.Unlock()
			if also != nil {
				also(tr)
			}
			told = append(told, fmt.Sprintf("%v: %v", tr.Kind, tr.Action))
		}
		p := newPipes()
		served := make(chan error)
		go func() { served <- s.Serve(p) }()
		test(t, p, func() string {
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(told)
			return strings.Join(told, "; ")
		})
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, ErrServerClosed) {
			t.Error(err)
		}
		if st := s.Stats(); st.Memory != 0 || st.Connections != 0 {
			t.Errorf("left behind: %+v", st)
		}
	})
}

func write(t *testing.T, c net.Conn, b []byte) {
	t.Helper()
	if n, err := c.Write(b); err != nil {
		t.Fatalf("%d of %d bytes written: %v", n, len(b), err)
	}
}

// withID is a message of one event with an id of one letter, 20 bytes, and ackOf its ack.
func withID(id byte) []byte {
	return unhex(fmt.Sprintf("94 a1 74 05 81 a1 6d a1 62 81 a5 6368756e6b a1 %02x", id))
}

func ackOf(ids string) []byte {
	var b []byte
	for _, id := range []byte(ids) {
		b = append(b, unhex(fmt.Sprintf("81 a3 61636b a1 %02x", id))...)
	}
	return b
}

// gate is a handler whose groups are stored when the test says so.
type gate struct {
	mu            sync.Mutex
	taken, stored int64         // groups
	change        chan struct{} // closed and made anew when more is stored; made in the bubble
	err           error
}

func (g *gate) ServeForward(context.Context, *Chunk) error { panic("a group handler gets groups") }

func (g *gate) ServeGroup(context.Context, []*Chunk) (func(context.Context) error, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.taken++
	n := g.taken
	return func(ctx context.Context) error {
		for {
			g.mu.Lock()
			stored, change := g.stored, g.change
			g.mu.Unlock()
			if stored >= n {
				return g.err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-change:
			}
		}
	}, nil
}

func (g *gate) store(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stored += n
	close(g.change)
	g.change = make(chan struct{})
}

func (g *gate) groups() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.taken
}

func TestRule26AcksTogether(t *testing.T) {
	g := new(gate)
	bubble(t, &Server{Handler: g}, func(t *testing.T, p *pipes, _ func() string) {
		g.change = make(chan struct{})
		c := p.peer()
		for i := range byte(10) { // each in a read of its own
			write(t, c, withID('a'+i))
			synctest.Wait()
		}
		if got, _ := c.received(); len(got) > 0 || g.groups() != 10 {
			t.Fatalf("%x, %d groups", got, g.groups())
		}
		g.store(1)
		synctest.Wait()
		if got, n := c.received(); !bytes.Equal(got, ackOf("a")) || n != 1 {
			t.Fatalf("%x in %d writes", got, n)
		}
		g.store(8) // one commit stores them all
		synctest.Wait()
		if got, n := c.received(); !bytes.Equal(got, ackOf("abcdefghi")) || n > 3 {
			t.Fatalf("%x in %d writes", got, n)
		}
		g.store(1)
		synctest.Wait()
		write(t, c, slices.Concat(withID('x'), withID('y'), withID('z')))
		synctest.Wait()
		_, before := c.received()
		g.store(1)
		synctest.Wait()
		if got, n := c.received(); !bytes.Equal(got, ackOf("abcdefghijxyz")) || n != before+1 {
			t.Fatalf("%x in %d writes", got, n-before)
		}
		_ = c.Close()
	})
}

func TestRule27WaitFails(t *testing.T) {
	g := new(gate)
	bubble(t, &Server{Handler: g}, func(t *testing.T, p *pipes, peerErrors func() string) {
		g.change = make(chan struct{})
		c := p.peer()
		write(t, c, withID('a'))
		synctest.Wait()
		write(t, c, withID('b'))
		synctest.Wait()
		g.err = errors.New("disk gone")
		g.store(2)
		synctest.Wait()
		if got, _ := c.received(); len(got) > 0 || !c.closed() || peerErrors() != "unstored: connection closed" {
			t.Errorf("%x, closed %v, %s", got, c.closed(), peerErrors())
		}
	})
}

func TestHandlerErrorCloses(t *testing.T) {
	bubble(t, &Server{Handler: HandlerFunc(func(_ context.Context, c *Chunk) error {
		if string(c.ID) == "b" {
			return errors.New("no")
		}
		return nil
	})}, func(t *testing.T, p *pipes, peerErrors func() string) {
		c := p.peer()
		write(t, c, slices.Concat(withID('a'), withID('b'), withID('c')))
		synctest.Wait()
		if got, _ := c.received(); !bytes.Equal(got, ackOf("a")) || !c.closed() ||
			peerErrors() != "unstored: connection closed" {
			t.Errorf("%x, closed %v, %s", got, c.closed(), peerErrors())
		}
	})
}

func TestSlowReader(t *testing.T) {
	for _, h := range []Handler{nothing{}, HandlerFunc(nothing{}.ServeForward)} {
		bubble(t, &Server{Handler: h}, func(t *testing.T, p *pipes, peerErrors func() string) {
			c := p.dial() // nobody reads
			other := p.peer()
			start := time.Now()
			for {
				if _, err := c.Write(withID('a')); err != nil {
					break
				}
			}
			if d := time.Since(start); d < DefaultWriteTimeout/2 || d > DefaultWriteTimeout+time.Second ||
				peerErrors() != "slow reader: connection closed" {
				t.Errorf("after %v: %s", d, peerErrors())
			}
			write(t, other, withID('b'))
			synctest.Wait()
			if got, _ := other.received(); !bytes.Equal(got, ackOf("b")) {
				t.Errorf("the other one got %x", got)
			}
			_ = other.Close()
		})
	}
}

func TestSlowReaderInFlight(t *testing.T) {
	g := new(gate)
	bubble(t, &Server{Handler: g}, func(t *testing.T, p *pipes, _ func() string) {
		g.change = make(chan struct{})
		c := p.dial()
		n := 0
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		for {
			if _, err := c.Write(withID('a')); err != nil {
				break
			}
			n++
		}
		if n < maxAckGroups/2 || n > 2*maxAckGroups {
			t.Errorf("%d messages were read with nothing stored", n)
		}
		_ = c.Close()
	})
}

func TestRule46Shutdown(t *testing.T) {
	g := new(gate)
	s := &Server{Handler: g}
	bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
		g.change = make(chan struct{})
		idle, busy, partial := p.peer(), p.peer(), p.peer()
		write(t, busy, slices.Concat(withID('a'), withID('b')))
		write(t, partial, slices.Concat(withID('c'), withID('d')[:10]))
		synctest.Wait()
		done := make(chan error)
		go func() { done <- s.Shutdown(t.Context()) }()
		synctest.Wait()
		if !idle.closed() || busy.closed() || partial.closed() {
			t.Fatalf("closed: %v %v %v", idle.closed(), busy.closed(), partial.closed())
		}
		g.store(2)
		if err := <-done; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		got, _ := busy.received()
		half, _ := partial.received()
		if !bytes.Equal(got, ackOf("ab")) || !bytes.Equal(half, ackOf("c")) || !busy.closed() || !partial.closed() ||
			peerErrors() != "" {
			t.Errorf("%x %x %s", got, half, peerErrors())
		}
	})
}

func TestRule46ShutdownRunsOut(t *testing.T) {
	g := new(gate)
	s := &Server{Handler: g}
	bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
		g.change = make(chan struct{})
		c := p.peer()
		write(t, c, withID('a'))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		synctest.Wait()
		if got, _ := c.received(); len(got) > 0 || !c.closed() || peerErrors() != "" {
			t.Errorf("%x %s", got, peerErrors())
		}
	})
}

// A chunk that was received is stored even when its sender has gone; only Close and the end of
// Shutdown's patience end a handler's ctx.
func TestHandlerOutlivesConnection(t *testing.T) {
	var release chan struct{}
	var result chan error
	bubble(t, &Server{Handler: HandlerFunc(func(ctx context.Context, _ *Chunk) error {
		select {
		case <-release:
		case <-ctx.Done():
		}
		result <- ctx.Err()
		return ctx.Err()
	})}, func(t *testing.T, p *pipes, _ func() string) {
		release, result = make(chan struct{}), make(chan error, 1)
		c := p.peer()
		write(t, c, withID('a'))
		_ = c.Close()
		synctest.Wait()
		close(release)
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
}

// messageOf is a packed message of about n bytes.
func messageOf(n int, id string) []byte {
	one := unhex(hexEntry1)
	c := Chunk{Tag: "t", Entries: bytes.Repeat(one, n/len(one)), Events: n / len(one), ID: []byte(id)}
	return wireOf(&c, "")
}

// Connections that together need far more memory than there is all get through, one by one if need
// be.
func TestMemoryNoDeadlock(t *testing.T) {
	s := &Server{Handler: nothing{}, Memory: 300 << 10}
	bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
		msg := messageOf(400<<10, "x")
		var peers []*peer
		var wg sync.WaitGroup
		for range 20 {
			q := p.peer()
			peers = append(peers, q)
			wg.Go(func() {
				for at := 0; at < len(msg); at += 10000 {
					if _, err := q.Write(msg[at:min(at+10000, len(msg))]); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		for i, q := range peers {
			if got, _ := q.received(); !bytes.Equal(got, ackOf("x")) {
				t.Errorf("%d: %x, %s", i, got, peerErrors())
			}
			_ = q.Close()
		}
	})
}

// A message that has to wait for memory, so that what came before it is handed on first, keeps its
// option.
func TestMemoryKeepsOption(t *testing.T) {
	for _, how := range []string{"gzip", ""} {
		var got []string
		s := &Server{Memory: 256 << 10, Handler: HandlerFunc(func(_ context.Context, c *Chunk) error {
			got = append(got, fmt.Sprintf("%s %s %d", c.ID, c.Compression, c.Events))
			return nil
		})}
		s.Endpoint.AddressKey = map[string]string{"": "ip"}[how] // rewriting wants memory too
		bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
			q := p.peer()
			n := map[string]int{"gzip": 40000, "": 500}[how]
			big := wireOf(&Chunk{Tag: "t", ID: []byte("B"), Entries: bytes.Repeat(entries(1), n), Events: n}, how)
			// Longer than the bytes that are read before there is a buffer.
			small := wireOf(&Chunk{Tag: "t", ID: []byte("a"), Entries: entries(1), Events: 1}, "")
			write(t, q, slices.Concat(small, small, small, big))
			synctest.Wait()
			want := ackOf("aaaB")
			if acks, _ := q.received(); !bytes.Equal(acks, want) ||
				fmt.Sprint(got) != fmt.Sprintf("[a  1 a  1 a  1 B %s %d]", how, n) || peerErrors() != "" {
				t.Errorf("acks %x, chunks %q, %s", acks, got, peerErrors())
			}
			_ = q.Close()
		})
	}
}

// A sender of one byte a second disturbs nobody, and is cut only if it holds what others wait for.
func TestSlowSender(t *testing.T) {
	s := &Server{Handler: nothing{}, Memory: 300 << 10}
	bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
		big := messageOf(200<<10, "x")
		slow := p.peer()
		write(t, slow, big[:len(big)-200])
		for i := range 120 { // two minutes
			write(t, slow, big[len(big)-200+i:][:1])
			<-time.After(time.Second)
		}
		if peerErrors() != "" || slow.closed() {
			t.Fatalf("without pressure: %s", peerErrors())
		}
		fast := p.peer()
		write(t, fast, big) // needs more than there is: overdraws
		synctest.Wait()
		if got, _ := fast.received(); !bytes.Equal(got, ackOf("x")) || slow.closed() {
			t.Fatalf("%x, %s", got, peerErrors())
		}
		// Now one that overdraws and stops, and one that waits for it.
		stuck := p.peer()
		write(t, stuck, big[:len(big)-1])
		written := make(chan error)
		go func() {
			_, err := fast.Write(big)
			written <- err
		}()
		if err := <-written; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got, _ := fast.received(); !bytes.Equal(got, ackOf("xx")) || !stuck.closed() {
			t.Errorf("%x, stuck closed %v, %s", got, stuck.closed(), peerErrors())
		}
		if !strings.Contains(peerErrors(), "slow sender: connection closed") {
			t.Errorf("%s", peerErrors())
		}
		_, _, _ = slow.Close(), fast.Close(), stuck.Close()
	})
}

func TestCloseIsAbrupt(t *testing.T) {
	g := new(gate)
	s := &Server{Handler: g, Memory: 100 << 10}
	bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
		g.change = make(chan struct{})
		var peers []*peer
		for range 5 { // one of them overdraws, the others wait
			q := p.peer()
			peers = append(peers, q)
			go func() { _, _ = q.Write(messageOf(100<<10, "x")) }()
		}
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		for _, q := range peers {
			if !q.closed() {
				t.Error("still open")
			}
		}
		if err := s.Serve(newPipes()); !errors.Is(err, ErrServerClosed) {
			t.Error(err)
		}
	})
}

// sockets serves on TCP and on a unix socket, and checks that nothing is left.
func sockets(t *testing.T, s *Server, test func(t *testing.T, dial func() net.Conn)) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			s := &Server{Handler: s.Handler, Memory: s.Memory, PeerError: s.PeerError}
			before := runtime.NumGoroutine()
			address := "127.0.0.1:0"
			if network == "unix" {
				address = filepath.Join(t.TempDir(), "s")
			}
			l, err := net.Listen(network, address)
			if err != nil {
				t.Fatal(err)
			}
			served := make(chan error)
			go func() { served <- s.Serve(l) }()
			test(t, func() net.Conn {
				c, err := net.Dial(network, l.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				_ = c.SetDeadline(time.Now().Add(4 * time.Minute))
				return c
			})
			if err := s.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			if err := <-served; !errors.Is(err, ErrServerClosed) {
				t.Error(err)
			}
			if st := s.Stats(); st.Memory != 0 || st.Connections != 0 {
				t.Errorf("left behind: %+v", st)
			}
			until(t, func() bool { return runtime.NumGoroutine() <= before })
		})
	}
}

// until polls.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(4 * time.Minute); !ok(); <-tick.C {
		if time.Now().After(limit) {
			buf := make([]byte, 1<<16)
			t.Fatalf("it never came\n%s", buf[:runtime.Stack(buf, true)])
		}
	}
}

func readAll(t *testing.T, c net.Conn, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	if k, err := io.ReadFull(c, b); err != nil {
		t.Fatalf("%x: %v", b[:k], err)
	}
	return b
}

func TestSockets(t *testing.T) {
	sockets(t, &Server{Handler: HandlerFunc(nothing{}.ServeForward)}, func(t *testing.T, dial func() net.Conn) {
		c := dial()
		defer c.Close()
		in := unhex(hexForward + hexPacked)
		for range 3 {
			for _, b := range bytewise(in) {
				write(t, c, b)
			}
			if got := readAll(t, c, 60); !bytes.Equal(got, unhex(hexAck+hexAck)) {
				t.Fatalf("%x", got)
			}
			write(t, c, slices.Concat(in, messageOf(1<<20, "x"), in[:20]))
			if got := readAll(t, c, 67); !bytes.Equal(got, slices.Concat(unhex(hexAck+hexAck), ackOf("x"))) {
				t.Fatalf("%x", got)
			}
			write(t, c, in[20:])
			readAll(t, c, 60)
		}
		d := dial() // ends within a message, half closed: what was whole is acked
		defer d.Close()
		write(t, d, in[:len(in)-1])
		if err := d.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(d); err != nil || !bytes.Equal(got, unhex(hexAck)) {
			t.Errorf("%x %v", got, err)
		}
	})
}

// The acks of what came before garbage arrive, although the server closes with bytes unread.
func TestSocketsGarbageAfterGood(t *testing.T) {
	sockets(t, &Server{Handler: nothing{}}, func(t *testing.T, dial func() net.Conn) {
		for range 20 {
			c := dial()
			write(t, c, slices.Concat(unhex(hexPacked), bytes.Repeat([]byte{0xc1}, 300<<10)))
			if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, unhex(hexAck)) {
				t.Errorf("%x %v", got, err)
			}
			_ = c.Close()
		}
	})
}

func TestParking(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Handler: nothing{}}
	served := make(chan error)
	go func() { served <- s.Serve(l) }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	big := messageOf(500<<10, "x")
	for _, step := range []struct {
		send []byte
		hold int64
	}{{nil, 0}, {unhex(hexPacked), 0}, {big[:100], budget.Parked}, {big[100:1000], budget.Parked}, {
		big[1000:10000],
		budget.Base,
	}, {big[10000:], 0}, {big[:1], budget.Parked}} {
		want := s.Stats().Bytes + uint64(len(step.send))
		write(t, c, step.send)
		if runtime.GOOS != "windows" {
			until(t, func() bool { st := s.Stats(); return st.Bytes == want && st.Memory == step.hold })
		}
	}
	_ = c.Close()
	until(t, func() bool { return s.Stats().Connections == 0 })
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-served
}

// TestUnixPeer checks the name of a peer without an address.
func TestPeerNames(t *testing.T) {
	for want, a := range map[string]net.Addr{
		"192.0.2.1":   &net.TCPAddr{IP: net.ParseIP("192.0.2.1"), Port: 7},
		"2001:db8::1": &net.TCPAddr{IP: net.ParseIP("2001:db8::1"), Port: 7},
		"unix":        &net.UnixAddr{Name: "", Net: "unix"},
		"unknown":     nil,
	} {
		if got := peerOf(a); got != want {
			t.Errorf("%v: %q, want %q", a, got, want)
		}
	}
	if got := peerOf(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1).To16(), Port: 7}); got != "192.0.2.1" {
		t.Error(got)
	}
}

// The time of arrival is the real one.
func TestRule11RealClock(t *testing.T) {
	start := time.Now().Unix()
	got := make(chan int64, 1)
	sockets(t, &Server{Handler: HandlerFunc(func(_ context.Context, c *Chunk) error {
		r := ReadEntries(c.Entries)
		e, _ := r.Next()
		got <- e.Sec
		return nil
	})}, func(t *testing.T, dial func() net.Conn) {
		c := dial()
		defer c.Close()
		write(t, c, unhex("93 a1 74 00 80"))
		if sec := <-got; sec < start {
			t.Errorf("%d is before %d", sec, start)
		}
	})
}

// TestWaitInMessage has messages wait for memory behind others that are complete: those are handed
// on, and what the waiting one said of itself is not lost with them.
func TestWaitInMessage(t *testing.T) {
	packed := bytes.Repeat(entries(1), 40_000)
	timeless := bytes.Repeat(unhex("92 00 81 a1 6d a1 62"), 20_000)
	for _, tt := range []struct {
		compress string
		entries  []byte
		events   int
	}{{"gzip", packed, 40_000}, {"zstd", packed, 40_000}, {"gzip", timeless, 20_000}, {"", timeless[:7*8_000], 8_000}} {
		var took []string
		s := &Server{Memory: 256 << 10, Handler: HandlerFunc(func(_ context.Context, c *Chunk) error {
			took = append(took, fmt.Sprintf("%s %d %q", c.ID, c.Events, c.Compression))
			return nil
		})}
		bubble(t, s, func(t *testing.T, p *pipes, _ func() string) {
			q := p.peer()
			// The heartbeats fill what a connection reads before it has a buffer: what follows
			// comes in one read.
			write(t, q, slices.Concat(bytes.Repeat([]byte{0xc0}, 60), withID('a'), withID('b'),
				wireOf(&Chunk{Tag: "t", ID: []byte("c"), Entries: tt.entries, Events: tt.events},
					tt.compress), withID('d')))
			synctest.Wait()
			how := tt.compress
			if tt.entries[1] == 0 {
				how = ""
			}
			if want := []string{
				`a 1 ""`, `b 1 ""`, fmt.Sprintf("c %d %q", tt.events, how),
				`d 1 ""`,
			}; !slices.Equal(took, want) {
				t.Errorf("took %q, not %q", took, want)
			}
			if got, _ := q.received(); !bytes.Equal(got, ackOf("abcd")) {
				t.Errorf("acks %q", got)
			}
			_ = q.Close()
			synctest.Wait()
		})
	}
}
