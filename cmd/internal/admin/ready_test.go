// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/collector"
)

func TestWatchdog(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	w := &watchdog{stall: time.Minute}
	for _, tt := range []struct {
		name          string
		at            time.Duration // of the look
		out, behind   int64
		waits         time.Duration // its oldest event
		dead, dropped int64
		journal       time.Duration // it has failed for so long
		want          []string
	}{
		{name: "at the start, with an old backlog", behind: 9, waits: time.Hour},
		{name: "nothing moved yet", at: 59 * time.Second, behind: 9, waits: time.Hour},
		{
			name: "nor then", at: 60 * time.Second, behind: 9, waits: time.Hour,
			want: []string{"output a: nothing has moved for 1m0s, 9 events wait"},
		},
		{name: "it moves", at: 61 * time.Second, out: 1, behind: 9, waits: time.Hour},
		{name: "a look an hour later, work since 10 s", at: time.Hour, out: 1, behind: 1, waits: 10 * time.Second},
		{
			name: "the same work", at: time.Hour + 50*time.Second, out: 1, behind: 1, waits: time.Minute,
			want: []string{"output a: nothing has moved for 1m0s, 1 events wait"},
		},
		{name: "given up is moved", at: time.Hour + 51*time.Second, out: 1, behind: 1, waits: time.Minute, dropped: 1},
		{name: "set aside is moved", at: 2 * time.Hour, out: 1, behind: 1, waits: time.Hour, dropped: 1, dead: 1},
		{name: "idle", at: 4 * time.Hour, out: 1, dropped: 1, dead: 1},
		{name: "still idle", at: 5 * time.Hour, out: 1, dropped: 1, dead: 1},
		{name: "work after that", at: 6 * time.Hour, out: 1, behind: 3, waits: 59 * time.Second, dropped: 1, dead: 1},
		{
			name: "the journal", at: 7 * time.Hour, out: 4, dropped: 1, dead: 1, journal: time.Minute,
			want: []string{"journal: it has taken nothing for 1m0s"},
		},
		{name: "the journal, a little", at: 7 * time.Hour, out: 4, dropped: 1, dead: 1, journal: time.Second},
	} {
		s := collector.Stats{Outputs: []collector.OutputStats{{
			Name: "a", Out: tt.out, Behind: tt.behind, BehindFor: tt.waits, DeadLettered: tt.dead,
			Dropped: map[string]int64{"behind": tt.dropped},
		}}}
		now := start.Add(tt.at)
		if tt.journal > 0 {
			s.Failure = &collector.Failure{Since: now.Add(-tt.journal), Err: errors.New("no space left")}
		}
		if got := w.look(&s, now); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
