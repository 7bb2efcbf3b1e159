// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"crypto/tls"
	"errors"
	"net"
	"slices"

	"github.com/spillwaylog/spillway/forward/internal/budget"
	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// How this file is organised. A connection is a remote end and four parts, each of which writes its
// own state: the reader has the buffer and finds messages, the taker makes chunks of them, the
// outlet hands these on, and the acks follow them, in a goroutine of their own if they have to
// wait.
//
//	peer ──► reader ──► taker ──► outlet ──► handler
//	                    group       └──► acks ──► peer
//
// serve.go has the connection's goroutine.

// conn is one connection of a Server. Ten thousand of them may be idle: then each holds this
// struct, its socket and a goroutine that is deep in no call, and neither buffer nor group.
type conn struct {
	remote
	reader
	outlet
	taker
	acks acks

	odd   int  // values and arrays in a row that were no message
	seen  bool // what it speaks
	spoke bool // a message came
	once  bool // keepalive is denied: it ends after its first message
}

func newConn(s *shared, nc net.Conn, ep *Endpoint, config *tls.Config, serial uint64, peer *budget.Peer) *conn {
	c := new(conn)
	c.remote = remote{s: s, nc: nc, sock: nc, ep: ep, count: s.counts.of(ep, serial)}
	addr := nc.RemoteAddr()
	c.sender = &Sender{Endpoint: ep, Addr: addr, Peer: peerOf(addr), Conn: serial}
	c.ctx = WithSender(s.ctx, c.sender)
	c.hold.Begin(s.mem, peer, serial)
	c.pace.Begin(&s.watch, s.clock())
	if config != nil {
		c.under = &socket{Conn: nc, clock: s.clock}
		c.tls = tls.Server(c.under, config)
		c.nc = c.tls
	}
	c.early.Store(config != nil || ep.guarded())

	c.reader = reader{remote: &c.remote, before: c, start: budget.Base}
	c.dec.Max, c.dec.MaxEvent = s.maxMessage, s.maxEvent
	c.initRaw()

	c.acks.remote = &c.remote
	c.outlet = outlet{remote: &c.remote, in: &c.reader, acks: &c.acks}
	c.taker.outlet = &c.outlet
	if ep.TagPrefix != "" {
		c.prefix = append(append(make([]byte, 0, len(ep.TagPrefix)+1+MaxTag), ep.TagPrefix...), '.')
	}
	if ep.Tag != "" {
		c.forced = append(slices.Clone(c.prefix), ep.Tag...)
	}
	return c
}

// maxOddValues is how many values in a row may be no message before the stream is called garbage. A
// nil, the heartbeat, does not count.
const maxOddValues = 256

// oddFirst is how many values at the beginning of a connection may be no messages.
const oddFirst = 16

// decode finds the messages that are complete and hands them on.
func (c *conn) decode() error {
	c.takeGroup()
	err := c.messages()
	if ferr := c.flush(); ferr != nil { // what came before the error is good
		return ferr
	}
	if c.r == c.w && c.buf != nil && !c.buf.Shared() {
		c.r, c.w = 0, 0
	}
	if big := c.dec.Claim() > budget.MaxSmall; big != c.hold.Big() && (big || c.w-c.r <= budget.MaxSmall) {
		c.hold.SetBig(big)
	}
	if c.s.mem.Pressed() || c.hold.Over() {
		c.dropScratch()
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
		b := c.buf.B[c.r:c.w]
		f, used, err := d.Next(b)
		if err != nil {
			return err
		}
		switch f {
		case wire.FoundMore:
			c.r += used
			return nil
		case wire.FoundMessage:
			c.odd, c.spoke = 0, true
			c.largest = max(c.largest, int(d.Pos))
			if err := c.take(b[:d.Pos]); err != nil {
				return err
			}
		case wire.FoundIgnored:
			c.count.ignored.Add(1)
			if !d.Heart {
				c.odd++
			}
		case wire.FoundRefused:
			c.odd++
			c.complete++
			c.refuse("", d.Why)
		}
		c.r += int(d.Pos)
		d.Reset()
		if c.once && f != wire.FoundIgnored {
			return errOnce
		}
		if c.odd > oddFirst && !c.spoke {
			return faultf(PeerOtherProtocol, "%d values at its beginning, and none is a message", c.odd)
		}
		if c.odd > maxOddValues {
			return faultf(PeerGarbage, "%d values in a row that are no messages", c.odd)
		}
	}
	return nil
}

// errOnce ends a connection that has had its one message.
var errOnce = errors.New("forward: one message, and keepalive is denied")
