// SPDX-License-Identifier: Apache-2.0

package output

import (
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/urls"
)

// TestBackoff: the pause that a URL does not give gives way to the one that it does.
func TestBackoff(t *testing.T) {
	for _, tt := range []struct {
		query       string
		owner       time.Duration
		least, most time.Duration
	}{
		{"", 0, 100 * time.Millisecond, 10 * time.Second},
		{"", 200 * time.Millisecond, 200 * time.Millisecond, 10 * time.Second},
		{"?min_backoff=1s", 200 * time.Millisecond, time.Second, 10 * time.Second},
		{"?min_backoff=1m", 0, time.Minute, time.Minute},
		{"?max_backoff=50ms", 200 * time.Millisecond, 50 * time.Millisecond, 50 * time.Millisecond},
		{"?max_backoff=1m", 0, 100 * time.Millisecond, time.Minute},
		{"?min_backoff=1s&max_backoff=1s", 0, time.Second, time.Second},
	} {
		for _, end := range []string{"file:///x", "forward://h"} {
			u, err := urls.Parse(end + tt.query)
			must(t, err)
			p, err := Read(u, &Owner{Backoff: tt.owner})
			must(t, err)
			if p.backoff.min != tt.least || p.backoff.max != tt.most {
				t.Errorf("%s%s after %v: %v to %v, want %v to %v", end, tt.query, tt.owner, p.backoff.min,
					p.backoff.max, tt.least, tt.most)
			}
		}
	}
}
