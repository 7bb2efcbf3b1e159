// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"sync"

	"github.com/spillwaylog/spillway/internal/output"
)

// inbox is where outputs leave what they have finished. Run collects it, all at once.
type inbox struct {
	mu     sync.Mutex
	done   []*flight
	gen    int    // of the output whose results count; 0: there was none yet
	urgent bool   // one of done has an error, or asks for a commit
	left   int    // of those awaited that are not done
	awake  func() // ends the wait that runs; nil: none runs
}

// open returns the number of an output that is about to be opened. Results of those before it do
// not count any more.
func (b *inbox) open() (gen int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gen++
	return b.gen
}

// close says that the output is given up, and returns what it finished in time.
func (b *inbox) close() []*flight {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gen++
	done := b.done
	b.done, b.urgent = nil, false
	return done
}

// counts says whether an output is the one that was opened last, and not given up.
func (b *inbox) counts(gen int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return gen == b.gen
}

// put adds a finished flight. It reports false if its output was given up.
func (b *inbox) put(x *flight, r output.Result) bool {
	b.mu.Lock()
	if x.gen != b.gen {
		b.mu.Unlock()
		return false
	}
	x.result = r
	b.done = append(b.done, x)
	b.left--
	b.urgent = b.urgent || r.Err != nil || r.Soon
	var awake func()
	if b.left == 0 || b.urgent {
		awake, b.awake = b.awake, nil
	}
	b.mu.Unlock()
	if awake != nil {
		awake()
	}
	return true
}

// take returns what is finished. The caller gives room for the next.
func (b *inbox) take(room []*flight) []*flight {
	b.mu.Lock()
	defer b.mu.Unlock()
	done := b.done
	b.done, b.urgent = room[:0], false
	return done
}

// listen has awake called when so many more flights than now are done, or something is urgent. It
// reports false if that is so already.
func (b *inbox) listen(inFlight, left int, awake func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	more := inFlight - len(b.done) - left
	if b.urgent || more <= 0 {
		return false
	}
	b.left, b.awake = more, awake
	return true
}

func (b *inbox) deafen() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.awake = nil
}
