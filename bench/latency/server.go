// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/spillwaylog/spillway/bench/internal/daemon"
)

// A server is what is at the other end.
type server int

const (
	none      server = iota
	collector        // the real one
	stalled          // accepts connections and never reads
	deaf             // reads and never acks
	down             // nobody listens
)

var listening = regexp.MustCompile(`listening.*forward://([0-9.]+:[0-9]+)`)

// server starts one and returns how to end it and its address.
func (b *bench) server(s server, dir string) (stop func(), addr string, err error) {
	switch s {
	case collector:
		return startCollector(b.collector, dir)
	case stalled, deaf:
		behaviour := daemon.BehaviourNeverReads
		if s == deaf {
			behaviour = daemon.BehaviourNeverAcks
		}
		p, err := daemon.StartProcess(behaviour)
		if err != nil {
			return nil, "", err
		}
		return func() { p.Close() }, p.Addr, nil
	case down:
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, "", err
		}
		return func() {}, l.Addr().String(), l.Close()
	}
	return func() {}, "", nil
}

// startCollector has its journal on the measured disk, and forgets what it is sent.
func startCollector(path, dir string) (stop func(), addr string, err error) {
	cmd := exec.Command(path, "serve", "--listen", "forward://127.0.0.1:0", "--to", "discard:", "--data",
		filepath.Join(dir, "data"))
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
	lines := bufio.NewReader(stderr)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			stop()
			return nil, "", fmt.Errorf("the collector ended before it listened: %w", err)
		}
		if m := listening.FindStringSubmatch(line); m != nil {
			go func() { _, _ = io.Copy(os.Stderr, lines) }()
			return stop, m[1], nil
		}
	}
}
