// SPDX-License-Identifier: Apache-2.0

package syslog

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
)

// TestBadInput has senders that lie: nothing is lost that is a message, no length is believed, and
// each is told with its address, and counted.
func TestBadInput(t *testing.T) {
	long := strings.Repeat("x", 70_000)
	text := func(message string) string {
		return fmt.Sprintf(`{"facility":"user","severity":"notice","message":%q}`, message)
	}
	whole := func(message string) string { return text(message) + "\n" }
	marked := func(message string) string {
		return fmt.Sprintf(`{"facility":"user","severity":"notice","truncated":true,"message":%q}`, message) + "\n"
	}
	const cut, no = "cut, and marked", "kept as text"
	for _, tt := range []struct {
		name, sent, want string
		cut, unparsed    int64
		fates            []string
	}{
		{
			"a line of more than 64 KiB", "<13>" + long + "\n<13>behind it\n",
			marked(long[:64<<10-4]) + whole("behind it"), 1, 0,
			[]string{cut},
		},
		{
			"a counted message of more than 64 KiB", "70004 <13>" + long + "<13>behind it\n",
			marked(long[:64<<10-4]) + whole("behind it"), 1, 0,
			[]string{cut},
		},
		{
			"a count of 10^12", "1000000000000 <13>not a count\n<13>behind it\n",
			whole("1000000000000 <13>not a count") + whole("behind it"), 0, 1,
			[]string{no},
		},
		{
			"a count of 10^9 less 1", "999999999 <13>" + long + "\n<13>not a message", marked(long[:64<<10-4]), 1, 0,
			[]string{cut},
		},
		{"a count of nothing", "0 <13>no count\n", whole("0 <13>no count"), 0, 1, []string{no}},
		{"half a frame", "100 <13>half a frame", marked("half a frame"), 1, 0, []string{cut}},
		{"half a count", "100", whole("100"), 0, 1, []string{no}},
		{"half a line", "<13>half a line", whole("half a line"), 0, 0, nil},
		{
			"bytes that are no syslog", "\x01\x7f no syslog\n<13>behind it\n",
			`{"facility":"user","severity":"notice","message":"\u0001` + "\x7f no syslog\"}\n" + whole("behind it"), 0,
			1,
			[]string{no},
		},
		{"bytes that are no text", "<13>\xff\xfe\n", whole("\ufffd\ufffd"), 0, 0, nil},
		{"a number", "2026 began with a number\n", whole("2026 began with a number"), 0, 1, []string{no}},
		{"blank lines", "\n\n\r\n\x00<13>behind them\r\n\x00", whole("behind them"), 0, 0, nil},
		{"NULs", "<13>one\x00<13>two\x00", whole("one") + whole("two"), 0, 0, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			to := &sink{}
			in, log, stop := run(t, "syslog+tcp://127.0.0.1:0?tag=t", to)
			other, err := net.Dial("tcp", in.Addr().String()) // which does not notice
			must(t, err)
			defer other.Close()
			_, err = io.WriteString(other, "<13>other\n")
			must(t, err)
			eventually(t, "the other message is stored", func() bool { return len(to.events()) == 1 })
			c, err := net.Dial("tcp", in.Addr().String())
			must(t, err)
			peer := c.LocalAddr().String()
			_, err = io.WriteString(c, tt.sent)
			must(t, err)
			must(t, c.Close())
			eventually(t, "it is stored", func() bool { return len(to.events()) == 1+strings.Count(tt.want, "\n") })
			_, err = io.WriteString(other, "<13>other\n")
			must(t, err)
			eventually(t, "the other message is stored",
				func() bool { return len(to.events()) == 2+strings.Count(tt.want, "\n") })
			_ = stop() // the end of its context
			var got strings.Builder
			for _, e := range to.events() {
				if e.line != text("other") {
					got.WriteString(e.line + "\n")
				}
			}
			if got.String() != tt.want {
				t.Errorf("got %.1000s\nwant %.1000s", &got, tt.want)
			}
			if s := in.Stats(); s.Cut != tt.cut || s.Unparsed != tt.unparsed {
				t.Errorf("cut %d, unparsed %d", s.Cut, s.Unparsed)
			}
			told := log.String()
			if strings.Count(told, "bad input") != len(tt.fates) {
				t.Errorf("told: %s", told)
			}
			for _, fate := range tt.fates {
				if !strings.Contains(told, "peer="+peer) || !strings.Contains(told, fate) {
					t.Errorf("told: %s", told)
				}
			}
		})
	}
}

// TestBadDatagrams: a datagram that is too long is cut, and told with its sender, and so is one
// that is no syslog; a flood of them is one line.
func TestBadDatagrams(t *testing.T) {
	to := &sink{}
	in, log, stop := run(t, "syslog+udp://127.0.0.1:0?max_message=1KiB", to)
	c, err := net.Dial("udp", in.Addr().String())
	must(t, err)
	defer c.Close()
	const n = 100
	for range n {
		_, err = io.WriteString(c, "no syslog")
		must(t, err)
	}
	_, err = io.WriteString(c, "<13>"+strings.Repeat("x", 2000))
	must(t, err)
	eventually(t, "all is stored", func() bool { return len(to.events()) == n+1 })
	_ = stop() // the end of its context
	if s := in.Stats(); s.Cut != 1 || s.Unparsed != n {
		t.Errorf("%+v", s)
	}
	told := log.String()
	for _, fate := range []string{"cut, and marked", "kept as text"} {
		if strings.Count(told, "peer="+c.LocalAddr().String()+" fate=\""+fate) != 1 {
			t.Errorf("told: %s", told)
		}
	}
}

// TestBadUnix: who sends by a unix socket has no address, and is told all the same.
func TestBadUnix(t *testing.T) {
	for network, kind := range map[string]string{"unixgram": "dgram", "unix": "stream"} {
		to := &sink{}
		path := filepath.Join(t.TempDir(), "s")
		_, log, stop := run(t, "syslog+unix://"+path+"?type="+kind, to)
		c, err := net.Dial(network, path)
		must(t, err)
		_, err = io.WriteString(c, "no syslog\n")
		must(t, err)
		must(t, c.Close())
		eventually(t, "it is stored", func() bool { return len(to.events()) == 1 })
		_ = stop() // the end of its context
		if !strings.Contains(log.String(), `msg="bad input" code=line-unparsed peer=unix `) {
			t.Errorf("%s: told: %s", network, log)
		}
	}
}

// TestHosts: a million hosts are as many tags, and what is remembered of them is bounded.
func TestHosts(t *testing.T) {
	in := &input{settings: &settings{zone: time.UTC}}
	var err error
	in.tag, err = parseTag("syslog.{host}")
	must(t, err)
	b := in.batch()
	stored := &tags{}
	now := time.Now()
	for i := range 1_000_000 {
		b.add(fmt.Appendf(nil, "<13>Nov 24 14:05:06 host%d app: x", i), false, now, origin{})
		if b.bytes > 64<<10 {
			must(t, b.store(t.Context(), stored))
			if len(b.chunks) > maxTags || b.kept > 4*batchBytes {
				t.Fatalf("%d tags and %d bytes are kept", len(b.chunks), b.kept)
			}
		}
	}
	must(t, b.store(t.Context(), stored))
	if stored.n != 1_000_000 {
		t.Errorf("%d tags", stored.n)
	}
}

// tags is a sink that counts chunks.
type tags struct {
	sink
	n int
}

func (s *tags) Store(_ context.Context, chunks []*forward.Chunk, _ []byte) (func(context.Context) error, error) {
	s.n += len(chunks)
	return nil, nil
}

// TestFramersMemory: a message for which there is no memory is cut, and what is behind it is whole.
func TestFramersMemory(t *testing.T) {
	for _, head := range []string{"", "1000000 "} {
		f := framer{maxMessage: 1 << 20, memory: &memory{limit: 100_000}}
		var cuts, lengths []any
		one := func(m []byte, cut bool) { cuts, lengths = append(cuts, cut), append(lengths, len(m)) }
		text := head + "<13>" + strings.Repeat("x", 1_000_000-4)
		if head == "" {
			text += "\n"
		}
		for rest := []byte(text + "<13>behind it\n"); len(rest) > 0; f.each(one) {
			n := copy(f.room(), rest)
			f.took(n)
			rest = rest[n:]
		}
		if len(cuts) != 2 || cuts[0] != true || cuts[1] != false || lengths[0].(int) > 100_000 ||
			lengths[0].(int) < 30_000 || lengths[1] != 13 {
			t.Errorf("cut %v, lengths %v", cuts, lengths)
		}
		f.free()
		if f.memory.held.Load() != 0 {
			t.Errorf("%d bytes are held", f.memory.held.Load())
		}
	}
}
