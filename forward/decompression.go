// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"io"
	"runtime"

	"github.com/spillwaylog/spillway/forward/internal/budget"
	"github.com/spillwaylog/spillway/forward/internal/wire"
	"github.com/spillwaylog/spillway/msgpack"
)

// How this file is organised. What is compressed may become a thousand times as long. Beyond
// maxLater it is never in memory as a whole: run goes over it in a window that holds little more
// than the entry in progress, and the chunk is handed on as it came, compressed. Only where some of
// its entries cannot stay it is gone over a second time, and what stays is compressed anew.
//
//	compressed ──► decompressor ──► │ looked at │ in progress │ ──► more
//	                                └────────── window ───────┘
//	                     1st time: let go   let go, if it is too large
//	                     2nd time: kept     set aside

// What refuses packed entries.
var (
	errBrokenOff = errors.New("the packed entries break off within one")
	errAlien     = errors.New("there is not one entry in it")
)

// maxAlien is how much of what is no entry is looked at before the rest is not even decompressed.
const maxAlien = 4096

// inflateTurn is how much is decompressed before others get their turn: about a millisecond.
const inflateTurn = 1 << 20

// lookStep is how much is decompressed before it is looked at: little enough to be still in the
// cache, and so much that few entries are cut by its end.
const lookStep = 128 << 10

// decompression is one time over the entries of a compressed chunk.
type decompression struct {
	c     *outlet
	r     io.Reader
	scan  *msgpack.Scanner // for the entries
	kind  wire.Compression
	from  int            // compressed bytes, for messages
	buf   *budget.Buffer // the window
	n     int            // of it in use
	total int64          // decompressed so far
	ck    *wire.Check
	sizes []int64 // of the large entries

	// The second time:
	write func(b []byte) error          // takes entries that are whole; nil: it is the first time
	part  func(b []byte, i int) error   // takes a part of large entry i
	end   func(i int, size int64) error // of it
}

// run goes on until the compressed bytes end. The entries in the window are looked at.
func (s *decompression) run() error {
	limit, err := s.c.s.maxDecompressed, error(nil)
	if s.total > limit {
		return s.bomb()
	}
	for turn := s.total; ; {
		if err := s.pass(); err != nil {
			return err
		}
		looked := s.n
		for err = nil; err == nil && s.n-looked < lookStep; {
			if s.n == len(s.buf.B) {
				if s.buf, err = s.c.growExtra(s.buf, s.n,
					budget.SizeOf(int64(s.n)+max(lookStep, int64(s.n)/4))); err != nil {
					return err
				}
			}
			var k int
			k, err = s.r.Read(s.buf.B[s.n:min(len(s.buf.B), looked+lookStep)])
			s.n += k
			s.total += int64(k)
			if s.total > limit {
				return s.bomb()
			}
		}
		if s.total-turn > inflateTurn {
			turn = s.total
			runtime.Gosched()
		}
		if bad := s.ck.Run(s.buf.B[:s.n], wire.NoLimit, s.scan, limit); bad != nil {
			return wire.ScanFault(bad, wire.FaultInvalidChunk)
		}
		if s.ck.Odd > maxAlien && s.ck.Alien() {
			return &fault{PeerInvalidChunk, errAlien}
		}
		if errors.Is(err, io.EOF) {
			if s.ck.BrokenOff(s.n) {
				return &fault{PeerInvalidChunk, errBrokenOff}
			}
			return s.pass()
		}
		if err != nil {
			return &fault{PeerCorrupt, err}
		}
	}
}

func (s *decompression) bomb() error {
	return faultf(PeerBomb, "more than %d bytes from %d compressed ones", s.c.s.maxDecompressed, s.from)
}

// pass lets go of the entries that are complete, and of one in progress that is too large already.
func (s *decompression) pass() error {
	ck, b := s.ck, s.buf.B
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

// A spool is a buffer of the budget that grows.
type spool struct {
	c   *outlet
	buf *budget.Buffer
	n   int
}

func (s *spool) Write(b []byte) (n int, err error) {
	if need := s.n + len(b); need > len(s.buf.B) {
		if s.buf, err = s.c.growExtra(s.buf, s.n, budget.SizeOf(max(int64(need), 2*int64(s.n)))); err != nil {
			return 0, err
		}
	}
	s.n += copy(s.buf.B[s.n:], b)
	return len(b), nil
}
