// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/cmd/internal/load"
)

// TestBenchForward sends in every mode to a collector with a file, which must have each event once.
func TestBenchForward(t *testing.T) {
	url, _, stop := serve(t)
	out := filepath.Join(t.TempDir(), "out.json")
	args := []string{
		"bench", "forward", "--to", url, "--mode", "message,forward,packed", "--compress", "none,zstd", "--fresh",
		"--ack", "--rate", "3000,0", "--batch", "7",
		"--depth", "9", "--connections", "2", "--duration", "200ms", "--warmup", "20ms", "--drain", "1m", "--format",
		"json", "--out", out,
		"--pid", fmt.Sprint(os.Getpid()), "--progress", "always",
	}
	want := map[int64]int{} // how many runs have sent a number
	var total int64
	for tries := 1; ; tries++ {
		got := command(t, "", args...)
		if got.code != 0 || got.out != "" || !strings.Contains(got.err, "run 8 of 8: packed zstd") {
			t.Fatalf("%+v", got)
		}
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		var report load.Report
		if err := json.Unmarshal(text, &report); err != nil {
			t.Fatal(err)
		}
		if report.Schema != load.Schema || len(report.Runs) != 8 || report.To != url {
			t.Fatalf("%+v", report)
		}
		idle := 0 // runs in all of which the machine was busy elsewhere
		for _, r := range report.Runs {
			if r.Total.Events == 0 {
				idle++
			}
			if r.Total.Acked != r.Total.Messages {
				t.Errorf("%+v", r)
			}
			total += r.Total.Events
			for n := range r.Total.Events {
				want[n]++
			}
		}
		if idle == 0 {
			break
		}
		if tries == 10 {
			t.Fatalf("%+v", report)
		}
	}
	lines := bufio.NewScanner(strings.NewReader(stop()))
	var count int64
	for lines.Scan() {
		var e struct{ Seq int64 }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%v in %s", err, lines.Bytes())
		}
		want[e.Seq]--
		count++
	}
	for n, missing := range want {
		if missing != 0 {
			t.Fatalf("of number %d, %d are missing; %d of %d events came", n, missing, count, total)
		}
	}
}

// TestBenchForwardKeeps sees that an earlier report stays if there is no new one, and leaves
// nothing behind if there is.
func TestBenchForwardKeeps(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.txt")
	earlier := strings.Repeat("earlier ", 1000)
	if err := os.WriteFile(out, []byte(earlier), 0o600); err != nil {
		t.Fatal(err)
	}
	got := command(t, "", "bench", "forward", "--to", "forward://127.0.0.1:1", "--out", out)
	if text, err := os.ReadFile(out); got.code != 1 || err != nil || string(text) != earlier {
		t.Fatalf("%+v: %v, %q", got, err, text)
	}
	url, _, stop := serve(t)
	defer stop()
	got = command(t, "", "bench", "forward", "--to", url, "--mode", "message", "--rate", "1000", "--duration", "50ms",
		"--warmup", "0s", "--out", out)
	if text, err := os.ReadFile(out); got.code != 0 || err != nil || strings.Contains(string(text), "earlier") ||
		!strings.Contains(string(text), "KEPT UP") {
		t.Fatalf("%+v: %v, %q", got, err, text)
	}
}

func TestBenchForwardFormats(t *testing.T) {
	url, _, stop := serve(t)
	records := filepath.Join(t.TempDir(), "records.jsonl")
	if err := os.WriteFile(records, []byte("{\"user\":\"ada\"}\n{\"user\":\"bob\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string]string{"table": "KEPT UP", "svg": "</svg>"} {
		for range 5 { // in one of them the machine may be busy elsewhere all the time
			got := command(t, "", "bench", "forward", "--to", url, "--rate", "1000", "--batch", "2", "--duration",
				"100ms", "--warmup", "0s", "--ack", "--events", records, "--format", format, "--tag", format)
			if got.code != 0 || got.err != "" || !strings.Contains(got.out, want) {
				t.Errorf("%s: %+v", format, got)
			}
		}
	}
	if out := stop(); !strings.Contains(out, `"tag":"svg","seq":0,"user":"ada"}`) ||
		!strings.Contains(out, `"tag":"table","seq":1,"user":"bob"}`) {
		t.Error(out)
	}
}

func TestBenchForwardRefuses(t *testing.T) {
	dir := t.TempDir()
	pid := filepath.Join(dir, "pid")
	if err := os.WriteFile(pid, []byte("none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		code int
		want string
		args []string
	}{
		{1, "connection refused", []string{"--to", "forward://127.0.0.1:1"}},
		{2, "one host", []string{"--to", "forward://a,b"}},
		{2, "cannot send there", []string{"--to", "discard:"}},
		{2, "unknown parameter", []string{"--to", "forward://a?speed=1"}},
		{2, "keepalive=false", []string{"--to", "forward://a?keepalive=false"}},
		{2, "must be one of", []string{"--mode", "json"}},
		{2, "cannot be compressed", []string{"--mode", "forward", "--compress", "gzip"}},
		{1, "no process number", []string{"--pid-file", pid}},
		{1, "no records", []string{"--events", os.DevNull}},
		{2, "at least 40", []string{"--size", "10"}},
		{2, "a rate of -5 events", []string{"--rate=-5"}},
	} {
		got := command(t, "", append([]string{"bench", "forward"}, tt.args...)...)
		if got.code != tt.code || !strings.Contains(got.err, tt.want) || got.out != "" {
			t.Errorf("%q: %+v", tt.args, got)
		}
	}
}

func TestBenchSweep(t *testing.T) {
	runs, to, err := (&benchForwardCmd{
		To: "forward://localhost", Rate: []float64{0}, Sweep: true, Batch: 500,
		Ack: true,
	}).runs(&streams{})
	if err != nil || to != "forward://localhost" {
		t.Fatal(to, err)
	}
	seen := map[string]int{}
	for _, o := range runs {
		seen[fmt.Sprintf("%s %s ×%d ack=%t", o.Mode, o.Compress, o.Batch, o.Ack)]++
	}
	for _, shape := range []string{
		"message none ×0 ack=true", "forward none ×500 ack=true",
		"packed none ×500 ack=true", "packed gzip ×500 ack=true",
	} {
		if seen[shape] != len(articleRates) {
			t.Errorf("%d runs of %s: %v", seen[shape], shape, seen)
		}
	}
	if len(runs) != 4*len(articleRates) || runs[0].Rate != 400_000 || runs[11].Rate != 2_600_000 || runs[12].Rate != 0 {
		t.Errorf("%d runs", len(runs))
	}
	runs, _, err = (&benchForwardCmd{
		To: "forward://localhost", Rate: []float64{5}, Sweep: true,
		Mode: []string{"forward"},
	}).runs(&streams{})
	if err != nil || len(runs) != 1 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
}
