// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"fmt"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/collector"
)

// A watchdog looks whether everything moves. It keeps what it saw at the look before.
type watchdog struct {
	stall time.Duration

	mu   sync.Mutex
	seen map[string]progress // by the name of an output
}

// progress is how far an output was, and since when it has been there.
type progress struct {
	passed int64 // events
	since  time.Time
}

// look returns what has had work and has not moved for too long. An output stands still for as long
// as two looks saw it at one place, but not for longer than its oldest event has waited: so looks
// may be seldom.
func (w *watchdog) look(s *collector.Stats, now time.Time) (wrong []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := make(map[string]progress, len(s.Outputs))
	for i := range s.Outputs {
		o := &s.Outputs[i]
		if o.Removed {
			continue
		}
		p := progress{o.Passed(), now}
		if before, ok := w.seen[o.Name]; ok && before.passed == p.passed && o.Behind > 0 {
			p.since = before.since
		}
		seen[o.Name] = p
		if still := min(now.Sub(p.since), o.BehindFor); still >= w.stall {
			wrong = append(wrong, fmt.Sprintf("output %s: nothing has moved for %v, %d events wait", o.Name,
				still.Round(time.Second), o.Behind))
		}
	}
	w.seen = seen
	if f := s.Failure; f != nil && now.Sub(f.Since) >= w.stall {
		wrong = append(wrong, fmt.Sprintf("journal: it has taken nothing for %v", now.Sub(f.Since).Round(time.Second)))
	}
	return wrong
}
