// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"errors"
	"io"
	"runtime"

	"github.com/klauspost/compress/zstd"
	"github.com/spillwaylog/spillway/forward/internal/budget"
	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// errLater says that a chunk becomes too long to be kept decompressed.
var errLater = errors.New("forward: decompressed later")

// takeCompressed makes a chunk of compressed entries.
func (c *taker) takeCompressed(tag string, kind wire.Compression, packed []byte) error {
	give, err := c.takeInflaters()
	if err != nil {
		return err
	}
	defer give()
	in, ck := &c.decompression, &c.ck
	*in = decompression{c: c.outlet, scan: c.in.dec.Scanner(), kind: kind, from: len(packed), ck: ck}
	err = c.inflate(in, packed)
	if errors.Is(err, errLater) {
		err = c.takeInWindow(tag, in, packed)
		ck.Drop()
		c.inflaters.Done()
		return err
	}
	if in.buf == nil {
		return c.takePacked(tag, packed, ck, nil, nil, err)
	}
	return c.takePacked(tag, in.buf.B[:in.n], ck, in.buf, packed[:len(packed):len(packed)], err)
}

// takeInflaters waits for decompressors. Their holder waits for no peer, but perhaps for
// memory; the connection that overdraws does not wait.
func (c *taker) takeInflaters() (give func(), err error) {
	if c.hold.Over() {
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

// inflate decompresses the entries of the message in progress into a buffer of their own, and looks
// at them as they come out, so that what is no stream of entries is refused before much of it was
// made. The buffer, which may be nil, is the caller's, also after an error.
func (c *taker) inflate(in *decompression, src []byte) (err error) {
	if len(src) == 0 { // no member at all
		return nil
	}
	limit, later := c.s.maxDecompressed, min(c.s.later, c.s.maxDecompressed)
	r, err := c.inflaters.Open(in.kind, src)
	if err != nil {
		return &fault{PeerCorrupt, err}
	}
	in.r = r
	defer func() {
		if !errors.Is(err, errLater) {
			c.inflaters.Done()
		}
	}()
	claim := wire.Claimed(in.kind, src) // makes a step smaller, never larger
	if claim > limit {
		claim = 0
	}
	step := func(n int64) int {
		if claim > 0 && (in.buf == nil || claim > in.buf.Size()) {
			n = min(n, max(claim, readSize))
		}
		return budget.SizeOf(min(n, later+1))
	}
	first := max(4*int64(len(src)), readSize)
	if last := int64(c.inflated); last > first && c.s.mem.Used()+last <= c.s.mem.Limit()/2 {
		first = last // what the connection's chunks become, as a rule
	}
	in.buf, err = c.extra(step(first))
	for turn, looked := 0, 0; err == nil; {
		if in.n-turn > inflateTurn { // those with little to do come first
			turn = in.n
			runtime.Gosched()
		}
		into := in.buf.B[in.n:]
		full := len(into) == 0
		if full { // that may have been all
			into = c.in.tiny[:]
		}
		var k int
		k, err = r.Read(into)
		if full && k > 0 {
			var gerr error
			if in.buf, gerr = c.growExtra(in.buf, in.n, step(2*int64(in.n))); gerr != nil {
				return gerr
			}
			copy(in.buf.B[in.n:], into[:k])
		}
		in.n += k
		in.total = int64(in.n)
		if in.total > limit {
			return in.bomb()
		}
		if err == nil && in.n-looked < lookStep && in.total <= later {
			continue
		}
		looked = in.n
		if bad := in.ck.Run(in.buf.B[:in.n], wire.NoLimit, in.scan, limit); bad != nil {
			return wire.ScanFault(bad, wire.FaultInvalidChunk)
		}
		if in.ck.Odd > maxAlien && in.ck.Alien() {
			return &fault{PeerInvalidChunk, errAlien}
		}
		if errors.Is(err, io.EOF) {
			c.inflated = min(in.n+in.n/8, startBuffer)
			return nil
		}
		if err != nil {
			return &fault{PeerCorrupt, err}
		}
		if in.total > later {
			return errLater
		}
	}
	return err
}

// takeInWindow takes a compressed chunk of which maxLater was decompressed: in is its first time so
// far.
func (c *taker) takeInWindow(tag string, in *decompression, src []byte) error {
	in.ck.Drop() // of what stands where: the second time will tell
	err := in.run()
	if err == nil && in.ck.Alien() {
		err = &fault{PeerInvalidChunk, errAlien}
	}
	ck := in.ck
	if err == nil && ck.Large > 0 && c.refuseLarge(tag, ck, in.sizes[0]) {
		c.hold.Drop(in.buf)
		return nil
	}
	if err == nil && ck.Invalid > 0 && !c.invalid(tag, int(ck.Invalid), ck.Values(), ck.Why) {
		c.hold.Drop(in.buf)
		return nil
	}
	if err != nil {
		c.hold.Drop(in.buf)
		return c.refused(tag, err)
	}
	c.count.skipped.Add(uint64(ck.Skipped))
	g := c.g
	if ck.Clean() && c.stamp == nil {
		c.hold.Drop(in.buf)
		g.close(tag)
		ch := c.chunk(tag)
		ch.Compressed, ch.Compression = src[:len(src):len(src)], in.kind.String()
		ch.Events = int(ck.Events)
		return nil
	}
	out, err := c.compressAnew(tag, in, src)
	c.hold.Drop(in.buf)
	if err != nil {
		return err
	}
	if ck.Events == 0 {
		c.hold.Drop(out)
		c.addAck()
		return nil
	}
	g.close(tag)
	ch := c.chunk(tag)
	ch.Compressed, ch.Compression = out.B[:in.n:in.n], wire.CompressionZstd.String()
	ch.Events = int(ck.Events)
	sent := g.sent()
	sent.Compressed, sent.Compression = src[:len(src):len(src)], in.kind.String()
	sent.Invalid, sent.Skipped = int(ck.Invalid), int(ck.Skipped)
	c.keepExtra(out)
	if g.extraLen > keptBuffer {
		return c.flush()
	}
	return nil
}

// compressAnew sets the large entries aside, and compresses anew what stays. in.n is how long that
// is.
func (c *taker) compressAnew(tag string, in *decompression, src []byte) (*budget.Buffer, error) {
	r, err := c.inflaters.Open(in.kind, src)
	if err != nil {
		return nil, err
	}
	defer c.inflaters.Done()
	sink := &spool{c: c.outlet}
	if sink.buf, err = c.extra(budget.SizeOf(int64(len(src)) + readSize)); err != nil {
		return nil, err
	}
	z, err := zstd.NewWriter(sink, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20),
		zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return nil, err
	}
	ck := wire.Check{Most: in.ck.Most}
	defer ck.Drop()
	now := c.s.now()
	var anew []byte
	set := setting{c: c, sizes: in.sizes, chunk: c.bare(tag)}
	defer set.drop()
	again := &decompression{
		c: c.outlet, r: r, scan: in.scan, kind: in.kind, from: len(src), buf: in.buf, ck: &ck,
		write: func(b []byte) error {
			anew = ck.Rewrite(anew[:0], b, now, c.stamp)
			_, err := z.Write(anew)
			return err
		},
		part: set.add, end: set.end,
	}
	err = again.run()
	in.buf = again.buf
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		c.hold.Drop(sink.buf)
		return nil, err
	}
	in.n = sink.n
	return sink.buf, nil
}

// makeInflaters makes as many as there can be work for, and as fit into an eighth of memory each.
func makeInflaters(memory int64) chan *wire.Inflaters {
	n := int(min(max(memory/wire.MaxWindow, 2), int64(max(runtime.GOMAXPROCS(0), 2))))
	all := make(chan *wire.Inflaters, n)
	for range n {
		all <- new(wire.Inflaters)
	}
	return all
}
