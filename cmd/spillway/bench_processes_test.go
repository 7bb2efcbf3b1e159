// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/cmd/internal/processes"
)

// Every way, the collector's too, as a user runs them: all lines arrive.
func TestBenchProcesses(t *testing.T) {
	t.Setenv(asCommand, "1") // for the processes that it starts
	got := command(t, "", "bench", "processes", "--processes", "2", "--lines", "50", "--progress", "always", "--format",
		"json", "--dir", t.TempDir())
	if got.code != 0 || !strings.Contains(got.err, "10 of 10: collector, round 1 of 1, 0 of 2 processes have ended") {
		t.Fatalf("%+v", got)
	}
	var r processes.Report
	if err := json.Unmarshal([]byte(got.out), &r); err != nil || len(r.Results) != 10 {
		t.Fatal(err, got.out)
	}
	for _, x := range r.Results {
		if x.Way == "connect" {
			x.Found.Late = 0 // the article's server has a thread for each connection
		}
		if want := (processes.Found{Lines: 100}); x.Found != want {
			t.Errorf("%s: %+v", x.Way, x.Found)
		}
	}
	for flag, value := range map[string]string{"--way": "socket,pigeon", "--processes": "0"} {
		if got := command(t, "", "bench", "processes", flag, value); got.code != exitUsage ||
			!strings.Contains(got.err, flag) {
			t.Errorf("%+v", got)
		}
	}
}
