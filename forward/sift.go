// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/klauspost/compress/zstd"
	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// How this file is organised. What is compressed may become a thousand times as long. Beyond
// laterMost it is never in memory as a whole: sift goes over it in a window that holds little more
// than the entry in progress, and the chunk is handed on as it came, compressed. Only where some of
// its entries cannot stay it is gone over a second time, and what stays is compressed anew.
//
//	compressed ──► decompressor ──► │ looked at │ in progress │ ──► more
//	                                └────────── window ───────┘
//	                     1st time: let go   let go, if it is too large
//	                     2nd time: kept     set aside

const (
	// laterMost is what a chunk may become before it is no longer kept decompressed; twice the
	// largest event if that is more.
	laterMost = 16 << 20
	// asideMost is the largest event that is set aside as a whole. Of a larger one asideHead bytes
	// are.
	asideMost = 64 << 20
	asideHead = 64 << 10
)

// A LargeEvent is one that is larger than Server.MaxEvent. Its bytes are lent.
type LargeEvent struct {
	Chunk *Chunk // whose it is: tag and id; its entries are not there
	Index int    // among the large events of its chunk
	Entry []byte // packed, as it came; without its end if it is larger than 64 MiB: then these are its first 64 KiB
	Size  int64  // of the whole, in bytes
	Sec   int64  // the event's time, as in Entry
	Nsec  uint32
}

// Whole says whether all of the event is there.
func (e *LargeEvent) Whole() bool { return int64(len(e.Entry)) == e.Size }

// later is what a chunk may become before it is no longer kept decompressed.
func (s *Server) later() int64 {
	if s.MaxEvent <= 0 {
		return s.maxDecompressed
	}
	return max(laterMost, 2*s.MaxEvent)
}

// sifting is one time over the entries of a compressed chunk.
type sifting struct {
	c     *conn
	r     io.Reader
	kind  wire.Compression
	from  int     // compressed bytes, for messages
	buf   *buffer // the window
	n     int     // of it in use
	total int64   // decompressed so far
	ck    *wire.Check
	sizes []int64 // of the large entries

	// The second time:
	write func(b []byte) error          // takes entries that are whole; nil: it is the first time
	part  func(b []byte, i int) error   // takes a part of large entry i
	end   func(i int, size int64) error // of it
}

// sift goes on until the compressed bytes end. The entries in the window are looked at.
func (s *sifting) sift() error {
	most, err := s.c.s.maxDecompressed, error(nil)
	if s.total > most {
		return s.bomb()
	}
	for turn := s.total; ; {
		if err := s.pass(); err != nil {
			return err
		}
		looked := s.n
		for err = nil; err == nil && s.n-looked < lookStep; {
			if s.n == len(s.buf.b) {
				if s.buf, err = s.c.growExtra(s.buf, s.n, bufferSize(int64(s.n)+max(lookStep, int64(s.n)/4))); err != nil {
					return err
				}
			}
			var k int
			k, err = s.r.Read(s.buf.b[s.n:min(len(s.buf.b), looked+lookStep)])
			s.n += k
			s.total += int64(k)
			if s.total > most {
				return s.bomb()
			}
		}
		if s.total-turn > inflateTurn {
			turn = s.total
			runtime.Gosched()
		}
		if bad := s.ck.Run(s.buf.b[:s.n], wire.NoMost, s.c.dec.Scanner(), most); bad != nil {
			return wire.ScanFault(bad, wire.InvalidChunk)
		}
		if s.ck.Odd > alienMost && s.ck.Alien() {
			return &fault{InvalidChunk, errAlien}
		}
		if errors.Is(err, io.EOF) {
			if s.ck.BrokenOff(s.n) {
				return &fault{InvalidChunk, errBrokenOff}
			}
			return s.pass()
		}
		if err != nil {
			return &fault{Corrupt, err}
		}
	}
}

func (s *sifting) bomb() error {
	return faultf(Bomb, "more than %d bytes from %d compressed ones", s.c.s.maxDecompressed, s.from)
}

// pass lets go of the entries that are complete, and of one in progress that is too large already.
func (s *sifting) pass() error {
	ck, b := s.ck, s.buf.b
	for _, l := range ck.Spans {
		i := len(s.sizes)
		s.sizes = append(s.sizes, l.Size)
		if s.write == nil {
			continue
		}
		if err := s.part(b[l.Start:l.End], i); err != nil {
			return err
		}
		if err := s.end(i, l.Size); err != nil {
			return err
		}
	}
	if s.write != nil && ck.Pos > 0 {
		if err := s.write(b[:ck.Pos]); err != nil {
			return err
		}
	}
	s.n = copy(b, b[ck.Pos:s.n])
	ck.Slide()
	if ck.Overdue(s.n) {
		if s.write != nil {
			if err := s.part(b[:s.n], len(s.sizes)); err != nil {
				return err
			}
		}
		ck.Lose()
		s.n = 0
	}
	return nil
}

// siftLater takes a compressed chunk of which laterMost was decompressed: in is its first time so
// far.
func (c *conn) siftLater(tag string, in *sifting, src []byte) error {
	in.ck.Drop() // of what stands where: the second time will tell
	err := in.sift()
	if err == nil && in.ck.Alien() {
		err = &fault{InvalidChunk, errAlien}
	}
	ck := in.ck
	if err == nil && ck.Large > 0 && c.refuseLarge(tag, ck, in.sizes[0]) {
		c.drop(in.buf)
		return nil
	}
	if err == nil && ck.Invalid > 0 && !c.invalid(tag, int(ck.Invalid), ck.Values(), ck.Why) {
		c.drop(in.buf)
		return nil
	}
	if err != nil {
		c.drop(in.buf)
		return c.refused(tag, err)
	}
	c.count.skipped.Add(uint64(ck.Skipped))
	g := c.g
	if ck.Clean() && c.src == nil {
		c.drop(in.buf)
		g.close(tag)
		ch := c.chunk(tag)
		ch.Compressed, ch.Compression = src[:len(src):len(src)], in.kind.String()
		ch.Events = int(ck.Events)
		return nil
	}
	out, err := c.siftAgain(tag, in, src)
	c.drop(in.buf)
	if err != nil {
		return err
	}
	if ck.Events == 0 {
		c.drop(out)
		c.addAck()
		return nil
	}
	g.close(tag)
	ch := c.chunk(tag)
	ch.Compressed, ch.Compression = out.b[:in.n:in.n], wire.Zstd.String()
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

// siftAgain sets the large entries aside, and compresses anew what stays. in.n is how long that is.
func (c *conn) siftAgain(tag string, in *sifting, src []byte) (*buffer, error) {
	r, err := c.inflaters.Open(in.kind, src)
	if err != nil {
		return nil, err
	}
	defer c.inflaters.Done()
	sink := &spool{c: c}
	if sink.buf, err = c.extra(bufferSize(int64(len(src)) + readSize)); err != nil {
		return nil, err
	}
	z, err := zstd.NewWriter(sink, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return nil, err
	}
	ck := wire.Check{Most: in.ck.Most}
	defer ck.Drop()
	now := c.s.now()
	var anew []byte
	set := setting{c: c, sizes: in.sizes, chunk: c.bare(tag)}
	defer set.drop()
	again := &sifting{
		c: c, r: r, kind: in.kind, from: len(src), buf: in.buf, ck: &ck,
		write: func(b []byte) error {
			anew = ck.Rewrite(anew[:0], b, now, c.src)
			_, err := z.Write(anew)
			return err
		},
		part: set.add, end: set.end,
	}
	err = again.sift()
	in.buf = again.buf
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		c.drop(sink.buf)
		return nil, err
	}
	in.n = sink.n
	return sink.buf, nil
}

// A spool is a buffer of the budget that grows.
type spool struct {
	c   *conn
	buf *buffer
	n   int
}

func (s *spool) Write(b []byte) (n int, err error) {
	if need := s.n + len(b); need > len(s.buf.b) {
		if s.buf, err = s.c.growExtra(s.buf, s.n, bufferSize(max(int64(need), 2*int64(s.n)))); err != nil {
			return 0, err
		}
	}
	s.n += copy(s.buf.b[s.n:], b)
	return len(b), nil
}

// A setting gathers the large events of a chunk, one at a time, and has each set aside.
type setting struct {
	c     *conn
	chunk *Chunk
	sizes []int64
	entry []byte
	taken int64
	done  func()
}

func (s *setting) add(b []byte, i int) error {
	if s.entry == nil {
		if err := s.begin(s.sizes[i]); err != nil {
			return err
		}
	}
	s.entry = append(s.entry, b[:min(len(b), cap(s.entry)-len(s.entry))]...)
	return nil
}

// begin waits for its turn: one large event is in memory at a time.
func (s *setting) begin(size int64) error {
	if size > asideMost {
		size = asideHead
	}
	c := s.c
	if c.s.LargeTurn != nil {
		s.done = c.s.LargeTurn(c.ctx)
	}
	s.taken = 2 * size // once more on its way to the disk
	c.s.mem.force(&c.hold, s.taken)
	c.s.pool.mu.Lock()
	c.s.pool.makeRoom()
	c.s.pool.mu.Unlock()
	s.entry = make([]byte, 0, size)
	return nil
}

func (s *setting) end(i int, size int64) error {
	err := s.c.aside(&LargeEvent{Chunk: s.chunk, Index: i, Entry: s.entry, Size: size})
	s.drop()
	return err
}

func (s *setting) drop() {
	if s.entry == nil {
		return
	}
	s.entry = nil
	s.c.s.mem.release(&s.c.hold, s.taken)
	if s.done != nil {
		s.done()
		s.done = nil
	}
}

// aside sets one large event aside, and tells it.
func (c *conn) aside(e *LargeEvent) error {
	e.Sec, e.Nsec = wire.TimeOf(e.Entry)
	what := "left out"
	if c.s.SetAside != nil {
		what = "set aside"
		if err := c.s.SetAside(c.ctx, e); err != nil {
			c.unstored(err)
			return errGone
		}
	}
	if !e.Whole() {
		what += fmt.Sprintf(", its first %d bytes", len(e.Entry))
	}
	c.count.large.Add(1)
	c.trouble(TooLargeEvent, Kept, e.Chunk.Tag, 1, fmt.Errorf("an event of %d bytes, the limit is %d: %s", e.Size, c.s.MaxEvent, what))
	return nil
}

// asideSpans sets the large entries of b aside, which has them as a whole.
func (c *conn) asideSpans(tag string, b []byte, spans []wire.Span) error {
	for i, l := range spans {
		if err := c.asideOne(tag, b[l.Start:l.End:l.End], i); err != nil {
			return err
		}
	}
	return nil
}

// asideOne sets a large entry aside that is in memory.
func (c *conn) asideOne(tag string, entry []byte, i int) error {
	if c.s.LargeTurn != nil {
		defer c.s.LargeTurn(c.ctx)()
	}
	e := &LargeEvent{Index: i, Entry: entry, Size: int64(len(entry)), Chunk: c.bare(tag)}
	if e.Size > asideMost {
		e.Entry = entry[:asideHead]
	}
	return c.aside(e)
}

// bare is the chunk of the message in progress without its entries.
func (c *conn) bare(tag string) *Chunk {
	o := &c.g.opt
	ch := &Chunk{Tag: tag, ID: o.ID, IDBin: o.IDBin, Own: o.Own}
	if c.g.sentTag != "" {
		ch.Sent = &Sent{Tag: c.g.sentTag}
	}
	return ch
}

// refuseLarge says whether a chunk with large entries is refused, which it tells.
func (c *conn) refuseLarge(tag string, ck *wire.Check, size int64) bool {
	if !c.ep.RefuseLarge {
		return false
	}
	c.count.refusedEvents.Add(uint64(ck.Values()))
	c.refuse(tag, faultf(TooLargeEvent, "an event of %d bytes, the limit is %d", size, c.s.MaxEvent))
	return true
}

// refused tells of a message that is refused. What ends the connection it returns.
func (c *conn) refused(tag string, err error) error {
	if faultOf(err) == nil {
		return err // memory: the server is closing, or the handler refused what came before
	}
	c.refuse(tag, err)
	return nil
}
