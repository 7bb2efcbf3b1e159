// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/journal"
)

// at is the moment of the pictures below.
var at = time.Date(2026, 11, 21, 10, 1, 0, 0, time.UTC)

// pictures are two looks at a collector with two inputs and two outputs, of which one is broken, a
// minute apart.
func pictures() (before, now collector.Stats) {
	picture := func(n int64) collector.Stats {
		in := collector.Counts{
			In: 1000*n + 3, Stored: 1000 * n, Repeated: 1, Invalid: 2, Chunks: 10*n + 1,
			StoredChunks: 10 * n, RepeatedChunks: 1,
		}
		other := collector.Counts{RefusedMessages: n - 1}
		all := in
		all.RefusedMessages = n - 1
		return collector.Stats{
			Counts: all,
			Inputs: []collector.InputStats{
				{
					Name: "forward://127.0.0.1:24224", URL: "forward://127.0.0.1:24224", Counts: in, Bytes: 130_000 * n,
					Connections: 2,
				},
				{Name: "forward+unix:///run/s.sock", URL: "forward+unix:///run/s.sock", Counts: other, Bytes: 7 * n},
			},
			Outputs: []collector.OutputStats{
				{Name: "stdout:", URL: "stdout:", Found: 50, Out: 1000*n + 50, Bytes: 100_000 * n},
				{
					Name: "file:///var/log/x.jsonl", URL: "file:///var/log/x.jsonl", Out: 400, Bytes: 40_000,
					Dropped: map[string]int64{"unreadable": 1},
					Behind:  1000*n - 401, BehindBytes: 90_000 * n,
					BehindFor: 59*time.Second + time.Duration(n)*time.Second,
					Failure: &collector.Failure{
						Since: at.Add(-90 * time.Second), Tries: 450,
						Pause: 200 * time.Millisecond, Err: errors.New("no space left on device"),
					},
				},
			},
			Journal: journal.Stats{Used: 90_000 * n, MaxBytes: 4 << 30, Bytes: 32 << 20},
			Repeats: collector.RepeatsStats{Chunks: int(10 * n), MaxChunks: 786_432, Bytes: 51_232, Age: time.Hour},
		}
	}
	return picture(1), picture(3)
}

// TestStatusLine: the line of a minute, as it is.
func TestStatusLine(t *testing.T) {
	before, now := pictures()
	s := &status{before: before, now: now, at: at, period: time.Minute}
	var b bytes.Buffer
	s.log(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(groups []string,
		a slog.Attr,
	) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})))
	const want = `level=WARN msg=status code=status period=1m0s in=2000 in_bytes=260014 refused_messages=2` +
		` output0.url=stdout: output0.out=2000 output0.bytes=200000 output0.behind=0 output0.behind_bytes=0 output0.behind_for=0s` +
		` output1.url=file:///var/log/x.jsonl output1.out=0 output1.bytes=0 output1.behind=2599 output1.behind_bytes=270000 output1.behind_for=1m2s` +
		` journal.used=270000 journal.limit=4294967296 connections=2` +
		` wrong="file:///var/log/x.jsonl since 2026-11-21T09:59:30Z (1m30s): no space left on device"` + "\n"
	if got := b.String(); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

// TestLiveLine: the same on a terminal.
func TestLiveLine(t *testing.T) {
	before, now := pictures()
	s := &status{before: before, now: now, at: at, period: time.Second}
	const want = `WRONG for 1m30s, x.jsonl: no space left on device` +
		` | events in 3,003, 2,000/s | stdout: out 3,050, 2,000/s, nothing behind` +
		` | x.jsonl out 400, 0/s, behind 2,599 (264 KiB, 1m2s)` +
		` | journal 264 KiB of 4.0 GiB | 2 connections`
	if got := s.line(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	now.Outputs[0].Name, now.Counting = "file:/a/\x1b[2J\nü", true
	if got := s.line(); strings.ContainsAny(got, "\x1b\nü") || !strings.Contains(got, "| ?[2J?? out") {
		t.Errorf("%q", got)
	}
}
