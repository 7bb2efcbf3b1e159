// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"net"
	"time"
)

// dialed is what came of an attempt to connect.
type dialed struct {
	nc   net.Conn // what is written to
	sock net.Conn // under TLS; else nc
	once bool     // good for one chunk
	err  error
}

// link is one connection of a Client, and the goroutine that reads its acks.
type link struct {
	nc   net.Conn
	sock net.Conn // under TLS; else nc
	once bool     // good for one chunk
	done chan struct{}

	// With the client's mu held:
	err      error     // why it cannot be used any more
	progress time.Time // of the last ack, or when the first chunk after nothing in flight was written
	writing  bool      // a write has begun that nobody interrupted
	acked    bool      // at least one ack came
}

var (
	errLate    = errors.New("an ack that nobody waits for any more")
	errIdleEnd = errors.New("the server closed the connection")
)

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

// interruptLocked makes a write end at once.
func (l *link) interruptLocked() {
	l.writing = false
	if l.sock.SetWriteDeadline(time.Unix(1, 0)) != nil { // there are connections without deadlines
		_ = l.sock.Close()
	}
}

// armLocked begins a write, or goes on with one: the server may take as long as for an ack. No
// interrupt is undone, for that comes with the lock held too.
func (l *link) armLocked(limit time.Duration) {
	l.writing = true
	_ = l.nc.SetWriteDeadline(time.Now().Add(limit)) // if not, the write says why
}

// disarmLocked ends it. Package tls writes too, by itself, long after: to a server that wants fresh
// keys.
func (l *link) disarmLocked() {
	l.writing = false
	if l.sock != l.nc {
		_ = l.nc.SetWriteDeadline(time.Time{}) // if not, that write says why
	}
}
