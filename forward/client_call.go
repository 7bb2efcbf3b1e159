// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// ErrCanceled is what done of Start gets when Cancel came while the chunk's bytes were in use.
var ErrCanceled = errors.New("forward: canceled")

// callQueue is what is under the lock of a client: its chunks, and the connection that they are on.
type callQueue struct {
	wake chan struct{} // there may be something to do for run; holds one

	mu        sync.Mutex
	calls     []*Call   // not acked, oldest first
	sent      int       // so many of them are written on link, or being written
	link      *link     // the connection, if there is one
	wanted    bool      // a connection is wanted with nothing to send
	notBefore time.Time // of the next attempt to connect
	pause     time.Duration
	doing     string   // what run waits for that an unknown server might not end
	notes     []func() // to be called as soon as mu is free
	closed    bool
	last      error // why the last connection was given up
	stats     ClientStats
}

// enqueue puts a call into the line.
func (q *callQueue) enqueue(k *Call) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		k.over = true
		k.release()
		return ErrClientClosed
	}
	q.calls = append(q.calls, k)
	q.wakeRunner()
	return nil
}

// wakeRunner lets run look again.
func (q *callQueue) wakeRunner() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// unlock gives up mu, and calls the functions that report what happened under it.
func (q *callQueue) unlock() {
	notes := q.notes
	q.notes = nil
	q.mu.Unlock()
	for _, f := range notes {
		f()
	}
}

// A Call is one chunk on its way to a server.
type Call struct {
	q        *callQueue
	deflater *wire.Deflater
	chunk    Chunk
	id       []byte // a copy: the ack may come when the caller has gone
	done     func(error)

	// What is written, when ready.
	head, entries, tail []byte
	free                func()
	ready               bool

	// With q.mu held:
	tries   int  // how often its writing began
	written bool // all of it may be with the kernel
	busy    bool // its bytes are in use: it is being compressed or written
	acked   bool // while it was being written
	left    bool // the caller went away: not to be sent again
	over    bool // done is called, or Cancel returned true
}

// prepare makes what is written. It takes the time of compression.
func (k *Call) prepare() error {
	if k.ready {
		return nil
	}
	how := k.deflater.How
	// Somebody took that time already.
	if ch := &k.chunk; ch.Compressed != nil && (ch.Compression == how || ch.Entries == nil) {
		k.entries, how = ch.Compressed, ch.Compression
	} else {
		var err error
		if k.entries, k.free, err = k.deflater.Deflate(ch.Entries); err != nil {
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
	q := k.q
	q.mu.Lock()
	defer q.mu.Unlock()
	if k.over {
		return false
	}
	k.left = true
	q.wakeRunner()
	i := slices.Index(q.calls, k)
	if k.busy {
		if i < q.sent && q.link != nil { // else it is being compressed
			q.link.interruptLocked()
		}
		return false
	}
	k.over = true
	k.release()
	if i >= q.sent {
		q.calls = slices.Delete(q.calls, i, i+1)
	} // else it stays until its ack comes, or the connection goes
	return true
}

// Written says whether the server may have got the chunk: all of it was written to a connection, or
// is being written now.
func (k *Call) Written() bool {
	k.q.mu.Lock()
	defer k.q.mu.Unlock()
	return k.written || k.busy
}

// Waiting says whether nothing but an ack is waited for: all of the chunk was written.
func (k *Call) Waiting() bool {
	k.q.mu.Lock()
	defer k.q.mu.Unlock()
	return k.written && !k.busy && !k.over
}

// finishLocked has done called. The bytes are not in use.
func (k *Call) finishLocked(err error) {
	if k.over {
		return
	}
	k.over = true
	k.release()
	k.q.notes = append(k.q.notes, func() { k.done(err) })
}

// release gives back memory: a call that is left in the queue for its ack holds nothing but its id.
func (k *Call) release() {
	if k.free != nil {
		k.free()
	}
	k.chunk, k.head, k.entries, k.tail, k.free = Chunk{}, nil, nil, nil, nil
}
