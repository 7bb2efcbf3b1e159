// SPDX-License-Identifier: Apache-2.0

package follow

import "github.com/spillwaylog/spillway/forward"

// spares are flights that were recycled. Together they keep few bytes: in a window of many small
// chunks the flight that gets a large one is another each time.
type spares struct {
	all   []*flight
	bytes int64 // of their buffers
}

// take returns a flight, nil if there is none.
func (s *spares) take() *flight {
	n := len(s.all)
	if n == 0 {
		return nil
	}
	x := s.all[n-1]
	s.all[n-1] = nil
	s.all = s.all[:n-1]
	s.bytes -= x.room()
	return x
}

// put keeps a flight, and its buffers unless all would have more than most bytes then.
func (s *spares) put(x *flight, most int64) {
	if s.bytes+x.room() > most {
		x.data, x.entries, x.own = nil, nil, forward.Chunk{}
	}
	s.bytes += x.room()
	s.all = append(s.all, x)
}

// room is how many bytes its buffers have.
func (x *flight) room() int64 { return int64(cap(x.data) + cap(x.entries)) }
