// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
)

// TestIdleConnections holds 10,000 connections open: the bar is 100 MB resident, before and after
// one message on each.
func TestIdleConnections(t *testing.T) {
	const connections, bar = 10_000, 100 << 20
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	needs.Have(t, limit.Max >= connections+200, "10,000 connections need as many open files; the limit is %d",
		limit.Max)

	s, out := newSetup(t)
	s.bin = lean
	c := startCollector(t, s)
	empty := resident(t, c)
	conns := make([]net.Conn, connections)
	for i := range conns {
		conns[i] = c.dialFrom(fmt.Sprintf("127.0.2.%d", 1+i%200))
	}
	first := c.lane()
	id := newID()
	first.send(packed("idle", id, named("alive").append(nil)), id) // all before it are accepted
	idle := resident(t, c)
	message := packed("idle", "", named("one each").append(nil))
	for _, conn := range conns {
		_, err := conn.Write(message)
		must(t, err)
	}
	waitLines(t, out, connections+1)
	after := resident(t, c)
	figure(t, "resident memory: %.1f MB alone, %.1f MB with %d idle connections, %.1f MB after one message on each",
		float64(empty)/1e6, float64(idle)/1e6, connections, float64(after)/1e6)
	if idle > bar {
		t.Errorf("%d bytes resident with %d idle connections, want at most %d", idle, connections, bar)
	}
}

// resident is the resident memory of the process in bytes.
func resident(t testing.TB, c *collector) int64 { return status(t, c, "VmRSS:") }

// status is a figure of the process in bytes.
func status(t testing.TB, c *collector, name string) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	must(t, err)
	_, rest, ok := bytes.Cut(b, []byte(name))
	var kb int64
	if _, err := fmt.Sscan(string(rest), &kb); err != nil || !ok {
		t.Fatalf("no %s %v", name, err)
	}
	return kb << 10
}
