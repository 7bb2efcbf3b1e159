// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// ErrCanceled is what done of Start gets when Cancel came while the chunk's bytes were in use.
var ErrCanceled = errors.New("forward: canceled")

// A Call is one chunk on its way to a server.
type Call struct {
	c     *Client
	chunk Chunk
	id    []byte // a copy: the ack may come when the caller has gone
	done  func(error)

	// What is written, when ready.
	head, entries, tail []byte
	free                func()
	ready               bool

	// With c.mu held:
	tries   int  // how often its writing began
	written bool // all of it may be with the kernel
	busy    bool // its bytes are in use: it is being compressed or written
	acked   bool // while it was being written
	left    bool // the caller went away: not to be sent again
	over    bool // done is called, or Cancel returned true
}

// newCall checks a chunk and gives it an id.
func (c *Client) newCall(ch *Chunk, done func(error)) (*Call, error) {
	c.init()
	if err := c.deflater.Check(); err != nil {
		return nil, fmt.Errorf("forward: %w", err)
	}
	k := &Call{c: c, chunk: *ch, done: done}
	switch {
	case c.NoAck:
		k.chunk.ID, k.chunk.Own = nil, false
	case ch.ID == nil:
		k.chunk.ID, k.chunk.Own = NewID(), true
		k.id = k.chunk.ID
	default:
		k.id = slices.Clone(ch.ID)
	}
	return k, nil
}

// prepare makes what is written. It takes the time of compression.
func (k *Call) prepare() error {
	if k.ready {
		return nil
	}
	how := k.c.Compress
	if ch := &k.chunk; ch.Compressed != nil && (ch.Compression == how || ch.Entries == nil) { // somebody took that time already
		k.entries, how = ch.Compressed, ch.Compression
	} else {
		var err error
		if k.entries, k.free, err = k.c.deflater.Deflate(ch.Entries); err != nil {
			return fmt.Errorf("forward: %w", err)
		}
	}
	buf := make([]byte, 0, len(k.chunk.Tag)+len(k.id)+96) // headers, keys and numbers
	buf = wire.AppendHead(buf, k.chunk.Tag, len(k.entries))
	n := len(buf)
	buf = k.chunk.appendTail(buf, how)
	k.head, k.tail = buf[:n:n], buf[n:]
	k.ready = true
	return nil
}

// size is the length of the message.
func (k *Call) size() int64 { return int64(len(k.head)) + int64(len(k.entries)) + int64(len(k.tail)) }

// Cancel takes the chunk back: true says that its bytes are not used any more, and done is not
// called. false: they are in use, and done is about to be called with ErrCanceled, or nil if the
// ack was faster; or it was called already. To get the bytes back of a server that does not read
// them the connection is given up. Either way the server may have got the chunk, see Written.
func (k *Call) Cancel() bool {
	c := k.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.over {
		return false
	}
	k.left = true
	c.poke()
	i := slices.Index(c.queue, k)
	if k.busy {
		if i < c.sent && c.link != nil { // else it is being compressed
			c.link.interrupt()
		}
		return false
	}
	k.over = true
	k.release()
	if i >= c.sent {
		c.queue = slices.Delete(c.queue, i, i+1)
	} // else it stays until its ack comes, or the connection goes
	return true
}

// Written says whether the server may have got the chunk: all of it was written to a connection, or
// is being written now.
func (k *Call) Written() bool {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	return k.written || k.busy
}

// Waiting says whether nothing but an ack is waited for: all of the chunk was written.
func (k *Call) Waiting() bool {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	return k.written && !k.busy && !k.over
}

// finish has done called. With c.mu held, and the bytes not in use.
func (k *Call) finish(err error) {
	if k.over {
		return
	}
	k.over = true
	k.release()
	k.c.notes = append(k.c.notes, func() { k.done(err) })
}

// release gives back memory: a call that is left in the queue for its ack holds nothing but its id.
func (k *Call) release() {
	if k.free != nil {
		k.free()
	}
	k.chunk, k.head, k.entries, k.tail, k.free = Chunk{}, nil, nil, nil, nil
}
