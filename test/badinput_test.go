// SPDX-License-Identifier: Apache-2.0

package test

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
	s, out := newSetup(t)
	s.args = []string{"--max-chunk", "1MiB", "--max-unpacked", "4MiB", "--memory", "64MiB"}
	c := startCollector(t, s)
	good := c.lane()
	var want []string
	sendGood := func(name string) {
		t.Helper()
		id := newID()
		good.send(packed("good", id, named(name).append(nil)), id)
		want = append(want, name)
	}
	sendGood("before")

	one := named("never stored").append(nil)
	bomb := gzipped(bytes.Repeat(append(one, repeated(1000, 0xc0)...), 20_000))
	broken := gzipped(bytes.Repeat(one, 100))
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
			name: "partial message", bytes: packed("bad", newID(), one)[:60], fate: closed,
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
			name: "corrupt gzip", bytes: packedOptions("bad", broken, "compressed", "gzip", "chunk", newID()),
			fate: stays,
			says: []string{"corrupt"},
		},
		{
			name: "cut gzip", bytes: packedOptions("bad", gzipped(one)[:20], "compressed", "gzip", "chunk", newID()),
			fate: stays, says: []string{"corrupt"},
		},
		{
			name: "corrupt zstd", bytes: packedOptions("bad", broken, "compressed", "zstd", "chunk", newID()),
			fate: stays,
			says: []string{"corrupt"},
		},
		{
			name: "a bomb", bytes: packedOptions("bad", bomb, "compressed", "gzip", "chunk", newID()), fate: stays,
			says: []string{"bomb"},
		},
		{
			name: "a chunk over the limit", bytes: packed("bad", newID(), bytes.Repeat(one, 2<<20/len(one))),
			fate: closed,
			says: []string{"too large"},
		},
		{
			name: "unknown compression", bytes: packedOptions("bad", one, "compressed", "lzma", "chunk", newID()),
			fate: stays, says: []string{"unknown compression", "lzma"},
		},
		{
			name: "invalid entries among good ones", fate: stays, says: []string{"invalid entries"}, acked: true,
			bytes: packed("bad", newID(), append(append(named("good 1").append(nil), 0x92, 0xa1, 'x', 0x80, 0x91, 0x01,
				0x92, 0x01, 0x02), named("good 2").append(nil)...)),
			kept: []string{"good 1", "good 2"},
		},
		{
			name: "nanoseconds of 1e9", bytes: packed("bad", newID(), event{sec: 1, nsec: 1e9, name: "no"}.append(nil)),
			fate: stays, says: []string{"invalid entries"}, acked: true,
		},
		{
			name: "packed entries that break off", bytes: packed("bad", newID(), one[:len(one)-1]), fate: stays,
			says: []string{"invalid chunk"},
		},
		{
			name: "a broken string as a chunk", bytes: packed("bad", newID(), []byte("broken string")), fate: stays,
			says: []string{"kind="},
		},
		{
			name: "an array that is no message", bytes: []byte{0x93, 0xa1, 't', 0xc3, 0xc0}, fate: stays,
			says: []string{"invalid message"},
		},
		{name: "a tag that is no string", bytes: []byte{0x93, 0x01, 0x01, 0x80}, fate: stays, says: []string{"kind="}},
		{
			name: "a tag of 64 KiB", bytes: packed(strings.Repeat("t", 64<<10), newID(), one), fate: stays,
			says: []string{"bad tag"},
		},
		{
			name: "an id of 128 KiB", bytes: packed("bad", strings.Repeat("i", 128<<10), one), fate: stays,
			says: []string{"kind="},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			source := fmt.Sprintf("127.0.1.%d", i+1)
			bad := c.laneFrom(source)
			bad.t = t
			// The collector may close the connection before it has all.
			_, _ = bad.conn.Write(tt.bytes) //nolint:errcheck // see above
			if tt.hang {
				must(t, bad.conn.(*net.TCPConn).CloseWrite())
			}
			if len(tt.says) > 0 {
				c.says(append([]string{"peer=" + source + ":"}, tt.says...)...)
			}
			sendGood(fmt.Sprintf("while %q", tt.name))
			if tt.acked {
				bad.deadline(patience)
				if _, err := readAck(bad.acks); err != nil {
					t.Errorf("no ack: %v", err)
				}
			}
			want = append(want, tt.kept...)
			if tt.fate == closed {
				bad.wantClosed()
			} else { // the next message is taken, and no ack came before its own
				name, id := "after "+tt.name, newID()
				bad.send(packed("bad", id, named(name).append(nil)), id)
				want = append(want, name)
			}
			if n := strings.Count(c.log.String(), "peer="+source+":"); n > 1 || n == 0 && len(tt.says) > 0 {
				t.Errorf("%d lines name %s, want one", n, source)
			}
		})
	}
	sendGood("after")
	waitLines(t, out, len(want))
	c.stop()
	wantNames(t, readLines(t, out), want...)
}

// TestHostileTags wants that a tag never leads out of the output's folder.
func TestHostileTags(t *testing.T) {
	s, out := newSetup(t)
	must(t, os.Mkdir(filepath.Join(out, "inner"), 0o700))
	s.to = []string{"file://" + out + "/inner/{tag}/log.jsonl", "file://" + out + "/inner/{tag}.jsonl"}
	c := startCollector(t, s)
	l := c.lane()
	tags := []string{
		"../escape", "../../escape", "..", ".", "", "/etc/escape", "a/../../escape", "a\x00b", "\x00",
		"con\nlevel=ERROR msg=forged", "a\\..\\..\\escape",
		strings.Repeat("n", 300), strings.Repeat("d/", 200), "%2e%2e/escape", "{tag}", "\xff\xfe", "-rf", " ",
	}
	acked := 0
	for i, tag := range tags {
		name := fmt.Sprint("tag-", i)
		id := newID()
		l.write(packed(tag, "", named(name).append(nil)))
		l.send(packed("fine", id, named("fine-"+name).append(nil)), id)
		acked++
	}
	waitLines(t, out, 2*acked)
	c.stop()
	if text := c.log.String(); strings.Contains(text, "\nlevel=ERROR msg=forged") {
		t.Errorf("a tag forged a log line:\n%s", text)
	}
	entries, err := os.ReadDir(out)
	must(t, err)
	if len(entries) != 1 {
		t.Errorf("something was written beside the output's folder: %v", entries)
	}
	have := map[string]int{}
	for _, line := range readLines(t, out) {
		have[line.name()]++
		var i int
		if n, _ := fmt.Sscanf(line.name(), "tag-%d", &i); n == 1 &&
			line.tag != strings.ToValidUTF8(tags[i], "\ufffd") && tags[i] != "\xff\xfe" {
			t.Errorf("tag %q became %q", tags[i], line.tag)
		}
	}
	for i, tag := range tags {
		if n := have[fmt.Sprint("tag-", i)]; n != 2 {
			t.Errorf("the event of tag %q is in %d of 2 outputs; log: %q", tag, n, c.log.find("tag"))
		}
	}
}

// TestSlowSender sends one byte at a time: a slow peer disturbs nobody, and its message counts.
func TestSlowSender(t *testing.T) {
	t.Parallel()
	s, out := newSetup(t)
	c := startCollector(t, s)
	slow, good := c.lane(), c.lane()
	id := newID()
	message := packed("slow", id, named("slow").append(nil))
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	want := []string{"slow"}
	for i := range message {
		slow.write(message[i : i+1])
		if i%10 == 0 {
			name := fmt.Sprint("good-", i)
			goodID := newID()
			good.send(packed("good", goodID, named(name).append(nil)), goodID)
			want = append(want, name)
		}
		<-tick.C
	}
	slow.wantAck(id)
	waitLines(t, out, len(want))
	c.stop()
	wantNames(t, readLines(t, out), want...)
}

// TestUnreadAcks has a client that never reads its acks: in the end it is cut off, with a line, and
// meanwhile it disturbs nobody.
func TestUnreadAcks(t *testing.T) {
	t.Parallel()
	s, out := newSetup(t)
	c := startCollector(t, s)
	bad := c.dialFrom("127.0.0.9")
	must(t, bad.(*net.TCPConn).SetReadBuffer(4096))
	// A long id makes a long ack.
	id := strings.Repeat("i", 60_000)
	message := packed("unread", id, named("unread").append(nil))
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
	good := c.lane()
	sent := 0
	for cut := false; !cut; {
		goodID := newID()
		good.send(packed("good", goodID, named(fmt.Sprint("good-", sent)).append(nil)), goodID)
		sent++
		select {
		case n := <-written:
			t.Logf("cut off after %d messages", n)
			cut = true
		case <-time.After(20 * time.Millisecond):
		}
	}
	c.says("peer=127.0.0.9:", "slow reader")
	_, _ = io.Copy(io.Discard, bad) //nolint:errcheck // it was cut off
	c.stop()
	stored := 0
	for name := range names(readLines(t, out)) {
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
	s, out := newSetup(t)
	c := startCollector(t, s)
	good := c.lane()
	const peers = 500
	var want []string
	for i := range peers {
		conn := c.dialFrom("127.0.0.7")
		_, err := conn.Write(repeated(100, 0xc1))
		must(t, err)
		if i%50 == 0 {
			name, id := fmt.Sprint("good-", i), newID()
			good.send(packed("good", id, named(name).append(nil)), id)
			want = append(want, name)
		}
	}
	waitLines(t, out, len(want))
	c.says("left_out=")
	c.stop()
	if n := strings.Count(c.log.String(), "peer=127.0.0.7"); n == 0 || n > peers/2 {
		t.Errorf("%d lines for %d bad peers", n, peers)
	}
	wantNames(t, readLines(t, out), want...)
}
