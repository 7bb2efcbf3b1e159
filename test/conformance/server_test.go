// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/testcert"
)

// A server is one that runs, as the subject of rules: an address, perhaps the file that it writes,
// and how to get in.
type server struct {
	addr  string
	lines *lineReader // nil: what it takes is not observable
	tls   *tls.Config
	login *login
	own   *process // this repository's; nil: somebody's

	counted map[string]int // lines of each tag that a case was judged by

	maxChunk, maxUnpacked int64 // 0: not known

	// Of one of this repository's with TLS: where its certificate is, who issued that, and pairs of
	// clients.
	dir   string
	ca    *testcert.CA
	pairs map[string]*testcert.Pair
}

// servers is the subject: at a foreign address there is one, of our own there are as many as there
// are settings to test.
type servers struct {
	t   *testing.T
	all map[string]*server
}

func (*servers) name() string { return "server" }

// server returns the one with a setting. The case ends where there is none.
func (tr *trial) server(p *probe, setting string) *server {
	p.Helper()
	all := tr.sub.(*servers)
	if foreign() {
		s := all.all["plain"]
		if why := s.lacks(setting); why != "" {
			p.unseen("%s", why)
		}
		return s
	}
	return all.start(p, setting)
}

// lacks says why a foreign server cannot be tested with a setting.
func (s *server) lacks(setting string) string {
	switch {
	case setting == "plain":
		return ""
	case setting == "limits" && s.maxChunk > 0 && s.maxUnpacked > 0:
		return ""
	case setting == "limits":
		return "needs -max-chunk and -max-unpacked"
	case setting == "key" && s.login != nil:
		return ""
	case setting == "key":
		return "needs -shared-key"
	case setting == "login" && s.login != nil && s.login.user != "":
		return ""
	case setting == "login":
		return "needs -shared-key, -user and -password"
	case setting == "tls" && s.tls != nil:
		return ""
	case setting == "tls":
		return "needs -tls-ca"
	}
	return "needs a server that the suite starts itself, with the setting " + setting
}

// nothingLate wants no more lines than there were when the cases were judged.
func (all *servers) nothingLate(t *testing.T) {
	for name, s := range all.all {
		if late, err := s.late(); len(late) > 0 || err != nil {
			t.Errorf("%s: %v, %q", name, err, late)
		}
	}
}

// A conn is a connection to a server under test.
type conn struct {
	net.Conn
	p *probe
	s *server
}

// dial connects, and logs in where the server wants that.
func (s *server) dial(p *probe) *conn {
	p.Helper()
	c := s.dialBare(p)
	if s.login != nil {
		p.must(s.login.enter(c))
	}
	return c
}

// dialBare connects, over TLS where that is on.
func (s *server) dialBare(p *probe) *conn {
	p.Helper()
	nc, err := net.DialTimeout("tcp", s.addr, *wait)
	if err != nil && s.own == nil { // it may have died, and be started again just now
		until(p, "somebody listens", func() bool {
			nc, err = net.DialTimeout("tcp", s.addr, *wait)
			return err == nil
		})
	}
	p.must(err)
	if s.tls != nil {
		config := s.tls
		if config.ServerName == "" {
			config = config.Clone()
			config.ServerName, _, _ = net.SplitHostPort(s.addr)
		}
		nc = tls.Client(nc, config)
	}
	p.Cleanup(func() { nc.Close() })
	p.must(nc.SetDeadline(time.Now().Add(*wait)))
	return &conn{nc, p, s}
}

// send writes pieces, each in a write of its own. A server may close the connection before it has
// all.
func (c *conn) send(pieces ...[]byte) {
	for _, b := range pieces {
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}

// bytewise cuts b into single bytes.
func bytewise(b []byte) [][]byte { return slices.Collect(slices.Chunk(b, 1)) }

// hangUp tells the server that nothing more comes.
func (c *conn) hangUp() {
	c.p.Helper()
	cw, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		c.p.Fatalf("%T cannot be half closed", c.Conn)
	}
	_ = cw.CloseWrite() // the server may have closed first
}

// untilClosed reads all until the server closes.
func (c *conn) untilClosed() []byte {
	c.p.Helper()
	b, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.p.Errorf("the connection is not closed")
	}
	return b
}

// fenceTag is the tag of fences.
const fenceTag = "fence"

// fence sends a fence and returns what the server wrote before its ack.
func (c *conn) fence() (before []byte, id string) {
	c.p.Helper()
	id = newID()
	c.send(unhex("94 " + str(fenceTag) + "d7 00 55ece6f8 075bcd15 81 a1 6d " + str(id) + "81" + keyChunk + str(id)))
	ack := unhex(ackOf + str(id))
	var got []byte
	for buf := make([]byte, 64<<10); !bytes.HasSuffix(got, ack); {
		n, err := c.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil {
			if errors.Is(err, io.EOF) || !errors.Is(err, os.ErrDeadlineExceeded) {
				c.p.Fatalf("the connection does not stay: %v after % x", err, clip(got))
			}
			c.p.Fatalf("no ack of a good message behind, only % x", clip(got))
		}
	}
	return got[:len(got)-len(ack)], id
}

func clip(b []byte) []byte { return b[:min(len(b), 200)] }

// settle waits until what was sent before is in the lines, and returns those of a tag.
func (s *server) settle(p *probe, c *conn, id, tag string) []line {
	p.Helper()
	if s.lines == nil {
		p.unseen("needs -out: which events were taken")
	}
	if id == "" {
		if c == nil {
			c = s.dial(p)
		}
		_, id = c.fence()
	}
	until(p, "the line of a good event", func() bool {
		p.must(s.lines.read())
		return slices.ContainsFunc(s.lines.byTag[fenceTag], func(l line) bool { return strings.Contains(l.rec, id) })
	})
	if len(s.lines.bad) > 0 {
		bad := s.lines.bad
		s.lines.bad = nil
		p.Errorf("%d lines in the output are no events, such as %s", len(bad), bad[0])
	}
	lines := s.lines.byTag[tag]
	if s.counted == nil {
		s.counted = map[string]int{}
	}
	s.counted[tag] = len(lines)
	return lines
}

// late lists the tags of which more lines came after their cases were judged.
func (s *server) late() (tags []string, err error) {
	if s.lines == nil {
		return nil, nil
	}
	if err := s.lines.read(); err != nil {
		return nil, err
	}
	for tag, n := range s.counted {
		if have := len(s.lines.byTag[tag]); have != n {
			tags = append(tags, fmt.Sprintf("%s: %d lines, %d when it was looked at", tag, have, n))
		}
	}
	return tags, nil
}

// until polls until ok.
func until(p *probe, what string, ok func() bool) {
	p.Helper()
	if !within(*wait, ok) {
		p.Fatalf("not within %v: %s", *wait, what)
	}
}

// within polls until ok, or the time is up.
func within(d time.Duration, ok func() bool) bool {
	deadline := time.After(d)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			return false
		}
	}
	return true
}

// now stands for a time that is the server's own.
const now = "now "

// wantLines compares lines with events such as `1441588984.123456789 {"m":"1"}`. A second object in
// front is the metadata, which a server may keep or drop.
func wantLines(p *probe, got []line, want []string, ordered bool) {
	p.Helper()
	if len(got) != len(want) {
		p.Errorf("%d events, want %d: %.300s, want %.300s", len(got), len(want), show(got), fmt.Sprint(want))
		return
	}
	for i, w := range want {
		if text := got[i].like(w, ordered); text != w {
			p.Errorf("event %d is %.500s, want %.500s", i, text, w)
			return
		}
	}
}

func show(lines []line) string {
	var out []string
	for _, l := range lines[:min(len(lines), 5)] {
		out = append(out, l.like("", true))
	}
	return fmt.Sprint(out)
}

// like writes a line in the way in which want is written.
func (l *line) like(want string, ordered bool) string {
	when := fmt.Sprintf("%d.%09d ", l.sec, l.nsec)
	if len(want) > len(now) && want[:len(now)] == now {
		if d := time.Since(time.Unix(l.sec, l.nsec)); d > -time.Hour && d < time.Hour { // clocks differ
			when = now
		}
	}
	rec := l.rec
	if !ordered {
		rec = l.sorted
	}
	if strings.Contains(want, "} {") {
		return when + cmp.Or(l.meta, "{}") + " " + rec
	}
	return when + rec
}
