// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"io"
)

// How this file is organised. A connection holds a buffer only while it has bytes of a message in it. fill waits for bytes, and takes a
// buffer when they are there: on sockets by reading in the poller's callback (read_unix.go), elsewhere by reading into a few bytes of
// its own first. The buffer doubles when it is full of one message, and never because of what a message claims. A connection that has sent
// the beginning of a message and then nothing is parked: it keeps only a small buffer.

// fill waits until there are more bytes behind c.w.
func (c *conn) fill() error {
	c.turn.Add(1)
	defer c.turn.Add(1)
	for {
		if c.cut.Load() || c.s.down.Load() {
			return errGone
		}
		n, err := c.read()
		if n > 0 {
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

// read reads once: behind c.w, or, if c.hungry, into c.tiny.
func (c *conn) read() (int, error) {
	if c.raw != nil {
		c.readN, c.readErr = 0, nil
		if err := c.raw.Read(c.try); err != nil {
			return 0, err
		}
		return c.readN, c.readErr
	}
	// Through an interface there is no waiting without a buffer: the first bytes of what comes go to c.tiny, then there is one.
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

// wanted is how many bytes to read.
func (c *conn) wanted() int64 {
	if m := c.dec.missing(c.w - c.r); m > parkedBuffer {
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

// room makes sure that there is space to read to. If wait is false, it does not wait for memory, and tells whether there is room.
func (c *conn) room(wait bool) bool {
	if c.buf == nil {
		return c.grow(c.first(), wait)
	}
	size := len(c.buf.b)
	if size == parkedBuffer {
		return c.grow(c.first(), wait) || c.w < size
	}
	free := size - c.w
	want := min(c.wanted(), int64(size))
	if int64(free) < min(want, readSize/4) || free == 0 {
		if c.r > 0 && (int64(c.w-c.r)+want <= int64(size) || c.w-c.r <= size/2) {
			c.w = copy(c.buf.b, c.buf.b[c.r:c.w])
			c.r = 0
			return true
		}
		if free == 0 {
			return c.grow(bufferSize(2*int64(size), c.s.maxMessage+readSize), wait)
		}
	}
	return true
}

// first is the size of a buffer to begin with: what the last messages needed, if memory is plenty.
func (c *conn) first() int {
	if c.start > baseBuffer && c.s.mem.used.Load() > c.s.mem.limit/2 {
		return baseBuffer
	}
	return c.start
}

// grow takes a buffer of a size and moves what has arrived into it.
func (c *conn) grow(size int, wait bool) bool {
	if !c.s.mem.try(&c.hold, int64(size)) {
		if !wait || c.memory(int64(size)) != nil {
			return false
		}
	}
	b := takeBuffer(size)
	old, r, w := c.buf, c.r, c.w
	c.buf, c.r, c.w = b, 0, 0
	if old != nil {
		c.w = copy(b.b, old.b[r:w])
		c.s.mem.release(&c.hold, old.size())
		old.put()
	}
	return true
}

// dropBuffer gives the buffer back.
func (c *conn) dropBuffer() {
	if c.buf == nil {
		return
	}
	c.s.mem.release(&c.hold, c.buf.size())
	c.buf.put()
	c.buf, c.r, c.w = nil, 0, 0
}

// park gives back what a connection that waits does not need.
func (c *conn) park() {
	c.putGroup()
	if c.buf == nil {
		return
	}
	c.start = max(baseBuffer, min(keptBuffer, bufferSize(int64(c.largest)+1, keptBuffer)))
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

// shrink moves what has arrived into a smaller buffer.
func (c *conn) shrink(size int) {
	b := takeBuffer(size)
	n := copy(b.b, c.buf.b[c.r:c.w])
	c.s.mem.release(&c.hold, c.buf.size()-int64(size))
	c.buf.put()
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

// extra takes a buffer for entries that cannot stay where they are. It belongs to the caller until keep.
func (c *conn) extra(size int) (*buffer, error) {
	if err := c.memory(int64(size)); err != nil {
		return nil, err
	}
	return takeBuffer(size), nil
}

// growExtra replaces such a buffer, of which n bytes are used, by a larger one.
func (c *conn) growExtra(b *buffer, n, size int) (*buffer, error) {
	bigger, err := c.extra(size)
	if err != nil {
		return b, err
	}
	copy(bigger.b, b.b[:n])
	c.dropExtra(b)
	return bigger, nil
}

func (c *conn) dropExtra(b *buffer) {
	c.s.mem.release(&c.hold, b.size())
	b.put()
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
		c.g.scratch = takeBuffer(scratchMost)
	}
	return nil
}

func (c *conn) dropScratch() {
	if c.g != nil && c.g.scratch != nil {
		c.s.mem.release(&c.hold, scratchMost)
		c.g.scratch.put()
		c.g.scratch = nil
	}
}
