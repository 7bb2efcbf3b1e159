// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/test/internal/rig"
)

// fate is what becomes of the connection of a bad peer.
type fate int

const (
	closed fate = iota
	stays
)

// repeated is a message that is bytes over and over.
func repeated(n int, b ...byte) []byte { return bytes.Repeat(b, n) }

// TestBadInput sends each kind of bad input from an address of its own. There must be one clear
// line with that address, the documented fate, no ack, and no disturbance of a good client.
func TestBadInput(t *testing.T) {
	s, out := rig.NewSetup(t)
	s.Args = []string{"--max-chunk", "1MiB", "--max-unpacked", "4MiB", "--memory", "64MiB"}
	c := rig.StartCollector(t, s)
	good := c.Lane()
	var want []string
	sendGood := func(name string) {
		t.Helper()
		id := rig.NewID()
		good.Send(rig.Packed("good", id, rig.Named(name).Append(nil)), id)
		want = append(want, name)
	}
	sendGood("before")

	one := rig.Named("never stored").Append(nil)
	bomb := rig.Gzipped(bytes.Repeat(append(one, repeated(1000, 0xc0)...), 20_000))
	broken := rig.Gzipped(bytes.Repeat(one, 100))
	broken[len(broken)/2] ^= 0x55
	for i, tt := range []struct {
		name  string
		bytes []byte
		fate  fate
		says  []string // parts of the log line, besides the address
		kept  []string // names of events that are stored
		acked bool
		hang  bool // the peer hangs up after its bytes
	}{
		{name: "garbage", bytes: repeated(1000, 0xc1), fate: closed, says: []string{"garbage"}},
		{
			name: "an HTTP request", bytes: []byte("GET / HTTP/1.1\r\nHost: example\r\n\r\n"), fate: closed,
			says: []string{"HTTP"},
		},
		{
			name: "partial message", bytes: rig.Packed("bad", rig.NewID(), one)[:60], fate: closed,
			says: []string{"partial message"}, hang: true,
		},
		{name: "nesting 100,000 deep", bytes: append([]byte{0x93, 0xa1, 't', 0xce, 0, 0, 0, 1},
			repeated(100_000, 0x91)...), fate: closed, says: []string{"too deep"}},
		{
			name: "dc ff ff over and over", bytes: repeated(24_000, 0xdc, 0xff, 0xff), fate: closed,
			says: []string{"kind="},
		},
		{
			name: "array32 of ffffffff", bytes: []byte{0x92, 0xa1, 't', 0xdd, 0xff, 0xff, 0xff, 0xff}, fate: closed,
			says: []string{"kind="},
		},
		{
			name: "map32 of ffffffff", bytes: []byte{0x93, 0xa1, 't', 1, 0xdf, 0xff, 0xff, 0xff, 0xff}, fate: closed,
			says: []string{"kind="},
		},
		{
			name: "str32 of ffffffff", bytes: []byte{0x92, 0xa1, 't', 0xdb, 0xff, 0xff, 0xff, 0xff}, fate: closed,
			says: []string{"kind="},
		},
		{
			name: "bin32 of ffffffff", bytes: []byte{0x92, 0xa1, 't', 0xc6, 0xff, 0xff, 0xff, 0xff}, fate: closed,
			says: []string{"kind="},
		},
		{
			name: "a tag of ffffffff", bytes: []byte{0x92, 0xdb, 0xff, 0xff, 0xff, 0xff}, fate: closed,
			says: []string{"kind="},
		},
		{
			name: "corrupt gzip", bytes: rig.PackedOptions("bad", broken, "compressed", "gzip", "chunk", rig.NewID()),
			fate: stays,
			says: []string{"corrupt"},
		},
		{
			name:  "cut gzip",
			bytes: rig.PackedOptions("bad", rig.Gzipped(one)[:20], "compressed", "gzip", "chunk", rig.NewID()),
			fate:  stays, says: []string{"corrupt"},
		},
		{
			name: "corrupt zstd", bytes: rig.PackedOptions("bad", broken, "compressed", "zstd", "chunk", rig.NewID()),
			fate: stays,
			says: []string{"corrupt"},
		},
		{
			name:  "a bomb",
			bytes: rig.PackedOptions("bad", bomb, "compressed", "gzip", "chunk", rig.NewID()), fate: stays,
			says: []string{"bomb"},
		},
		{
			name: "a chunk over the limit", bytes: rig.Packed("bad", rig.NewID(), bytes.Repeat(one, 2<<20/len(one))),
			fate: closed,
			says: []string{"too large"},
		},
		{
			name:  "unknown compression",
			bytes: rig.PackedOptions("bad", one, "compressed", "lzma", "chunk", rig.NewID()),
			fate:  stays, says: []string{"unknown compression", "lzma"},
		},
		{
			name: "invalid entries among good ones", fate: stays, says: []string{"invalid entries"}, acked: true,
			bytes: rig.Packed("bad", rig.NewID(), append(append(rig.Named("good 1").Append(nil),
				0x92, 0xa1, 'x', 0x80, 0x91, 0x01,
				0x92, 0x01, 0x02), rig.Named("good 2").Append(nil)...)),
			kept: []string{"good 1", "good 2"},
		},
		{
			name:  "nanoseconds of 1e9",
			bytes: rig.Packed("bad", rig.NewID(), rig.Event{Sec: 1, Nsec: 1e9, Name: "no"}.Append(nil)),
			fate:  stays, says: []string{"invalid entries"}, acked: true,
		},
		{
			name: "packed entries that break off", bytes: rig.Packed("bad", rig.NewID(), one[:len(one)-1]), fate: stays,
			says: []string{"invalid chunk"},
		},
		{
			name:  "a broken string as a chunk",
			bytes: rig.Packed("bad", rig.NewID(), []byte("broken string")), fate: stays,
			says: []string{"kind="},
		},
		{
			name: "an array that is no message", bytes: []byte{0x93, 0xa1, 't', 0xc3, 0xc0}, fate: stays,
			says: []string{"invalid message"},
		},
		{name: "a tag that is no string", bytes: []byte{0x93, 0x01, 0x01, 0x80}, fate: stays, says: []string{"kind="}},
		{
			name: "a tag of 64 KiB", bytes: rig.Packed(strings.Repeat("t", 64<<10), rig.NewID(), one), fate: stays,
			says: []string{"bad tag"},
		},
		{
			name: "an id of 128 KiB", bytes: rig.Packed("bad", strings.Repeat("i", 128<<10), one), fate: stays,
			says: []string{"kind="},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			source := fmt.Sprintf("127.0.1.%d", i+1)
			bad := c.LaneFrom(source)
			bad.T = t
			// The collector may close the connection before it has all.
			_, _ = bad.Conn.Write(tt.bytes) //nolint:errcheck // see above
			if tt.hang {
				rig.Must(t, bad.Conn.(*net.TCPConn).CloseWrite())
			}
			if len(tt.says) > 0 {
				c.Says(append([]string{"peer=" + source + ":"}, tt.says...)...)
			}
			sendGood(fmt.Sprintf("while %q", tt.name))
			if tt.acked {
				bad.Deadline(rig.Patience)
				if _, err := rig.ReadAck(bad.Acks); err != nil {
					t.Errorf("no ack: %v", err)
				}
			}
			want = append(want, tt.kept...)
			if tt.fate == closed {
				bad.WantClosed()
			} else { // the next message is taken, and no ack came before its own
				name, id := "after "+tt.name, rig.NewID()
				bad.Send(rig.Packed("bad", id, rig.Named(name).Append(nil)), id)
				want = append(want, name)
			}
			if n := strings.Count(c.Log.String(), "peer="+source+":"); n > 1 || n == 0 && len(tt.says) > 0 {
				t.Errorf("%d lines name %s, want one", n, source)
			}
		})
	}
	sendGood("after")
	rig.WaitLines(t, out, len(want))
	c.Stop()
	rig.WantNames(t, rig.ReadLines(t, out), want...)
}

// TestHostileTags wants that a tag never leads out of the output's folder.
func TestHostileTags(t *testing.T) {
	s, out := rig.NewSetup(t)
	rig.Must(t, os.Mkdir(filepath.Join(out, "inner"), 0o700))
	s.To = []string{"file://" + out + "/inner/{tag}/log.jsonl", "file://" + out + "/inner/{tag}.jsonl"}
	c := rig.StartCollector(t, s)
	l := c.Lane()
	tags := []string{
		"../escape", "../../escape", "..", ".", "", "/etc/escape", "a/../../escape", "a\x00b", "\x00",
		"con\nlevel=ERROR msg=forged", "a\\..\\..\\escape",
		strings.Repeat("n", 300), strings.Repeat("d/", 200), "%2e%2e/escape", "{tag}", "\xff\xfe", "-rf", " ",
	}
	acked := 0
	for i, tag := range tags {
		name := fmt.Sprint("tag-", i)
		id := rig.NewID()
		l.Write(rig.Packed(tag, "", rig.Named(name).Append(nil)))
		l.Send(rig.Packed("fine", id, rig.Named("fine-"+name).Append(nil)), id)
		acked++
	}
	rig.WaitLines(t, out, 2*acked)
	c.Stop()
	if text := c.Log.String(); strings.Contains(text, "\nlevel=ERROR msg=forged") {
		t.Errorf("a tag forged a log line:\n%s", text)
	}
	entries, err := os.ReadDir(out)
	rig.Must(t, err)
	if len(entries) != 1 {
		t.Errorf("something was written beside the output's folder: %v", entries)
	}
	have := map[string]int{}
	for _, line := range rig.ReadLines(t, out) {
		have[line.Name()]++
		var i int
		if n, _ := fmt.Sscanf(line.Name(), "tag-%d", &i); n == 1 &&
			line.Tag != strings.ToValidUTF8(tags[i], "\ufffd") && tags[i] != "\xff\xfe" {
			t.Errorf("tag %q became %q", tags[i], line.Tag)
		}
	}
	for i, tag := range tags {
		if n := have[fmt.Sprint("tag-", i)]; n != 2 {
			t.Errorf("the event of tag %q is in %d of 2 outputs; log: %q", tag, n, c.Log.Find("tag"))
		}
	}
}

// TestSlowSender sends one byte at a time: a slow peer disturbs nobody, and its message counts.
func TestSlowSender(t *testing.T) {
	t.Parallel()
	s, out := rig.NewSetup(t)
	c := rig.StartCollector(t, s)
	slow, good := c.Lane(), c.Lane()
	id := rig.NewID()
	message := rig.Packed("slow", id, rig.Named("slow").Append(nil))
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	want := []string{"slow"}
	for i := range message {
		slow.Write(message[i : i+1])
		if i%10 == 0 {
			name := fmt.Sprint("good-", i)
			goodID := rig.NewID()
			good.Send(rig.Packed("good", goodID, rig.Named(name).Append(nil)), goodID)
			want = append(want, name)
		}
		<-tick.C
	}
	slow.WantAck(id)
	rig.WaitLines(t, out, len(want))
	c.Stop()
	rig.WantNames(t, rig.ReadLines(t, out), want...)
}

// TestUnreadAcks has a client that never reads its acks: in the end it is cut off, with a line, and
// meanwhile it disturbs nobody.
func TestUnreadAcks(t *testing.T) {
	t.Parallel()
	s, out := rig.NewSetup(t)
	c := rig.StartCollector(t, s)
	bad := c.DialFrom("127.0.0.9")
	rig.Must(t, bad.(*net.TCPConn).SetReadBuffer(4096))
	// A long id makes a long ack.
	id := strings.Repeat("i", 60_000)
	message := rig.Packed("unread", id, rig.Named("unread").Append(nil))
	written := make(chan int)
	go func() {
		n := 0
		for {
			if _, err := bad.Write(message); err != nil {
				break
			}
			n++
		}
		written <- n
	}()
	good := c.Lane()
	sent := 0
	for cut := false; !cut; {
		goodID := rig.NewID()
		good.Send(rig.Packed("good", goodID, rig.Named(fmt.Sprint("good-", sent)).Append(nil)), goodID)
		sent++
		select {
		case n := <-written:
			t.Logf("cut off after %d messages", n)
			cut = true
		case <-time.After(20 * time.Millisecond):
		}
	}
	c.Says("peer=127.0.0.9:", "slow reader")
	_, _ = io.Copy(io.Discard, bad) //nolint:errcheck // it was cut off
	c.Stop()
	stored := 0
	for name := range rig.Names(rig.ReadLines(t, out)) {
		if strings.HasPrefix(name, "good-") {
			stored++
		}
	}
	if stored != sent {
		t.Errorf("%d events of the good client, want %d", stored, sent)
	}
}

// TestFlood has hundreds of connections send garbage: the log tells of some and of how many it left
// out.
func TestFlood(t *testing.T) {
	t.Parallel()
	s, out := rig.NewSetup(t)
	c := rig.StartCollector(t, s)
	good := c.Lane()
	const peers = 500
	var want []string
	for i := range peers {
		conn := c.DialFrom("127.0.0.7")
		_, err := conn.Write(repeated(100, 0xc1))
		rig.Must(t, err)
		if i%50 == 0 {
			name, id := fmt.Sprint("good-", i), rig.NewID()
			good.Send(rig.Packed("good", id, rig.Named(name).Append(nil)), id)
			want = append(want, name)
		}
	}
	rig.WaitLines(t, out, len(want))
	c.Says("left_out=")
	c.Stop()
	if n := strings.Count(c.Log.String(), "peer=127.0.0.7"); n == 0 || n > peers/2 {
		t.Errorf("%d lines for %d bad peers", n, peers)
	}
	rig.WantNames(t, rig.ReadLines(t, out), want...)
}
