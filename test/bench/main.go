// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command bench measures the collector as a whole process against programs
// that do the least that could be called the same job.
//
//	go run ./test/bench [-rounds 5] [-events 4000000] [-only packed,acks]
//
// Absolute figures differ from machine to machine and from minute to minute;
// what counts are the ratios: all programs of a table run in turn, round by
// round, and the medians are compared. CPU is user and system time of the
// server process, from its start to its exit, as the kernel accounts it.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) > 2 && strings.HasPrefix(os.Args[1], "raw") {
		fail(raw(os.Args[1:]))
		return
	}
	rounds := flag.Int("rounds", 5, "runs of each program; the median is told")
	events := flag.Int("events", 4_000_000, "events in each run of the throughput tables")
	only := flag.String("only", "", "tables to run, separated by commas: packed, forward, message, gzip, acks, writes, idle, syslog, udp, lines; default: all")
	dir := flag.String("dir", ".", "where to put data: the disk that is measured")
	flag.Parse()

	work, err := os.MkdirTemp(*dir, "bench-")
	fail(err)
	defer os.RemoveAll(work)
	b := &bench{rounds: *rounds, events: *events, dir: work}
	fail(b.build())
	tables := []struct {
		name string
		run  func() error
	}{
		{"packed", func() error { return b.throughput(packed) }},
		{"forward", func() error { return b.throughput(forwardArray) }},
		{"message", func() error { return b.throughput(message) }},
		{"gzip", func() error { return b.throughput(gzipped) }},
		{"acks", b.acks},
		{"writes", b.writes},
		{"idle", b.idle},
		{"syslog", b.syslog},
		{"udp", b.udp},
		{"lines", b.lines},
	}
	for _, t := range tables {
		if *only == "" || slices.Contains(strings.Split(*only, ","), t.name) {
			if err := t.run(); err != nil {
				os.RemoveAll(work)
				fail(fmt.Errorf("%s: %w", t.name, err))
			}
		}
	}
}

// raw is this program as the server that others are measured against.
func raw(args []string) error {
	if args[0] == "raw" {
		return rawServer(args[1])
	}
	size, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	at, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	return rawAckServer(args[1], size, at, args[0] == rawTogether)
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is what all tables share.
type bench struct {
	rounds, events int
	dir            string
	spillway       string // the collector's binary
	self           string // this program's, for the raw server
	runs           int    // for names of fresh directories
}

// build makes the collector as its users would have it.
func (b *bench) build() error {
	b.spillway = filepath.Join(b.dir, "spillway")
	out, err := exec.Command("go", "build", "-o", b.spillway,
		"github.com/spillwaylog/spillway/cmd/spillway").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	b.self, err = os.Executable()
	return err
}

// fresh returns a new empty directory.
func (b *bench) fresh() (string, error) {
	b.runs++
	dir := filepath.Join(b.dir, fmt.Sprintf("run%d", b.runs))
	return dir, os.Mkdir(dir, 0o700)
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if len(s) == 0 {
		return 0
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
