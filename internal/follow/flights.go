// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/fifo"
	"github.com/spillwaylog/spillway/internal/output"
)

// flights are the records between the finished prefix and the end of what was read, and memory for
// the next ones.
type flights struct {
	*core
	window   fifo.Queue[*flight]
	bytes    int64     // of what is in the window
	inFlight int       // of the window; the others are done
	spare    []*flight // to be used again
	room     int64     // buffers of the window's flights and the spare ones
}

// flightKeeps is the largest buffer that a flight keeps for its next record.
const flightKeeps = 1 << 20

// isFull says that no more may be submitted before something is done.
func (s *flights) isFull() bool {
	return s.inFlight > 0 && (s.window.Len() >= s.cfg.Chunks || s.bytes >= s.cfg.Bytes)
}

func (s *flights) newFlight() *flight {
	if n := len(s.spare); n > 0 {
		x := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return x
	}
	x := &flight{}
	x.land = func(r output.Result) { // what the output calls
		x.endTurn()
		if !s.inbox.put(x, r) && x.held != nil { // the output was given up, and did not say so in time
			x.held.Release()
		}
	}
	return x
}

// recycle gives a flight's memory back.
func (s *flights) recycle(x *flight) {
	if x.held != nil {
		x.held.Release()
		x.own = forward.Chunk{Tag: x.own.Tag} // it may share the bytes
	}
	x.endTurn()
	x.chunk, x.held, x.result, x.bytes, x.done, x.broken = nil, nil, output.Result{}, 0, false, false
	x.part, x.deadly, x.first, x.turn, x.number, x.long = false, false, 0, nil, 0, nil
	x.idle, x.sifted, x.filtered, x.refused, x.failed = false, false, 0, 0, nil
	x.learnt = 0
	// Large records come to all flights in turn, and each would keep room for them.
	if n := x.size(); n > flightKeeps || s.room > 2*s.cfg.Bytes {
		s.room -= n
		x.data, x.entries, x.own = nil, nil, forward.Chunk{Tag: x.own.Tag}
	}
	if len(s.spare) < s.cfg.Chunks {
		s.spare = append(s.spare, x)
	} else {
		s.room -= x.size()
	}
}

// push puts a flight at the end of the window.
func (s *flights) push(x *flight) {
	s.window.Push(x)
	s.bytes += x.bytes
}

// pop takes the first flight of the window.
func (s *flights) pop() *flight {
	x := s.window.Pop()
	s.bytes -= x.bytes
	return x
}
