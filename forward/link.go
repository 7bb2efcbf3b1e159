// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

// link is one connection of a Client, and the goroutine that reads its acks.
type link struct {
	c    *Client
	nc   net.Conn
	sock net.Conn // under TLS; else nc
	once bool     // good for one chunk
	done chan struct{}

	// With c.mu held:
	err      error     // why it cannot be used any more
	progress time.Time // of the last ack, or when the first chunk after nothing in flight was written
	writing  bool      // a write has begun that nobody interrupted
	acked    bool      // at least one ack came
}

var (
	errLate    = errors.New("an ack that nobody waits for any more")
	errIdleEnd = errors.New("the server closed the connection")
	errNack    = errors.New("the server answered without an ack")
	errHelo    = errors.New("the server wants a shared key, and there is no Login")
)

func newLink(c *Client, d dialed) *link {
	l := &link{c: c, nc: d.nc, sock: d.sock, once: d.once, done: make(chan struct{})}
	go l.read()
	return l
}

// close closes the connection, and returns when the reading goroutine has ended.
func (l *link) close() {
	if l.sock != l.nc { // TLS says goodbye, which a server that reads nothing does not hold up for long
		defer time.AfterFunc(linger, func() { _ = l.sock.Close() }).Stop()
	}
	_ = l.nc.Close() // it is not needed any more
	<-l.done
}

// finish says that nothing more will be written, and reads what the server still sends, until it
// closes too, for as long as a closing connection waits for its peer. Most often the reading
// goroutine has ended already.
func (l *link) finish(stop <-chan struct{}) {
	if cw, ok := l.sock.(interface{ CloseWrite() error }); ok {
		_ = cw.CloseWrite() // it may be broken already
	}
	timer := time.NewTimer(linger)
	defer timer.Stop()
	select {
	case <-l.done:
	case <-timer.C:
	case <-stop:
	}
}

// interrupt makes a write end at once. With c.mu held.
func (l *link) interrupt() {
	l.writing = false
	if l.sock.SetWriteDeadline(time.Unix(1, 0)) != nil { // there are connections without deadlines
		_ = l.sock.Close()
	}
}

// arm begins a write, or goes on with one: the server may take as long as for an ack. With c.mu
// held, so that nobody's interrupt is undone.
func (l *link) arm(limit time.Duration) {
	l.writing = true
	_ = l.nc.SetWriteDeadline(time.Now().Add(limit)) // if not, the write says why
}

// disarm ends it. Package tls writes too, by itself, long after: to a server that wants fresh keys.
// With c.mu held.
func (l *link) disarm() {
	l.writing = false
	if l.sock != l.nc {
		_ = l.nc.SetWriteDeadline(time.Time{}) // if not, that write says why
	}
}

// ackMost is the largest ack that is read.
const ackMost = MaxID + 256

// read reads acks until the connection ends: they may be split over reads, and several may come in
// one (docs/forward.md rule 29).
func (l *link) read() {
	defer close(l.done)
	err := readAcks(l.nc, func(id []byte) error { return l.c.take(l, id) })
	if errors.Is(err, io.EOF) {
		err = errIdleEnd
	}
	l.c.mu.Lock()
	if l.err == nil {
		l.err = err
	}
	l.c.mu.Unlock()
	l.c.poke()
}

// readAcks calls take for every ack that r has. Its error is that of r or of take, or says that
// something is no ack.
func readAcks(r io.Reader, take func(id []byte) error) error {
	buf := make([]byte, 512)
	var scan msgpack.Scanner
	limits := msgpack.Limits{Depth: 8, Length: ackMost, Count: ackMost}
	scan.Reset(limits)
	start, seen, end := 0, 0, 0
	for {
		if end == len(buf) {
			if start > 0 {
				end = copy(buf, buf[start:end])
				seen, start = seen-start, 0
			} else if len(buf) >= 2*ackMost {
				return fmt.Errorf("an ack of more than %d bytes", ackMost)
			} else {
				buf = append(buf, make([]byte, len(buf))...)
			}
		}
		n, err := r.Read(buf[end:])
		end += n
		for seen < end {
			k, done, err := scan.Scan(buf[seen:end])
			seen += k
			if err != nil {
				return fmt.Errorf("no ack: %w", err)
			}
			if !done {
				break
			}
			id, err := parseAck(buf[start:seen])
			if err != nil {
				return err
			}
			if err := take(id); err != nil {
				return err
			}
			start = seen
			scan.Reset(limits)
		}
		if start == end {
			start, seen, end = 0, 0, 0
		}
		if err != nil {
			return err
		}
	}
}

// parseAck returns the id that a complete value acks.
func parseAck(b []byte) ([]byte, error) {
	t, at, err := msgpack.ReadToken(b)
	if err != nil || t.Kind != msgpack.Map {
		if _, _, err := opens(b, "HELO"); err == nil {
			return nil, errHelo
		}
		return nil, fmt.Errorf("%w: no map", errNack)
	}
	for range t.Len {
		key, _, _, err := msgpack.ReadBytes(b[at:])
		if err != nil {
			key = nil
		}
		n, err := msgpack.Skip(b[at:])
		if err != nil {
			return nil, err
		}
		at += n
		if string(key) == "ack" {
			if id, _, _, err := msgpack.ReadBytes(b[at:]); err == nil {
				return id, nil
			}
			return nil, fmt.Errorf("%w: not a string", errNack)
		}
		if n, err = msgpack.Skip(b[at:]); err != nil {
			return nil, err
		}
		at += n
	}
	return nil, fmt.Errorf("%w: a map without it", errNack)
}
