// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// How this file is organised. serve is a connection's goroutine: fill reads what has arrived
// (read.go has the buffer), decode finds the messages in it, take (take.go) makes chunks of them,
// flush hands them on, ack (ack.go) sees to their acks. end does what is left to do.

// conn is one connection of a Server. Ten thousand of them may be idle: then each holds this
// struct, its socket and a goroutine that is deep in no call, and neither buffer nor group.
type conn struct {
	s      *Server
	ep     *Endpoint
	nc     net.Conn
	sock   net.Conn        // under TLS; else nc
	tls    *tls.Conn       // nc, if it is one
	under  *socket         // what tls reads from
	raw    syscall.RawConn // nil: read through nc
	try    func(fd uintptr) bool
	sender *Sender
	ctx    context.Context // of its handlers, with the sender
	src    *wire.Source    // nil: nothing is added to records, or not yet, see found
	found  bool
	plain  bool   // neither its tags nor its records are changed; known once found
	prefix []byte // of tags, with the dot; behind it there is room for one
	forced []byte // the tag of all messages, prefix included
	proof  *proof // nil: there was no handshake, or it is not over; by the reader while it is early

	dec       wire.Decoder
	buf       *buffer         // nil while idle
	r, w      int             // the message in progress begins at r, what has arrived ends at w
	largest   int             // message since the buffer was taken
	start     int             // size of the next buffer
	inflated  int             // what the last compressed chunk became, and some more
	g         *group          // nil while idle
	inflaters *wire.Inflaters // while a chunk is decompressed
	hold      holder
	complete  uint64 // messages that are not counted yet
	odd       int    // values and arrays in a row that were no message
	seen      bool   // what it speaks
	spoke     bool   // a message came
	json      bool
	once      bool // keepalive is denied: it ends after its first message

	readN   int // what try found
	readErr error
	hungry  bool
	letters int      // bytes of its login
	guest   int64    // of the budget, for these
	tiny    [64]byte // for bytes that have no buffer yet
	tinyN   int

	count    *counters
	acks     acks
	away     away
	acked    atomic.Bool   // an ack was written, or why there will be none; by whoever writes them
	cut      atomic.Bool   // read no more; by whoever wants that
	abrupt   atomic.Bool   // and wait for nothing more of the peer; the same
	toldSlow atomic.Bool   // it was told that the peer does not read
	early    atomic.Bool   // in its login, see conn_login.go; by the reader
	bytes    atomic.Int64  // read; by the reader, for the watch
	turn     atomic.Uint64 // odd while the reader waits for its peer; by the reader, for the watch
	stalled  atomic.Int64  // since when it has brought next to nothing of a message, see watch.looked, 0: it is in none; by the reader, for the watch
	came     int64         // bytes at that time
	pause    atomic.Int64  // the longest after which it went on with a message; the same
	paused   int64         // the same of the message in progress
	left     int64         // when it was last not read for
	idle     atomic.Int64  // since when there was nothing to read; by the reader, for the next connection
}

func newConn(s *Server, nc net.Conn, ep *Endpoint, config *tls.Config) *conn {
	c := &conn{s: s, nc: nc, sock: nc, ep: ep, start: baseBuffer}
	addr := nc.RemoteAddr()
	c.sender = &Sender{Endpoint: ep, Addr: addr, Peer: peerOf(addr), Conn: s.serial.Add(1)}
	c.ctx = WithSender(s.ctx, c.sender)
	c.count = s.countersOf(ep, c.sender.Conn)
	c.dec.Max, c.dec.MaxEvent = s.maxMessage, max(s.MaxEvent, 0)
	c.idle.Store(s.clock())
	s.join(c)
	if config != nil {
		c.under = &socket{Conn: nc}
		c.tls = tls.Server(c.under, config)
		c.nc = c.tls
	}
	if ep.TagPrefix != "" {
		c.prefix = append(append(make([]byte, 0, len(ep.TagPrefix)+1+MaxTag), ep.TagPrefix...), '.')
	}
	if ep.Tag != "" {
		c.forced = append(slices.Clone(c.prefix), ep.Tag...)
	}
	c.early.Store(config != nil || ep.guarded())
	c.initRaw()
	return c
}

// serve is the connection's goroutine.
func (c *conn) serve() {
	c.end(c.run())
}

// run reads until the connection ends, and returns why.
func (c *conn) run() error {
	rest, err := c.login()
	if err == nil && len(rest) > 0 {
		if err = c.place(rest); err == nil {
			err = c.decode()
		}
	}
	if err != nil {
		return err
	}
	for {
		if err := c.fill(); err != nil {
			if !c.seen && c.w > c.r && errors.Is(err, io.EOF) { // nothing more will say what these few bytes are
				c.seen = true
				if err := c.decode(); err != nil {
					return err
				}
			}
			return err
		}
		if !c.seen {
			if wait, err := c.meet(); err != nil {
				return err
			} else if wait {
				continue
			}
			if first := c.buf.b[c.r]; first == '{' || first == '[' { // rule 43
				return c.runJSON()
			}
		}
		if err := c.decode(); err != nil {
			return err
		}
	}
}

// oddMost is how many values in a row may be no message before the stream is called garbage. A nil,
// the heartbeat, does not count.
const oddMost = 256

// decode finds the messages that are complete and hands them on.
func (c *conn) decode() error {
	c.takeGroup()
	err := c.messages()
	if ferr := c.flush(); ferr != nil { // what came before the error is good
		return ferr
	}
	if c.r == c.w && c.buf != nil && !c.buf.shared() {
		c.r, c.w = 0, 0
	}
	if big := c.dec.Claim() > smallMost; big != c.hold.big.Load() && (big || c.w-c.r <= smallMost) {
		c.hold.big.Store(big)
	}
	if c.s.mem.pressed() || c.hold.over {
		c.slim()
	}
	return err
}

// messages is the loop of decode. It counts for itself: other cores add to the same counters.
func (c *conn) messages() error {
	err := c.each()
	if c.complete > 0 {
		c.count.messages.Add(c.complete)
		c.complete = 0
	}
	return err
}

func (c *conn) each() error {
	d := &c.dec
	for c.r < c.w {
		b := c.buf.b[c.r:c.w]
		f, used, err := d.Next(b)
		if err != nil {
			return err
		}
		switch f {
		case wire.More:
			c.r += used
			return nil
		case wire.Message:
			c.odd, c.spoke = 0, true
			c.largest = max(c.largest, int(d.Pos))
			if err := c.take(b[:d.Pos]); err != nil {
				return err
			}
		case wire.Ignored:
			c.count.ignored.Add(1)
			if !d.Heart {
				c.odd++
			}
		case wire.Refused:
			c.odd++
			c.complete++
			c.refuse("", d.Why)
		}
		c.r += int(d.Pos)
		d.Reset()
		if c.once && f != wire.Ignored {
			return errOnce
		}
		if c.odd > oddFirst && !c.spoke {
			return faultf(OtherProtocol, "%d values at its beginning, and none is a message", c.odd)
		}
		if c.odd > oddMost {
			return faultf(Garbage, "%d values in a row that are no messages", c.odd)
		}
	}
	return nil
}

// takeGroup gets a group from the pool, if the connection has none.
func (c *conn) takeGroup() {
	if c.g == nil {
		if c.g, _ = c.s.groups.Get().(*group); c.g == nil {
			c.g = new(group)
		}
	}
}

// putGroup gives it back, empty.
func (c *conn) putGroup() {
	if c.g == nil {
		return
	}
	c.dropScratch()
	c.g.in = sifting{}
	c.g.opt = wire.Option{} // not before: a message that waits for memory lets go of what came before it
	c.s.groups.Put(c.g)
	c.g = nil
}

// flush hands the group on.
func (c *conn) flush() error {
	g := c.g
	if g.empty() {
		return nil
	}
	var err error
	if g.used > 0 {
		err = c.hand()
	} else {
		err = c.ack(g.acks, g.ackCount, nil)
	}
	for _, b := range g.extra {
		c.drop(b)
	}
	g.reset()
	return err
}

// hand gives the chunks to the handler.
func (c *conn) hand() error {
	g := c.g
	if g.needsScratch() {
		if err := c.needScratch(); err != nil {
			return err
		}
	}
	var buf []byte
	if c.buf != nil {
		buf = c.buf.b
	}
	var now time.Time
	if g.timeless {
		now = c.s.now()
	}
	g.seal(buf, now, c.src)
	chunks := g.chunks[:g.used]
	var events uint64
	for _, ch := range chunks {
		events += uint64(ch.Events)
	}
	c.count.chunks.Add(uint64(len(chunks)))
	c.count.events.Add(events)
	switch {
	case c.s.async != nil:
		return c.handAsync(chunks)
	case c.s.group == nil:
		return c.handEach(chunks)
	}
	wait, err := c.s.group.ServeGroup(c.ctx, chunks)
	if err != nil {
		c.unstored(err)
		return errGone
	}
	return c.ack(g.acks, g.ackCount, wait)
}

// handEach gives them to a handler that takes no groups. Each one's ack goes out before the next
// one is handed on; so do, after it, those of messages that left nothing to hand on.
func (c *conn) handEach(chunks []*Chunk) error {
	g := c.g
	at, acked := 0, 0
	for i, ch := range chunks {
		if err := c.s.Handler.ServeForward(c.ctx, ch); err != nil {
			c.unstored(err)
			return errGone
		}
		end, count := len(g.acks), g.ackCount
		if i+1 < len(chunks) {
			end, count = g.starts[i+1].acks, g.starts[i+1].count
		}
		if err := c.ack(g.acks[at:end], count-acked, nil); err != nil {
			return err
		}
		at, acked = end, count
	}
	return nil
}

// errGone ends a connection whose trouble was told already.
var errGone = errors.New("forward: connection given up")

// unstored tells that the handler could not store, and makes the reader stop.
func (c *conn) unstored(err error) {
	if c.s.ctx.Err() == nil {
		c.trouble(Unstored, Closed, "", 0, err)
	}
	c.interrupt()
}

// broken closes a connection that cannot be written to any more, and passes err on.
func (c *conn) broken(err error) error {
	c.abort()
	return err
}

// trouble tells a trouble of this connection.
func (c *conn) trouble(k TroubleKind, f Fate, tag string, entries int, err error) {
	c.s.tell(c.count, Trouble{Kind: k, Fate: f, Sender: c.sender, Tag: tag, Entries: entries, Err: err})
}

// refuse tells that a message was refused.
func (c *conn) refuse(tag string, err error) {
	c.count.refused.Add(1)
	kind := InvalidMessage
	if f := faultOf(err); f != nil {
		kind = f.kind
	}
	c.trouble(kind, Refused, tag, 0, err)
}
