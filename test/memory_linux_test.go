// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
)

// TestMemoryBudget has many connections send large chunks that never end, while a good client with
// small ones goes on. All connections together stay within the budget.
func TestMemoryBudget(t *testing.T) {
	const budget = 64 << 20
	s, out := newSetup(t)
	s.bin = lean
	s.args = []string{"--memory", fmt.Sprint(budget), "--max-chunk", "32MiB"}
	c := startCollector(t, s)
	before := resident(t, c)

	var hogs sync.WaitGroup
	var conns []net.Conn
	piece := make([]byte, 1<<20)
	for i := range 20 {
		conn := c.dialFrom(fmt.Sprintf("127.0.3.%d", i+1))
		conns = append(conns, conn)
		hogs.Go(func() {
			// A bin of 30 MiB whose last byte never comes.
			_, _ = conn.Write([]byte{0x92, 0xa1, 't', 0xc6, 0x01, 0xe0, 0x00, 0x00}) //nolint:errcheck // the collector may cut it off
			for range 29 {
				if _, err := conn.Write(piece); err != nil {
					return
				}
			}
		})
	}
	good := c.laneFrom("127.0.0.1")
	var want []string
	most := int64(0)
	for i := range 200 {
		e := named(fmt.Sprint("good-", i))
		e.pad = strings.Repeat("g", 10_000)
		id := newID()
		good.send(packed("good", id, e.append(nil)), id)
		want = append(want, e.name)
		most = max(most, resident(t, c))
	}
	hoarded := most
	for _, conn := range conns {
		conn.Close()
	}
	hogs.Wait()
	// With the hogs gone there is room for a large chunk at once: sixteen events of 1 MiB.
	var entries []byte
	for i := range 16 {
		e := named(fmt.Sprint("large-", i))
		e.pad = strings.Repeat("l", 1<<20)
		entries = e.append(entries)
		want = append(want, e.name)
	}
	id := newID()
	good.send(packed("good", id, entries), id)
	most = max(most, resident(t, c))
	figure(t, "resident memory: %.1f MB before, %.1f MB with %d connections that want 30 MiB each, at most %.1f MB in all; the budget is %.1f MB",
		float64(before)/1e6, float64(hoarded)/1e6, len(conns), float64(most)/1e6, float64(budget)/1e6)
	// The garbage collector has its share besides the budget, the larger the less time it gets
	// beside other tests; journal and output have theirs, of a chunk of 16 MiB. Without a budget it
	// would be 600 MB and more.
	if bar := before + 5*budget; most > bar {
		t.Errorf("%d bytes resident, want at most %d", most, bar)
	}
	waitLines(t, out, len(want))
	c.stop()
	wantNames(t, readLines(t, out), want...)
}

// TestFullJournal fills the journal to its limit, the output being stuck: senders wait, memory does
// not grow, and all goes on when the output does. A message that was half read when the journal was
// full is finished.
func TestFullJournal(t *testing.T) {
	t.Parallel()
	s, out := newSetup(t)
	s.bin = lean
	s.args = []string{"--journal-size", "48MiB", "--memory", "64MiB"}
	s.to = append(s.to, "stdout:")
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	s.stdout = w
	c := startCollector(t, s)
	must(t, w.Close())

	var streams []*stream
	for i := range 4 {
		streams = append(streams, startStream(t, c, fmt.Sprint("stream", i), 200<<10))
	}
	total := func() (n int) {
		for _, s := range streams {
			n += s.count()
		}
		return n
	}
	half := c.lane()
	id := newID()
	message := packed("half", id, named("half").append(nil))
	half.write(message[:len(message)/2])

	c.says("full")
	have, moved := 0, time.Now()
	eventually(t, "the senders wait", func() bool {
		if now := total(); now != have {
			have, moved = now, time.Now()
		}
		return have > 0 && time.Since(moved) > 2*time.Second
	})
	if size := have * 200 << 10; size < 16<<20 || size > 64<<20 {
		t.Errorf("senders wait after %d bytes, want about 48 MiB", size)
	}
	full := resident(t, c)
	figure(t, "journal of 48 MiB full after %d chunks of 200 KiB, %.1f MB resident", have, float64(full)/1e6)
	half.write(message[len(message)/2:])

	go drain(r)
	half.wantAck(id)
	want := []string{"half"}
	for _, s := range streams {
		s.more(10)
		want = append(want, s.end()...)
	}
	waitLines(t, out, len(want))
	c.stop()
	wantNames(t, readLines(t, out), want...)
}

// TestMemoryFlood has 40 connections send chunks of 8 MiB, acked, to a collector with default
// settings: the bar is 200 MiB resident at any time, and afterwards memory goes back to the system.
func TestMemoryFlood(t *testing.T) {
	const connections, bar = 40, 200 << 20
	rounds := 1
	if needs.Long() {
		rounds = 3
	}
	var lines []byte
	for i := 0; len(lines) < 8<<20-1000; i++ {
		e := named(fmt.Sprint("flood-", i))
		e.pad = strings.Repeat("some text that a log might have ", 4) + fmt.Sprint(i*7919)
		lines = e.append(lines)
	}
	for how, entries := range map[string][]byte{"": lines, "gzip": gzipped(lines)} {
		t.Run("packed"+how, func(t *testing.T) {
			s, _ := newSetup(t)
			s.bin = lean
			c := startCollector(t, s)
			before := resident(t, c)
			head := len(appendBin(appendStr([]byte{0x93}, "flood"), nil))
			var senders sync.WaitGroup
			for i := range connections {
				l := c.laneFrom(fmt.Sprintf("127.0.4.%d", i+1))
				senders.Go(func() {
					for range rounds {
						id := newID()
						frame := packedOptions("flood", nil, "compressed", how, "chunk", id)
						binary.BigEndian.PutUint32(frame[head-4:], uint32(len(entries)))
						l.write(frame[:head])
						l.write(entries)
						l.send(frame[head:], id)
					}
				})
			}
			senders.Wait()
			most := peak(t, c)
			figure(t, "resident memory: %.1f MB before, at most %.1f MB", float64(before)/1e6, float64(most)/1e6)
			if most > bar {
				t.Errorf("%d bytes resident, want at most %d", most, bar)
			}
			t.Parallel() // the flood has the machine to itself, what is left is waiting
			eventually(t, "memory goes back", func() bool { return resident(t, c) < before+32<<20 })
			figure(t, "%.1f MB afterwards", float64(resident(t, c))/1e6)
			large := named("as large as MaxChunk lets it be")
			large.pad = strings.Repeat("l", 63<<20)
			id := newID()
			c.lane().send(packed("flood", id, large.append(nil)), id)
			c.stop()
		})
	}
	t.Parallel()
}

// peak is the most resident memory that the process has had.
func peak(t testing.TB, c *collector) int64 { return status(t, c, "VmHWM:") }
