// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"io"
)

// How this file is organised. A connection holds a buffer only while it has bytes of a message in
// it. fill waits for bytes, and takes a buffer when they are there: on sockets by reading in the
// poller's callback (read_unix.go), elsewhere by reading into a few bytes of its own first. The
// buffer grows when it is full of one message, at most to two and a half times its size, and never
// because of what a message claims. A connection that has sent the beginning of a message and then
// nothing is parked: it keeps only a small buffer.

// fill waits until there are more bytes behind c.w.
func (c *conn) fill() error {
	c.progress()
	c.turn.Add(1)
	defer c.turn.Add(1)
	for {
		if c.cut.Load() || c.s.down.Load() {
			return errGone
		}
		n, err := c.read()
		if n > 0 {
			c.left = c.s.watch.looked.Load()
			c.bytes.Add(int64(n))
			c.count.bytes.Add(uint64(n))
			if c.hungry {
				c.turn.Add(1)
				err := c.feed()
				c.turn.Add(1)
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

// progress notes, before the peer is waited for, whether it goes on with its message. Since it was
// last waited for no time has passed for it.
func (c *conn) progress() {
	since := c.stalled.Load()
	if c.r == c.w && !c.json {
		if since != 0 {
			c.stalled.Store(0)
			c.s.watch.completed(c)
		}
		return
	}
	now := c.s.watch.looked.Load()
	if since != 0 && now != c.left {
		c.stalled.Store(since + now - c.left)
	}
	c.brought(now)
}

// brought notes whether the peer goes on: it does when it has brought one part in stallShare of
// what the connection holds.
func (c *conn) brought(now int64) {
	came := c.bytes.Load()
	if c.under != nil {
		came = c.under.came // of a record that is not complete too
	}
	since := c.stalled.Load()
	if since == 0 || came-c.came > c.holds()/stallShare {
		if c.came = came; since != 0 && now > since {
			c.paused = max(c.paused, now-since)
			if now-since > c.pause.Load() {
				c.pause.Store(now - since)
			}
		}
		c.stalled.Store(now)
	}
}

// holds is what the connection itself holds of the budget.
func (c *conn) holds() int64 { return c.hold.held.Load() - c.hold.lent.Load() }

// read reads once: behind c.w, or, if c.hungry, into c.tiny.
func (c *conn) read() (int, error) {
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
func (c *conn) feed() error {
	c.hungry = false
	if !c.room(true) {
		return errGone // the server is closing
	}
	c.w += copy(c.buf.b[c.w:], c.tiny[:c.tinyN])
	c.tinyN = 0
	return nil
}

// place puts bytes that were read already into the buffer, however long it takes to get one.
func (c *conn) place(b []byte) error {
	if !c.room(true) {
		return errGone // the server is closing
	}
	c.bytes.Add(int64(len(b)))
	c.count.bytes.Add(uint64(len(b)))
	c.w += copy(c.buf.b[c.w:], b)
	return nil
}

// wanted is how many bytes to read.
func (c *conn) wanted() int64 {
	if m := c.dec.Missing(c.w - c.r); m > parkedBuffer {
		return m // that and no more: the next message begins at the start of the buffer
	}
	if c.hold.over {
		return parkedBuffer / 2 // so that it ends soon: what is left over of the next message can be parked
	}
	return readSize
}

// space is where to read to.
func (c *conn) space() []byte {
	return c.buf.b[c.w:min(int64(len(c.buf.b)), int64(c.w)+c.wanted())]
}

// room makes sure that there is space to read to. If wait is false, it does not wait for memory,
// and tells whether there is room.
func (c *conn) room(wait bool) bool {
	if c.buf == nil {
		return c.grow(c.first(), wait)
	}
	size := len(c.buf.b)
	if size == parkedBuffer {
		if c.w == 0 && c.s.mem.scarce() {
			return true
		}
		return c.grow(max(c.first(), baseBuffer), wait) || c.w < size
	}
	free, have := size-c.w, c.w-c.r
	want := min(c.wanted(), int64(size))
	if int64(free) < min(want, readSize/4) || free == 0 {
		fits := c.r > 0 && (int64(have)+want <= int64(size) || have <= size/2)
		switch {
		case fits && !c.buf.shared():
			c.w = copy(c.buf.b, c.buf.b[c.r:c.w])
			c.r = 0
		case fits: // somebody still looks at what was handed on
			return c.grow(max(c.first(), bufferSize(int64(have)+min(want, readSize))), wait) || free > 0
		case free == 0:
			return c.grow(c.larger(size), wait)
		}
	}
	return true
}

// larger is the next size of a buffer that is full of one message: twice as large, or what the
// message needs by all that is known of it, if that is not much more.
func (c *conn) larger(size int) int {
	next := 2 * int64(size)
	if claim := c.dec.Claim(); claim > 0 && claim <= next+next/4 {
		next = max(claim, int64(size+size/8))
	}
	return bufferSize(min(next, max(c.s.maxMessage+readSize, int64(size)+readSize)))
}

// first is the size of a buffer to begin with: what the last messages needed, if memory is plenty.
// If it is scarce, the beginning of a message has to do, to see how large it will be.
func (c *conn) first() int {
	if c.buf == nil && c.s.mem.scarce() {
		return parkedBuffer
	}
	if c.start > baseBuffer && c.s.mem.used.Load()+int64(c.start) > c.s.mem.limit/2 {
		return baseBuffer
	}
	return c.start
}

// grow takes a buffer of a size and moves what has arrived into it.
func (c *conn) grow(size int, wait bool) bool {
	if size > baseBuffer && c.w-c.r > smallMost {
		c.hold.big.Store(true)
	}
	if !c.s.mem.try(&c.hold, int64(size)) {
		if !wait || c.memory(int64(size)) != nil {
			return false
		}
	}
	b := c.s.pool.take(size, c.sender.Conn)
	old, r, w := c.buf, c.r, c.w
	c.buf, c.r, c.w = b, 0, 0
	if old != nil {
		c.w = copy(b.b, old.b[r:w])
		c.drop(old)
	}
	return true
}

// drop gives a buffer up that the connection owns. What others share of it they still hold.
func (c *conn) drop(b *buffer) {
	c.hold.lent.Add(b.size())
	c.giveBack(b)
}

// giveBack ends one hold on a buffer that its owner has dropped.
func (c *conn) giveBack(b *buffer) {
	if b.owned.Add(-1) > 0 {
		return
	}
	n := b.size()
	c.hold.lent.Add(-n)
	c.s.pool.put(b, c.sender.Conn) // first: whoever waits for its room finds it
	c.s.mem.release(&c.hold, n)
}

// dropBuffer gives the buffer back.
func (c *conn) dropBuffer() {
	if c.buf == nil {
		return
	}
	c.drop(c.buf)
	c.buf, c.r, c.w = nil, 0, 0
}

// park gives back what a connection that waits does not need.
func (c *conn) park() {
	c.idle.Store(c.s.clock())
	c.putGroup()
	if c.buf == nil {
		return
	}
	c.start = max(baseBuffer, bufferSize(min(startBuffer, int64(c.largest)+1)))
	c.largest = 0
	switch have := c.w - c.r; {
	case have == 0:
		c.dropBuffer()
	case have <= parkedBuffer/2 && len(c.buf.b) > parkedBuffer:
		c.shrink(parkedBuffer)
	}
	c.settle()
}

// settle ends an overdraft, once next to nothing is held.
func (c *conn) settle() {
	if c.hold.over && (c.hold.held.Load() <= parkedBuffer || c.s.mem.used.Load() <= c.s.mem.limit) {
		c.s.mem.settle(&c.hold)
	}
}

// shrink moves what has arrived into a smaller buffer. It gives back more than it takes, so it need
// not ask, and is over the limit for no more than that.
func (c *conn) shrink(size int) {
	c.s.mem.force(&c.hold, int64(size))
	b := c.s.pool.take(size, c.sender.Conn)
	n := copy(b.b, c.buf.b[c.r:c.w])
	c.drop(c.buf)
	c.buf, c.r, c.w = b, 0, n
}

// slim gives back what others wait for, after everything complete was handed on.
func (c *conn) slim() {
	c.dropScratch()
	if c.buf != nil {
		switch have := c.w - c.r; {
		case have == 0:
			c.dropBuffer()
		case have <= parkedBuffer/2 && len(c.buf.b) > parkedBuffer:
			c.shrink(parkedBuffer)
		case have <= baseBuffer/2 && len(c.buf.b) > baseBuffer:
			c.shrink(baseBuffer)
		}
	}
	c.settle()
}

// extra takes a buffer for entries that cannot stay where they are. It belongs to the caller until
// keepExtra.
func (c *conn) extra(size int) (*buffer, error) {
	if err := c.memory(int64(size)); err != nil {
		return nil, err
	}
	return c.s.pool.take(size, c.sender.Conn), nil
}

// growExtra replaces such a buffer, of which n bytes are used, by a larger one.
func (c *conn) growExtra(b *buffer, n, size int) (*buffer, error) {
	bigger, err := c.extra(size)
	if err != nil {
		return b, err
	}
	copy(bigger.b, b.b[:n])
	c.drop(b)
	return bigger, nil
}

// keepExtra lets the buffer live until the group is handed on.
func (c *conn) keepExtra(b *buffer) {
	c.g.extra = append(c.g.extra, b)
	c.g.extraLen += b.size()
}

// needScratch gets the group its scratch.
func (c *conn) needScratch() error {
	if c.g.scratch == nil {
		if err := c.memoryNow(scratchMost); err != nil {
			return err
		}
		c.g.scratch = c.s.pool.take(scratchMost, c.sender.Conn)
	}
	return nil
}

func (c *conn) dropScratch() {
	if c.g != nil && c.g.scratch != nil {
		c.drop(c.g.scratch)
		c.g.scratch = nil
	}
}
