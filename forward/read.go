// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"io"

	"github.com/spillwaylog/spillway/forward/internal/budget"
	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// How this file is organised. A connection holds a buffer only while it has bytes of a message in
// it. fill waits for bytes, and takes a buffer when they are there: on sockets by reading in the
// poller's callback (read_unix.go), elsewhere by reading into a few bytes of its own first. The
// buffer grows when it is full of one message, at most to two and a half times its size, and never
// because of what a message claims. A connection that has sent the beginning of a message and then
// nothing is parked: it keeps only a small buffer.

const (
	readSize    = 64 << 10 // of one read, where it is not known how much will come
	keptBuffer  = 1 << 20  // what a group may gather besides its buffer before it is handed on
	startBuffer = 16 << 20 // up to this size a connection begins with the size that its last messages needed
)

// reader is what a connection's goroutine alone reads with.
type reader struct {
	*remote
	before waiter

	dec     wire.Decoder
	buf     *budget.Buffer // nil while idle
	r, w    int            // the message in progress begins at r, what has arrived ends at w
	largest int            // message since the buffer was taken
	start   int            // size of the next buffer
	json    bool           // it speaks JSON: a message may be in progress where nothing is in the buffer

	try     func(fd uintptr) bool
	readN   int // what try found
	readErr error
	hungry  bool
	tiny    [64]byte // for bytes that have no buffer yet
	tinyN   int
}

// A waiter is what is done before a reader waits. The connection is one; a reader alone has none.
type waiter interface {
	memory(n int64) error // takes n bytes of the budget; what is complete need not wait for them
	putGroup()            // gives back what decoding takes, before the peer is waited for
}

// fill waits until there are more bytes behind c.w.
func (c *reader) fill() error {
	if c.r == c.w && !c.json {
		c.pace.Between()
	} else {
		c.pace.Within(c.came(), c.hold.Own())
	}
	c.pace.Wait()
	defer c.pace.Go()
	for {
		if c.cut.Load() || c.s.down.Load() {
			return errGone
		}
		n, err := c.read()
		if n > 0 {
			c.pace.Read(n)
			c.count.bytes.Add(uint64(n))
			if c.hungry {
				c.pace.Go()
				err := c.feed()
				c.pace.Wait()
				return err
			}
			c.w += n
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// came is how much has come, of a record of TLS that is not complete too.
func (c *reader) came() int64 {
	if c.under != nil {
		return c.under.came
	}
	return c.pace.Bytes()
}

// read reads once: behind c.w, or, if c.hungry, into c.tiny.
func (c *reader) read() (int, error) {
	if c.raw != nil {
		c.readN, c.readErr = 0, nil
		if err := c.raw.Read(c.try); err != nil {
			return 0, err
		}
		return c.readN, c.readErr
	}
	// Through an interface there is no waiting without a buffer: the first bytes of what comes go
	// to c.tiny, then there is one.
	if c.r == c.w {
		c.park()
	}
	if c.hungry = c.buf == nil || !c.room(false); c.hungry {
		n, err := c.nc.Read(c.tiny[:])
		c.tinyN = n
		return n, err
	}
	n, err := c.nc.Read(c.space())
	if n == 0 && err == nil {
		err = io.ErrNoProgress
	}
	return n, err
}

// feed makes room, however long that takes, for the bytes that are in c.tiny.
func (c *reader) feed() error {
	c.hungry = false
	if !c.room(true) {
		return errGone // the server is closing
	}
	c.w += copy(c.buf.B[c.w:], c.tiny[:c.tinyN])
	c.tinyN = 0
	return nil
}

// place puts bytes that were read already into the buffer, however long it takes to get one.
func (c *reader) place(b []byte) error {
	if !c.room(true) {
		return errGone // the server is closing
	}
	c.pace.Placed(len(b))
	c.count.bytes.Add(uint64(len(b)))
	c.w += copy(c.buf.B[c.w:], b)
	return nil
}

// wanted is how many bytes to read.
func (c *reader) wanted() int64 {
	if m := c.dec.Missing(c.w - c.r); m > budget.Parked {
		return m // that and no more: the next message begins at the start of the buffer
	}
	if c.hold.Over() {
		return budget.Parked / 2 // so that it ends soon: what is left over of the next message can be parked
	}
	return readSize
}

// space is where to read to.
func (c *reader) space() []byte {
	return c.buf.B[c.w:min(int64(len(c.buf.B)), int64(c.w)+c.wanted())]
}

// room makes sure that there is space to read to. If wait is false, it does not wait for memory,
// and tells whether there is room.
func (c *reader) room(wait bool) bool {
	if c.buf == nil {
		return c.grow(c.first(), wait)
	}
	size := len(c.buf.B)
	if size == budget.Parked {
		if c.w == 0 && c.s.mem.Scarce() {
			return true
		}
		return c.grow(max(c.first(), budget.Base), wait) || c.w < size
	}
	free, have := size-c.w, c.w-c.r
	want := min(c.wanted(), int64(size))
	if int64(free) < min(want, readSize/4) || free == 0 {
		fits := c.r > 0 && (int64(have)+want <= int64(size) || have <= size/2)
		switch {
		case fits && !c.buf.Shared():
			c.w = copy(c.buf.B, c.buf.B[c.r:c.w])
			c.r = 0
		case fits: // somebody still looks at what was handed on
			return c.grow(max(c.first(), budget.SizeOf(int64(have)+min(want, readSize))), wait) || free > 0
		case free == 0:
			return c.grow(c.larger(size), wait)
		}
	}
	return true
}

// larger is the next size of a buffer that is full of one message: twice as large, or what the
// message needs by all that is known of it, if that is not much more.
func (c *reader) larger(size int) int {
	next := 2 * int64(size)
	if claim := c.dec.Claim(); claim > 0 && claim <= next+next/4 {
		next = max(claim, int64(size+size/8))
	}
	return budget.SizeOf(min(next, max(c.s.maxMessage+readSize, int64(size)+readSize)))
}

// first is the size of a buffer to begin with: what the last messages needed, if memory is plenty.
// If it is scarce, the beginning of a message has to do, to see how large it will be.
func (c *reader) first() int {
	if c.buf == nil && c.s.mem.Scarce() {
		return budget.Parked
	}
	if c.start > budget.Base && c.s.mem.Used()+int64(c.start) > c.s.mem.Limit()/2 {
		return budget.Base
	}
	return c.start
}

// grow takes a buffer of a size and moves what has arrived into it.
func (c *reader) grow(size int, wait bool) bool {
	if size > budget.Base && c.w-c.r > budget.MaxSmall {
		c.hold.SetBig(true)
	}
	if !c.hold.Try(int64(size)) {
		if !wait || c.before.memory(int64(size)) != nil {
			return false
		}
	}
	b := c.hold.Take(size)
	old, r, w := c.buf, c.r, c.w
	c.buf, c.r, c.w = b, 0, 0
	if old != nil {
		c.w = copy(b.B, old.B[r:w])
		c.hold.Drop(old)
	}
	return true
}

// dropBuffer gives the buffer back.
func (c *reader) dropBuffer() {
	if c.buf == nil {
		return
	}
	c.hold.Drop(c.buf)
	c.buf, c.r, c.w = nil, 0, 0
}

// park gives back what a connection that waits does not need.
func (c *reader) park() {
	c.pace.Rest(c.s.clock())
	c.before.putGroup()
	if c.buf == nil {
		return
	}
	c.start = max(budget.Base, budget.SizeOf(min(startBuffer, int64(c.largest)+1)))
	c.largest = 0
	switch have := c.w - c.r; {
	case have == 0:
		c.dropBuffer()
	case have <= budget.Parked/2 && len(c.buf.B) > budget.Parked:
		c.shrink(budget.Parked)
	}
	c.hold.Settle()
}

// shrink moves what has arrived into a smaller buffer. It gives back more than it takes, so it need
// not ask, and is over the limit for no more than that.
func (c *reader) shrink(size int) {
	c.hold.Force(int64(size))
	b := c.hold.Take(size)
	n := copy(b.B, c.buf.B[c.r:c.w])
	c.hold.Drop(c.buf)
	c.buf, c.r, c.w = b, 0, n
}

// slim gives back what others wait for, after everything complete was handed on.
func (c *reader) slim() {
	if c.buf != nil {
		switch have := c.w - c.r; {
		case have == 0:
			c.dropBuffer()
		case have <= budget.Parked/2 && len(c.buf.B) > budget.Parked:
			c.shrink(budget.Parked)
		case have <= budget.Base/2 && len(c.buf.B) > budget.Base:
			c.shrink(budget.Base)
		}
	}
	c.hold.Settle()
}
