// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"
	"math"
	"time"

	"github.com/dustin/go-humanize"
)

// Progress is how a run goes: what happened in the last second, and what is behind.
type Progress struct {
	Elapsed time.Duration // since the first event was due
	Warm    bool          // the warm-up is over
	Offered float64       // events a second; 0 without a rate
	Sent    float64       // events a second
	Acked   float64       // events a second
	Ack     bool          // there are acks
	Backlog int64         // events that are due and not sent
	Flying  int64         // messages without an ack
}

// String is one line.
func (p Progress) String() string {
	phase := ""
	if !p.Warm {
		phase = " warming up"
	}
	offered := "as many as it takes"
	if p.Offered > 0 {
		offered = grouped(p.Offered) + "/s offered"
	}
	s := fmt.Sprintf("%4.0fs%s: %s, %s/s sent", p.Elapsed.Seconds(), phase, offered, grouped(p.Sent))
	if p.Ack {
		s += fmt.Sprintf(", %s/s acked, %d messages in flight", grouped(p.Acked), p.Flying)
	}
	if p.Offered > 0 {
		s += fmt.Sprintf(", %s events behind", grouped(float64(p.Backlog)))
	}
	return s
}

// grouped writes a count with a comma at each thousand.
func grouped(v float64) string { return humanize.Comma(int64(math.RoundToEven(v))) }
