// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"sync"
	"time"
)

// A Turn lets the large events of a process be in memory one after another: a line may take six
// times what its event does, and each output makes its own. Nothing waits for ever: what holds the
// turn for longer than turnPatience while others wait, such as an output that hangs, goes on
// without it. The zero value is free.
type Turn struct {
	mu   sync.Mutex
	over chan struct{} // closed when the present turn is over; nil: there is none
}

// turnPatience is how long others wait for one turn to end.
const turnPatience = 10 * time.Second

// Take waits for a turn, and returns what ends it, which may be called more than once. It returns
// at once when ctx is done.
func (t *Turn) Take(ctx context.Context) (done func()) {
	patience := time.NewTimer(turnPatience)
	defer patience.Stop()
	for {
		mine := make(chan struct{})
		over := t.begin(mine, nil)
		if over == nil {
			return func() { t.end(mine) }
		}
		select {
		case <-over:
		case <-ctx.Done():
			return func() {}
		case <-patience.C:
			if t.begin(mine, over) == nil {
				return func() { t.end(mine) }
			}
			patience.Reset(turnPatience)
		}
	}
}

// begin makes mine the present turn if there is none, or if it is the one that took too long. Else
// it returns the present one.
func (t *Turn) begin(mine, late chan struct{}) (over chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over != nil && t.over != late {
		return t.over
	}
	t.over = mine
	return nil
}

func (t *Turn) end(mine chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-mine:
		return
	default:
	}
	close(mine)
	if t.over == mine {
		t.over = nil
	}
}
