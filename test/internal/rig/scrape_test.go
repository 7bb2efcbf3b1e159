// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"strings"
	"testing"
)

// TestScrapeCheck: the laws are laws.
func TestScrapeCheck(t *testing.T) {
	const right = `# HELP x y
spillway_counting 0
spillway_input_events_total{input="a"} 10
spillway_input_event_fates_total{fate="stored",input="a"} 8
spillway_input_event_fates_total{fate="repeated",input="a"} 2
spillway_input_chunks_total{input="a"} 2
spillway_input_chunk_fates_total{fate="stored",input="a"} 2
spillway_output_found_events{output="o"} 1
spillway_output_events_total{output="o"} 4
spillway_output_dropped_events_total{output="o",reason="behind"} 2
spillway_output_behind_events{output="o"} 3
spillway_output_behind_bytes{output="o"} 300
`
	for _, tt := range []struct{ old, new, want string }{
		{"", "", ""},
		{
			`fate="repeated",input="a"} 2`, `fate="repeated",input="a"} 3`,
			"input a: 10 events came, and something became of 11",
		},
		{`chunks_total{input="a"} 2`, `chunks_total{input="a"} 3`, "3 chunks came"},
		{`reason="behind"} 2`, `reason="behind"} 1`, "output o: there were 9 events for it, and something became of 8"},
		{`"} 300`, `"} 0`, "output o: 3 events are behind, and no bytes"},
		{"counting 0", "counting 1", "still being counted"},
		{`events_total{input="a"} 10`, "events_total{input=\"a\"} 12\nspillway_journal_failing 1", ""},
	} {
		s, err := ParseScrape(strings.NewReader(strings.Replace(right, tt.old, tt.new, 1)))
		Must(t, err)
		if err := s.check(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.new, err, tt.want)
		}
	}
}
