// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"errors"
	"io"
	"runtime"

	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// alienMost is how much of what is no entry is looked at before the rest is not even decompressed.
const alienMost = 4096

// inflateTurn is how much is decompressed before others get their turn: about a millisecond.
const inflateTurn = 1 << 20

// lookStep is how much is decompressed before it is looked at: little enough to be still in the
// cache, and so much that few entries are cut by its end.
const lookStep = 128 << 10

// makeInflaters makes as many as there can be work for, and as fit into an eighth of memory each.
func makeInflaters(memory int64) chan *wire.Inflaters {
	n := int(min(max(memory/wire.MaxWindow, 2), int64(max(runtime.GOMAXPROCS(0), 2))))
	all := make(chan *wire.Inflaters, n)
	for range n {
		all <- new(wire.Inflaters)
	}
	return all
}

// takeInflaters waits for decompressors. Whoever has them waits for no peer, but perhaps for
// memory: who overdraws that waits for nobody.
func (c *conn) takeInflaters() (give func(), err error) {
	if c.hold.over {
		c.inflaters = new(wire.Inflaters)
		return func() { c.inflaters = nil }, nil
	}
	select {
	case c.inflaters = <-c.s.inflaters:
	case <-c.s.stop:
		return nil, context.Canceled
	}
	return func() {
		c.s.inflaters <- c.inflaters
		c.inflaters = nil
	}, nil
}

// errLater says that a chunk becomes too long to be kept decompressed.
var errLater = errors.New("forward: decompressed later")

// inflate decompresses the entries of the message in progress into a buffer of their own, and looks
// at them as they come out, so that what is no stream of entries is refused before much of it was
// made. The buffer, which may be nil, is the caller's, also after an error.
func (c *conn) inflate(in *sifting, src []byte) (err error) {
	if len(src) == 0 { // no member at all
		return nil
	}
	most, later := c.s.maxDecompressed, min(c.s.later(), c.s.maxDecompressed)
	r, err := c.inflaters.Open(in.kind, src)
	if err != nil {
		return &fault{Corrupt, err}
	}
	in.r = r
	defer func() {
		if !errors.Is(err, errLater) {
			c.inflaters.Done()
		}
	}()
	claim := wire.Claimed(in.kind, src) // makes a step smaller, never larger
	if claim > most {
		claim = 0
	}
	step := func(n int64) int {
		if claim > 0 && (in.buf == nil || claim > in.buf.size()) {
			n = min(n, max(claim, readSize))
		}
		return bufferSize(min(n, later+1))
	}
	first := max(4*int64(len(src)), readSize)
	if last := int64(c.inflated); last > first && c.s.mem.used.Load()+last <= c.s.mem.limit/2 {
		first = last // what the connection's chunks become, as a rule
	}
	in.buf, err = c.extra(step(first))
	for turn, looked := 0, 0; err == nil; {
		if in.n-turn > inflateTurn { // those with little to do come first
			turn = in.n
			runtime.Gosched()
		}
		into := in.buf.b[in.n:]
		full := len(into) == 0
		if full { // that may have been all
			into = c.tiny[:]
		}
		var k int
		k, err = r.Read(into)
		if full && k > 0 {
			var gerr error
			if in.buf, gerr = c.growExtra(in.buf, in.n, step(2*int64(in.n))); gerr != nil {
				return gerr
			}
			copy(in.buf.b[in.n:], into[:k])
		}
		in.n += k
		in.total = int64(in.n)
		if in.total > most {
			return in.bomb()
		}
		if err == nil && in.n-looked < lookStep && in.total <= later {
			continue
		}
		looked = in.n
		if bad := in.ck.Run(in.buf.b[:in.n], wire.NoMost, c.dec.Scanner(), most); bad != nil {
			return wire.ScanFault(bad, wire.InvalidChunk)
		}
		if in.ck.Odd > alienMost && in.ck.Alien() {
			return &fault{InvalidChunk, errAlien}
		}
		if errors.Is(err, io.EOF) {
			c.inflated = min(in.n+in.n/8, startBuffer)
			return nil
		}
		if err != nil {
			return &fault{Corrupt, err}
		}
		if in.total > later {
			return errLater
		}
	}
	return err
}
