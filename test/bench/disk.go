// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// writes prints how many bytes reach the disk for an event that is synced
// alone. The disk is shared with all else that runs, so the least of the rounds
// is told too.
func (b *bench) writes() error {
	const events = 1000
	var perEvent []float64
	for range b.rounds {
		srv, err := b.startSpillway("discard:")
		if err != nil {
			return err
		}
		l := load{shape: single, messages: events, connections: 1, window: 1}
		if err := l.send(srv.addr); err != nil { // segments are allocated now
			return err
		}
		before, err := b.written()
		if err != nil {
			return err
		}
		if err := l.send(srv.addr); err != nil {
			return err
		}
		after, err := b.written()
		if err != nil {
			return err
		}
		if _, err := srv.stop(); err != nil {
			return err
		}
		perEvent = append(perEvent, float64(after-before)/events)
	}
	least := perEvent[0]
	for _, v := range perEvent {
		least = min(least, v)
	}
	fmt.Printf("\none event, synced, at a time: bytes written to the disk: median %.0f, least %.0f\n", median(perEvent),
		least)
	return nil
}

// written returns the bytes that were ever written to the disk that b.dir lies
// on, from the kernel's statistics.
func (b *bench) written() (int64, error) {
	var st unix.Stat_t
	if err := unix.Stat(b.dir, &st); err != nil {
		return 0, err
	}
	dev := uint64(st.Dev)
	path := fmt.Sprintf("/sys/dev/block/%d:%d/stat", unix.Major(dev), unix.Minor(dev))
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	const sectorsWritten = 6
	n, err := strconv.ParseInt(strings.Fields(string(text))[sectorsWritten], 10, 64)
	return n * 512, err
}

// idle prints how much memory idle connections take.
func (b *bench) idle() error {
	const connections = 10_000
	srv, err := b.startSpillway("discard:")
	if err != nil {
		return err
	}
	before, err := resident(srv)
	if err != nil {
		return err
	}
	conns, err := dialMany(srv.addr, connections)
	if err != nil {
		return err
	}
	after, err := resident(srv)
	if err != nil {
		return err
	}
	for _, c := range conns {
		c.Close()
	}
	if _, err := srv.stop(); err != nil {
		return err
	}
	fmt.Printf("\n%d idle connections, one message each before: %.1f MB resident, %.1f MB without them\n", connections,
		after/1e6, before/1e6)
	return nil
}

func resident(s *server) (float64, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid), "statm"))
	if err != nil {
		return 0, err
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	return float64(pages * os.Getpagesize()), err
}
