// SPDX-License-Identifier: Apache-2.0

package forward

import "github.com/spillwaylog/spillway/forward/internal/wire"

// How this file is organised. A taker makes chunks of messages, into the group that its outlet
// hands on. This file has what all of it uses; take.go takes a message, entries.go the entries of
// one, unpack.go those that are compressed, aside.go events that are too large.

// taker is what a connection makes chunks with.
type taker struct {
	*outlet
	*work // nil while idle

	stamped   bool            // stamp is what it will be
	plain     bool            // neither its tags nor its records are changed; known once stamped
	prefix    []byte          // of tags, with the dot; behind it there is room for one
	forced    []byte          // the tag of all messages, prefix included
	complete  uint64          // messages that are not counted yet
	inflated  int             // what the last compressed chunk became, and some more
	inflaters *wire.Inflaters // while a chunk is decompressed
}

// work is a message in progress, and the group that it becomes part of. It is taken from a pool
// when a connection has something to decode, and goes back when the connection waits for its peer.
type work struct {
	group         group
	tags          tags
	opt           wire.Option
	ck            wire.Check
	decompression decompression
	sentTag       string // see Sent.Tag
}

// takeGroup gets a group from the pool, if the connection has none.
func (c *taker) takeGroup() {
	if c.work == nil {
		if c.work, _ = c.s.groups.Get().(*work); c.work == nil {
			c.work = new(work)
		}
		c.g = &c.group
	}
}

// putGroup gives it back, empty.
func (c *taker) putGroup() {
	if c.work == nil {
		return
	}
	c.dropScratch()
	c.decompression = decompression{}
	c.opt = wire.Option{} // not before: a message that waits for memory lets go of what came before it
	c.s.groups.Put(c.work)
	c.work, c.g = nil, nil
}

// chunk begins a chunk of the message in progress, and notes its ack.
func (c *taker) chunk(tag string) *Chunk {
	g, o := c.g, &c.opt
	ch := g.chunk()
	ch.Tag = tag
	if c.sentTag != "" {
		g.sent().Tag = c.sentTag
	}
	ch.ID, ch.IDBin, ch.UniqueID = o.ID, o.IDBin, o.UniqueID
	c.addAck()
	return ch
}

// bare is the chunk of the message in progress without its entries.
func (c *taker) bare(tag string) *Chunk {
	o := &c.opt
	ch := &Chunk{Tag: tag, ID: o.ID, IDBin: o.IDBin, UniqueID: o.UniqueID}
	if c.sentTag != "" {
		ch.Sent = &Sent{Tag: c.sentTag}
	}
	return ch
}

// addAck notes the ack of the message in progress, if it asked for one (docs/forward.md rules 24,
// 25).
func (c *taker) addAck() {
	g := c.g
	if c.opt.ID != nil {
		g.acks = wire.AppendAck(g.acks, c.opt.ID, c.opt.IDBin, c.in.json)
		g.ackCount++
	}
}

// invalid tells of n invalid entries of all that a message has, and whether the rest is to be
// stored.
func (c *taker) invalid(tag string, n int, all int64, why uint8) bool {
	err := wire.Reasons[why]
	if c.s.refuseInvalid {
		c.count.refusedEvents.Add(uint64(all))
		c.refuse(tag, &fault{PeerInvalidEntries, err})
		return false
	}
	c.count.invalid.Add(uint64(n))
	c.report(PeerInvalidEntries, ActionKeep, tag, n, err)
	return true
}

// makeStamp makes the stamp of a connection, if its endpoint adds one, once: at its first message,
// for those that come and go without one are not worth a look at their address.
func (c *taker) makeStamp() {
	if c.stamped {
		return
	}
	c.stamped = true
	if !c.ep.stamps() {
		c.plain = c.forced == nil && c.prefix == nil
		return
	}
	s := new(wire.Stamp)
	s.Add(c.ep.AddressKey, c.sender.Peer)
	if c.ep.HostKey != "" {
		host := c.sender.Host
		if host == "" {
			host = c.s.hosts.of(c.ctx, c.sock.RemoteAddr(), c.sender.Peer)
		}
		s.Add(c.ep.HostKey, host)
	}
	subject := ""
	if state := c.sender.TLS; state != nil && len(state.PeerCertificates) > 0 {
		subject = state.PeerCertificates[0].Subject.String()
	}
	s.Add(c.ep.SubjectKey, subject)
	s.Add(c.ep.UserKey, c.sender.User)
	c.stamp = s
}
