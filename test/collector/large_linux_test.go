// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/letters"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/journal"
	"github.com/spillwaylog/spillway/msgpack"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// largeBar is what the process may take, resident, for one event, and hostileBar what it may for
// whatever comes. The figures are a quarter and half of that.
const (
	largeBar   = 300 << 20
	hostileBar = 400 << 20
)

// recordOf is an entry whose record has the pairs that add appends.
func recordOf(n int, add func(b []byte) []byte) []byte {
	b := forward.AppendEventTime([]byte{0x92}, 1792375200, 0)
	b = msgpack.AppendMapHeader(b, n)
	return add(b)
}

func control(n int) []byte {
	return recordOf(1, func(b []byte) []byte {
		return msgpack.AppendString(msgpack.AppendString(b, "pad"), strings.Repeat("\x01", n))
	})
}

// hostileChunks are entries that take much of what reads or writes them. size is about how long
// those are that may be of any length.
func hostileChunks(r *rand.Rand, size int) map[string][]byte {
	ordinary := rig.Named("ordinary").Append(nil)
	many := func(e []byte) []byte { return bytes.Repeat(e, size/len(e)) }
	const most = 8<<20 - 1000 // nearly the largest event
	random := make([]byte, most)
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	chunks := map[string][]byte{
		"one huge value": control(size),
		"huge among ordinary ones": bytes.Join([][]byte{ordinary, control(size / 2), ordinary, control(most), ordinary},
			nil),
		"controls, largest":    bytes.Join([][]byte{control(most), control(most), ordinary}, nil),
		"many ordinary events": many(rig.Named("ordinary").Append(nil)),
		"without a time":       append(many(append([]byte{0x92, 0, 0x81}, "\xa4name\xa8timeless"...)), ordinary...),
		"nested": many(recordOf(1, func(b []byte) []byte {
			b = msgpack.AppendString(b, "deep")
			b = append(b, bytes.Repeat([]byte{0x91}, msgpack.DefaultDepth-2)...)
			return append(b, 0xc0)
		})),
		"tiny values": recordOf(1, func(b []byte) []byte {
			b = msgpack.AppendArrayHeader(msgpack.AppendString(b, "all"), most)
			return append(b, bytes.Repeat([]byte{0xc0}, most)...)
		}),
		"colliding keys": recordOf(300_000, func(b []byte) []byte {
			for i := range 300_000 {
				b = msgpack.AppendString(b, [...]string{"time", "tag", "time_", "tag__"}[i%4])
				b = msgpack.AppendString(b, "\"\\\n\x02")
			}
			return b
		}),
		"huge map": recordOf(900_000, func(b []byte) []byte {
			for i := range 900_000 {
				b = append(msgpack.AppendInt(b, int64(i)), 0xc3)
			}
			return b
		}),
		"bin": recordOf(1, func(b []byte) []byte { return msgpack.AppendBin(msgpack.AppendString(b, "bin"), random) }),
		"ext": recordOf(1, func(b []byte) []byte {
			return msgpack.AppendExt(msgpack.AppendString(b, "ext"), 7,
				random)
		}),
	}
	return chunks
}

// TestLargeEvent: an event of 250 MB that comes in 255 KB is a dead letter, of which the head is
// kept, and what comes with it is stored and delivered; an input that is told so refuses the chunk.
func TestLargeEvent(t *testing.T) {
	s, out := rig.NewSetup(t)
	s.Bin = rig.Lean
	r, w, err := os.Pipe()
	rig.Must(t, err)
	defer r.Close()
	go drain(r)
	s.Stdout = w
	s.Listen = []string{"forward://127.0.0.1:0", "forward://127.0.0.1:0?oversize=refuse"}
	s.To = append(s.To, "file://"+t.TempDir()+"/text?format=text", "stdout:")
	c := rig.StartCollector(t, s)
	packed := rig.Gzipped(bytes.Join([][]byte{
		rig.Named("before").Append(nil), control(250_000_000),
		rig.Named("behind").Append(nil),
	}, nil))
	id := rig.NewID()
	l := c.Lane()
	message := rig.PackedOptions("large", packed, "compressed", "gzip", "chunk", id)
	l.Send(message, id)
	c.Lane().Send(message, id) // as if the ack was missed
	rig.WaitLines(t, out, 2)
	most := peak(t, c)
	rig.Figure(t, "%d bytes sent, at most %.1f MB resident", len(packed), float64(most)/1e6)
	if most > largeBar {
		t.Errorf("%d bytes resident, want at most %d", most, largeBar)
	}
	c.Says("too large event", "set aside")
	conn, err := net.Dial("tcp", addrs(c)[1])
	rig.Must(t, err)
	defer conn.Close()
	_, err = conn.Write(message)
	rig.Must(t, err)
	c.Says("too large event", "message refused")
	c.Kill()
	c = rig.StartCollector(t, s)
	rig.Eventually(t, "all is delivered", func() bool { return delivered(c) })
	if again := peak(t, c); again > largeBar {
		t.Errorf("%d bytes resident at the next start, want at most %d", again, largeBar)
	}
	c.Stop()
	rig.Must(t, w.Close())
	rig.WantNames(t, rig.ReadLines(t, out), "before", "behind")
	box, err := letters.Read(filepath.Join(s.Data, letters.Dir))
	rig.Must(t, err)
	n := 0
	rig.Must(t, box.Letters(func(e *letters.Entry) bool {
		n++
		if e.Err != nil || e.Events() != 1 || len(e.Chunk.Entries) < 64<<10 || len(e.Chunk.Entries) > 65<<10 ||
			!strings.Contains(e.Reason, "larger than 8388608 bytes: 250000") {
			t.Errorf("%d bytes, %s, %v", len(e.Chunk.Entries), e.Reason, e.Err)
		}
		return true
	}))
	if n != 1 {
		t.Errorf("%d letters", n)
	}
}

// windowed compresses with the largest window that is taken.
func windowed(t testing.TB, b []byte) []byte {
	z, err := zstd.NewWriter(nil, zstd.WithWindowSize(8<<20), zstd.WithEncoderConcurrency(1))
	rig.Must(t, err)
	return z.EncodeAll(b, nil)
}

// TestHostileChunks sends chunks that become many times as long in memory as they are, to outputs
// of all kinds: the process stays under a bar, everything is stored or a dead letter, and
// delivered, and so it is for the process that finds all of it in its journal.
func TestHostileChunks(t *testing.T) {
	size, whole := 24<<20, needs.Rounds(t, "SPILLWAY_HOSTILE", 0, 0) > 0
	if whole {
		size = 100_000_000
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	chunks := hostileChunks(rnd, size)
	s, _ := rig.NewSetup(t)
	s.Bin = rig.Lean
	r, w, err := os.Pipe()
	rig.Must(t, err)
	defer r.Close()
	go drain(r)
	s.Stdout = w
	s.To = append(s.To, "file://"+t.TempDir()+"/text?format=text", "stdout:", "discard:")
	peer, _ := rig.NewSetup(t)
	peer.Bin = rig.Lean
	peer.To = []string{"discard:"}
	far := rig.StartCollector(t, peer)
	s.To = append(s.To, "forward://"+far.Addr)
	c := rig.StartCollector(t, s)
	before := rig.Resident(t, c)
	l := c.Lane()
	sent := 0
	for name, entries := range chunks { // in any order
		if sent == 6 && !whole {
			break
		}
		hows := []string{"gzip", "zstd"}
		if !whole {
			hows = hows[rnd.IntN(2):][:1]
		}
		for _, how := range hows {
			id := rig.NewID()
			packed := rig.Gzipped(entries)
			if how == "zstd" {
				packed = windowed(t, entries)
			}
			l.Send(rig.PackedOptions("hostile", packed, "compressed", how, "chunk", id), id)
			sent++
			rig.Figure(t, "%s, %s: %.1f MB from %.1f MB, at most %.1f MB resident so far", name, how,
				float64(len(entries))/1e6, float64(len(packed))/1e6, float64(peak(t, c))/1e6)
		}
	}
	most := peak(t, c)
	c.Kill()
	c = rig.StartCollector(t, s)
	rig.Eventually(t, "all is delivered", func() bool { return delivered(c) })
	again := peak(t, c)
	rig.Figure(t, "%d chunks; resident %.1f MB before, at most %.1f MB, and %.1f MB with all of it in the journal", sent,
		float64(before)/1e6, float64(most)/1e6, float64(again)/1e6)
	if max(most, again) > hostileBar {
		t.Errorf("%d and %d bytes resident, want at most %d", most, again, hostileBar)
	}
	c.Stop()
	rig.Must(t, w.Close())
	far.Stop()
}

// TestLongJournal: a journal from before events had a largest size has one of 250 MB, compressed to
// 255 KB. Four outputs deliver it, through a kill, each line once, in little memory.
func TestLongJournal(t *testing.T) {
	size := 40_000_000
	if needs.Rounds(t, "SPILLWAY_HOSTILE", 0, 0) > 0 {
		size = 250_000_000
	}
	s, _ := rig.NewSetup(t)
	s.Bin = rig.Lean
	r, w, err := os.Pipe()
	rig.Must(t, err)
	defer r.Close()
	go drain(r)
	s.Stdout = w
	out, text := filepath.Join(t.TempDir(), "json"), filepath.Join(t.TempDir(), "text")
	peer, _ := rig.NewSetup(t)
	peer.Bin = rig.Lean
	peer.To = []string{"discard:"}
	far := rig.StartCollector(t, peer)
	s.To = []string{"file://" + out, "file://" + text + "?format=text", "stdout:", "forward://" + far.Addr}

	j, err := journal.Open(filepath.Join(s.Data, "journal"), nil)
	rig.Must(t, err)
	entries := bytes.Join([][]byte{
		rig.Named("before").Append(nil), control(size), rig.Named("behind").Append(nil),
	}, nil)
	chunk := &forward.Chunk{
		Tag: "long", Compressed: rig.Gzipped(entries), Compression: "gzip", Events: 3,
		ID: forward.NewID(),
	}
	record := chunk.AppendTail(append(chunk.AppendHead(nil), chunk.Body()...))
	at, err := j.Append(record)
	rig.Must(t, err)
	rig.Must(t, j.Sync(t.Context(), at))
	rig.Must(t, j.Close())

	c := rig.StartCollector(t, s)
	rig.Eventually(t, "the line is being written", func() bool {
		info, err := os.Stat(out)
		return err == nil && info.Size() > 10<<20
	})
	most := peak(t, c)
	c.Kill()
	c = rig.StartCollector(t, s)
	rig.Eventually(t, "all is delivered", func() bool { return delivered(c) })
	most = max(most, peak(t, c))
	rig.Figure(t, "an event of %d bytes in the journal: at most %.1f MB resident", size, float64(most)/1e6)
	if most > largeBar {
		t.Errorf("%d bytes resident, want at most %d", most, largeBar)
	}
	c.Stop()
	rig.Must(t, w.Close())
	far.Stop()
	wantLong(t, out, `\u0001`, size)
	wantLong(t, text, `\x01`, size)
}

// wantLong checks that a file has three lines, the second with so many of an escape in one piece.
func wantLong(t *testing.T, path, escape string, n int) {
	t.Helper()
	f, err := os.Open(path)
	rig.Must(t, err)
	defer f.Close()
	info, err := f.Stat()
	rig.Must(t, err)
	b := make([]byte, 1000)
	k, err := f.ReadAt(b, 0)
	rig.Must(t, err)
	head, rest, ok := strings.Cut(string(b[:k]), "\n")
	lead := strings.Index(rest, escape)
	if !ok || !strings.Contains(head, "before") || lead < 0 {
		t.Fatalf("%s begins with %.500q", path, b)
	}
	at := int64(len(head) + 1 + lead)
	want := strings.Repeat(escape, 10_000)
	b = make([]byte, len(want))
	for left := n; left > 0; left -= 10_000 {
		want := want[:min(left, 10_000)*len(escape)]
		if _, err := f.ReadAt(b[:len(want)], at); err != nil || string(b[:len(want)]) != want {
			t.Fatalf("%s, at byte %d: other bytes, %v", path, at, err)
		}
		at += int64(len(want))
	}
	tail := make([]byte, info.Size()-at)
	_, err = f.ReadAt(tail, at)
	rig.Must(t, err)
	if lines := strings.Split(string(tail), "\n"); len(lines) != 3 || !strings.Contains(lines[1], "behind") ||
		lines[2] != "" {
		t.Errorf("%s ends in %.500q", path, tail)
	}
}

// delivered says whether nothing is behind.
func delivered(c *rig.Collector) bool {
	c.T.Helper()
	a := c.Account()
	for i := 0; a.Has(fmt.Sprintf("output%d.out", i)); i++ {
		if a[fmt.Sprintf("output%d.behind", i)] != 0 {
			return false
		}
	}
	return !a.Has("counting")
}
