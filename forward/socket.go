// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// socket is the connection under a connection of TLS. Package tls keeps what came of a record when
// a read says that there is no more yet; so reads need not wait: while now is set, inside the
// poller's callback, they return errAgain instead. A connection that waits for its peer then holds
// no buffer of ours, with TLS or without.
//
// It also sees to the size of what package tls keeps, which is for ever: as much as the largest
// record takes if no read goes on into the next one, twice as much otherwise. So package tls is
// given one record at a time, out of what was read ahead. No more is read ahead than there is room
// for what it holds, so that a connection that has to wait for room has next to nothing here.
type socket struct {
	net.Conn
	clock func() int64
	fd    uintptr
	now   bool
	room  int                                      // for what is read now, when it is decrypted
	bytes int64                                    // read before now was first set
	login func(r io.Reader, p []byte) (int, error) // reads before the first message; nil: no more
	quota int64                                    // how many those may be; 0: any number
	came  int64                                    // all that was read

	head [recordHead]byte // of the record that comes
	have int              // of which so much came
	left int              // of the record that is being read

	ahead *[aheadSize]byte // nil: nothing was read ahead
	r, w  int

	// How long the peer may take for what is written; 0: the handshake is not over, and has a limit
	// of its own.
	limit   time.Duration
	expires int64       // write deadline, by the clock
	late    atomic.Bool // it took longer: nothing more is written, and the reader ends
}

const (
	recordHead = 5 // type, version, length
	aheadSize  = 64 << 10
	// Of a TLS handshake; with a chain of certificates it is a third of that. Package tls alone
	// would keep 256 KiB of an unknown peer.
	maxHandshake = 32 << 10
)

var errQuota = errors.New("longer than any handshake of TLS")

var aheads = sync.Pool{New: func() any { return new([aheadSize]byte) }}

// Read is called by package tls, in the connection's goroutine.
func (s *socket) Read(p []byte) (n int, err error) {
	if !s.now {
		if s.quota > 0 && s.bytes >= s.quota {
			return 0, errQuota
		}
		p = p[:min(len(p), s.next(nil))]
		if s.login != nil {
			n, err = s.login(s.Conn, p)
		} else {
			n, err = s.Conn.Read(p)
		}
		s.bytes += int64(n)
		s.came += int64(n)
	} else {
		if s.r == s.w {
			if err := s.fill(); err != nil {
				return 0, err
			}
		}
		b := s.ahead[s.r:s.w]
		n = copy(p, b[:min(len(b), s.next(b))])
		s.r += n
	}
	s.pass(p[:n])
	return n, err
}

// Write is called by package tls, by one goroutine at a time: for acks, and for what it answers by
// itself in the middle of a read, to a peer that wants fresh keys. Of a record that did not leave
// as a whole nothing can be made good, so the reader is told to end. It cannot be closed here: that
// would wait for the end of the read that this may be in.
func (s *socket) Write(p []byte) (int, error) {
	if s.limit == 0 {
		return s.Conn.Write(p)
	}
	if s.late.Load() {
		return 0, os.ErrDeadlineExceeded
	}
	if err := postpone(s.Conn, s.clock(), &s.expires, s.limit); err != nil {
		return 0, err
	}
	n, err := s.Conn.Write(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.late.Store(true)
		_ = s.SetReadDeadline(time.Unix(1, 0)) // one that is closed already ends too
	}
	return n, err
}

// next is how many bytes there are to the end of the record, as far as is known, if b comes next.
func (s *socket) next(b []byte) int {
	switch {
	case s.left > 0:
		return s.left
	case s.have == 0 && len(b) >= recordHead:
		return recordHead + recordLength(b)
	}
	return recordHead - s.have
}

func recordLength(head []byte) int { return int(head[3])<<8 | int(head[4]) }

// pass notes what package tls got: nothing that goes on into a second record.
func (s *socket) pass(b []byte) {
	if s.left == 0 {
		k := copy(s.head[s.have:], b)
		b = b[k:]
		if s.have += k; s.have < recordHead {
			return
		}
		s.have, s.left = 0, recordLength(s.head[:])
	}
	s.left -= len(b)
}

// fill reads ahead. If nothing has come, it says so and holds nothing.
func (s *socket) fill() error {
	if s.ahead == nil {
		s.ahead = aheads.Get().(*[aheadSize]byte)
	}
	n, err := readFD(s.fd, s.ahead[:min(s.readSize(), aheadSize)])
	s.r, s.w = 0, n
	s.came += int64(n)
	if err != nil {
		s.drop()
	}
	return err
}

// readSize is how much to read: the record that is being read to its end, and then as many bytes as
// there will be room left. What is encrypted is the longer one.
func (s *socket) readSize() int {
	if s.left > 0 {
		return s.left + max(0, s.room-recordLength(s.head[:]))
	}
	return max(recordHead, s.room) - s.have
}

// drop gives back what nothing is left in.
func (s *socket) drop() {
	if s.ahead != nil && s.r == s.w {
		aheads.Put(s.ahead)
		s.ahead = nil
	}
}
