// SPDX-License-Identifier: Apache-2.0

package collector

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
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// TestMemoryBudget has many connections send large chunks that never end, while a good client with
// small ones goes on. All connections together stay within the budget.
func TestMemoryBudget(t *testing.T) {
	const budget = 64 << 20
	s, out := rig.NewSetup(t)
	s.Bin = rig.Lean
	s.Args = []string{"--memory", fmt.Sprint(budget), "--max-chunk", "32MiB"}
	c := rig.StartCollector(t, s)
	before := rig.Resident(t, c)

	var hogs sync.WaitGroup
	var conns []net.Conn
	piece := make([]byte, 1<<20)
	for i := range 20 {
		conn := c.DialFrom(fmt.Sprintf("127.0.3.%d", i+1))
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
	good := c.LaneFrom("127.0.0.1")
	var want []string
	most := int64(0)
	for i := range 200 {
		e := rig.Named(fmt.Sprint("good-", i))
		e.Pad = strings.Repeat("g", 10_000)
		id := rig.NewID()
		good.Send(rig.Packed("good", id, e.Append(nil)), id)
		want = append(want, e.Name)
		most = max(most, rig.Resident(t, c))
	}
	hoarded := most
	for _, conn := range conns {
		conn.Close()
	}
	hogs.Wait()
	// With the hogs gone there is room for a large chunk at once: sixteen events of 1 MiB.
	var entries []byte
	for i := range 16 {
		e := rig.Named(fmt.Sprint("large-", i))
		e.Pad = strings.Repeat("l", 1<<20)
		entries = e.Append(entries)
		want = append(want, e.Name)
	}
	id := rig.NewID()
	good.Send(rig.Packed("good", id, entries), id)
	most = max(most, rig.Resident(t, c))
	rig.Figure(t, "resident memory: %.1f MB before, %.1f MB with %d connections that want 30 MiB each, at most %.1f MB in all; the budget is %.1f MB",
		float64(before)/1e6, float64(hoarded)/1e6, len(conns), float64(most)/1e6, float64(budget)/1e6)
	// The garbage collector has its share besides the budget, the larger the less time it gets
	// beside other tests; journal and output have theirs, of a chunk of 16 MiB. Without a budget it
	// would be 600 MB and more.
	if bar := before + 5*budget; most > bar {
		t.Errorf("%d bytes resident, want at most %d", most, bar)
	}
	rig.WaitLines(t, out, len(want))
	c.Stop()
	rig.WantNames(t, rig.ReadLines(t, out), want...)
}

// TestFullJournal fills the journal to its limit, the output being stuck: senders wait, memory does
// not grow, and all goes on when the output does. A message that was half read when the journal was
// full is finished.
func TestFullJournal(t *testing.T) {
	t.Parallel()
	s, out := rig.NewSetup(t)
	s.Bin = rig.Lean
	s.Args = []string{"--journal-size", "48MiB", "--memory", "64MiB"}
	s.To = append(s.To, "stdout:")
	r, w, err := os.Pipe()
	rig.Must(t, err)
	defer r.Close()
	s.Stdout = w
	c := rig.StartCollector(t, s)
	rig.Must(t, w.Close())

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
	half := c.Lane()
	id := rig.NewID()
	message := rig.Packed("half", id, rig.Named("half").Append(nil))
	half.Write(message[:len(message)/2])

	c.Says("full")
	have, moved := 0, time.Now()
	rig.Eventually(t, "the senders wait", func() bool {
		if now := total(); now != have {
			have, moved = now, time.Now()
		}
		return have > 0 && time.Since(moved) > 2*time.Second
	})
	if size := have * 200 << 10; size < 16<<20 || size > 64<<20 {
		t.Errorf("senders wait after %d bytes, want about 48 MiB", size)
	}
	full := rig.Resident(t, c)
	rig.Figure(t, "journal of 48 MiB full after %d chunks of 200 KiB, %.1f MB resident", have, float64(full)/1e6)
	half.Write(message[len(message)/2:])

	go drain(r)
	half.WantAck(id)
	want := []string{"half"}
	for _, s := range streams {
		s.more(10)
		want = append(want, s.end()...)
	}
	rig.WaitLines(t, out, len(want))
	c.Stop()
	rig.WantNames(t, rig.ReadLines(t, out), want...)
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
		e := rig.Named(fmt.Sprint("flood-", i))
		e.Pad = strings.Repeat("some text that a log might have ", 4) + fmt.Sprint(i*7919)
		lines = e.Append(lines)
	}
	for how, entries := range map[string][]byte{"": lines, "gzip": rig.Gzipped(lines)} {
		t.Run("packed"+how, func(t *testing.T) {
			s, _ := rig.NewSetup(t)
			s.Bin = rig.Lean
			c := rig.StartCollector(t, s)
			before := rig.Resident(t, c)
			head := len(rig.AppendBin(rig.AppendStr([]byte{0x93}, "flood"), nil))
			var senders sync.WaitGroup
			for i := range connections {
				l := c.LaneFrom(fmt.Sprintf("127.0.4.%d", i+1))
				senders.Go(func() {
					for range rounds {
						id := rig.NewID()
						frame := rig.PackedOptions("flood", nil, "compressed", how, "chunk", id)
						binary.BigEndian.PutUint32(frame[head-4:], uint32(len(entries)))
						l.Write(frame[:head])
						l.Write(entries)
						l.Send(frame[head:], id)
					}
				})
			}
			senders.Wait()
			most := peak(t, c)
			rig.Figure(t, "resident memory: %.1f MB before, at most %.1f MB", float64(before)/1e6, float64(most)/1e6)
			if most > bar {
				t.Errorf("%d bytes resident, want at most %d", most, bar)
			}
			t.Parallel() // the flood has the machine to itself, what is left is waiting
			rig.Eventually(t, "memory goes back", func() bool { return rig.Resident(t, c) < before+32<<20 })
			rig.Figure(t, "%.1f MB afterwards", float64(rig.Resident(t, c))/1e6)
			large := rig.Named("as large as MaxChunk lets it be")
			large.Pad = strings.Repeat("l", 63<<20)
			id := rig.NewID()
			c.Lane().Send(rig.Packed("flood", id, large.Append(nil)), id)
			c.Stop()
		})
	}
	t.Parallel()
}

// peak is the most resident memory that the process has had.
func peak(t testing.TB, c *rig.Collector) int64 { return rig.Status(t, c, "VmHWM:") }
