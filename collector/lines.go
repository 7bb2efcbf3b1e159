// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/await"
	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/internal/lines"
	"github.com/spillwaylog/spillway/internal/urls"
)

// How the inputs of lines are organised. A lineInput understands the URL, listens, and keeps count
// of its connections. Each connection, and standard input, is a lineStream (linestream.go), which
// reads, makes chunks of whole lines and stores them before it reads on.

const (
	maxLine     = 64 << 10 // of max_line=, unless it says another one
	lineHighest = 64 << 20 // what it may say
	lineLinger  = 200 * time.Millisecond
)

// A lineInput is an input lines://, lines+unix:// or stdin:.
type lineInput struct {
	name    string
	network string // empty: standard input
	address string
	shown   string // the URL without its settings
	tag     string
	format  lines.Format
	options lines.ReadOptions
	maxLine int    // bytes of a line
	peerKey string // empty: records do not name their sender

	listener       net.Listener
	stdin          io.Reader
	reporter       *reporter
	memory         *lineMemory
	maxConnections int // connections at the same time; 0: any number

	mu    sync.Mutex
	conns map[*lineStream]net.Conn

	bytes, blank, cut, broken, open atomic.Int64
}

// lineMemory is what the buffers of all inputs of lines may take beyond the first bytes of each.
type lineMemory struct {
	limit int64
	held  atomic.Int64
}

// take asks for n bytes more.
func (m *lineMemory) take(n int) bool {
	if m.held.Add(int64(n)) <= m.limit {
		return true
	}
	m.held.Add(-int64(n))
	return false
}

// planLines understands the URL of an input of lines.
func planLines(u *urls.URL) (*lineInput, error) {
	l := &lineInput{shown: u.Scheme + ":", conns: make(map[*lineStream]net.Conn)}
	switch u.Scheme {
	case "lines":
		if len(u.Hosts) != 1 {
			return nil, u.Errorf("an input listens on one address; give another one as an input of its own")
		}
		l.network, l.address = "tcp", u.Hosts[0]
		l.shown += "//" + l.address
	case "lines+unix":
		l.network, l.address = "unix", u.Path
		l.shown += "//" + l.address
	}
	p := u.Params()
	l.tag = p.String("tag", "lines")
	l.format = map[string]lines.Format{
		"text": lines.FormatVerbatim, "json": lines.FormatJSON,
		"logfmt": lines.FormatLogfmt,
	}[p.Choice("parse", "text", "json", "logfmt")]
	l.options.Time = p.String("time_key", "time")
	l.options.TimeFormat = p.String("time_format", "")
	l.options.Tag, l.options.NamedTag = p.String("tag_key", ""), true // tag= is for an empty one
	l.peerKey = p.String("address_key", "")
	l.options.Drop = l.peerKey // a sender's own would stand beside ours, and before it
	longest := p.Size("max_line", maxLine)
	l.maxLine = int(min(longest, lineHighest))
	if err := p.Err(); err != nil {
		return nil, err
	}
	_, err := lines.NewReader(&l.options)
	switch {
	case err != nil:
		return nil, u.Errorf("%v", err)
	case len(l.tag) > forward.MaxTag:
		return nil, u.Errorf("a tag has at most %d bytes", forward.MaxTag)
	case longest < 16 || longest > lineHighest:
		return nil, u.Errorf("max_line= is from 16 bytes to %d MiB", lineHighest>>20)
	case l.format == lines.FormatVerbatim && (u.Has("time_key") || u.Has("time_format") || u.Has("tag_key")):
		return nil, u.Errorf("text has no keys; time_key=, time_format= and tag_key= go with parse=json or parse=logfmt")
	case l.peerKey == "message" || l.peerKey == "truncated":
		return nil, u.Errorf("address_key=%s is a key of lines that are text; name another one", l.peerKey)
	case l.network == "" && l.peerKey != "":
		return nil, u.Errorf("standard input has no address, and address_key= names where one would stand")
	}
	return l, nil
}

// openFor opens the input for a collector.
func (l *lineInput) openFor(c *Collector, name string) (err error) {
	l.name, l.reporter, l.memory, l.maxConnections = name, c.reporter, c.lineMemory, maxConnections()
	switch l.network {
	case "":
		l.stdin = c.config.Stdin
	case "unix":
		l.listener, err = listenUnix(l.address)
	default:
		l.listener, err = net.Listen("tcp", l.address)
	}
	return err
}

// Addr says where the input listens; nil for standard input.
func (l *lineInput) Addr() net.Addr {
	if l.listener == nil {
		return nil
	}
	return l.listener.Addr()
}

// announce says where the input listens.
func (l *lineInput) announce() {
	if l.listener == nil {
		codes.Reading.Info(l.reporter.log, "reading", "input", l.name)
		return
	}
	url := l.shown
	if l.network == "tcp" {
		url = "lines://" + l.listener.Addr().String()
	}
	codes.Listening.Info(l.reporter.log, "listening", "input", l.name, "url", url)
}

// Close closes the socket. Connections end with Run.
func (l *lineInput) Close() error {
	if l.listener == nil {
		return nil
	}
	if err := l.listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Stats implements Input.
func (l *lineInput) Stats() Received {
	return Received{
		Bytes: l.bytes.Load(), Connections: l.open.Load(), Skipped: l.blank.Load(), Cut: l.cut.Load(),
		Unparsed: l.broken.Load(),
	}
}

// Run takes lines until ctx ends, or until standard input does.
func (l *lineInput) Run(ctx context.Context, sink Sink) error {
	storing := context.WithoutCancel(ctx) // what was read is stored; the sink knows when that is over
	if l.listener == nil {
		l.open.Add(1)
		defer l.open.Add(-1)
		return newLineStream(l, "").run(storing, &stdinReader{ctx: ctx, r: l.stdin}, sink)
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	defer context.AfterFunc(ctx, l.endAll)()
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if !retryAccept(ctx, err) {
				return err
			}
			l.reporter.report(codes.PeerNotAccepted, "not accepted", err)
			continue
		}
		s := newLineStream(l, peerName(conn))
		l.enter(s, conn)
		if ctx.Err() != nil {
			l.endSoon(conn)
		}
		serving.Go(func() {
			defer l.leave(s, conn)
			if err := s.run(storing, conn, sink); err != nil {
				l.report(s, err)
			}
		})
	}
}

// retryAccept waits before a connection is accepted after an error that passes, and tells whether
// it is one.
func retryAccept(ctx context.Context, err error) bool {
	if errors.Is(err, net.ErrClosed) {
		return false
	}
	return await.Pause(ctx, 100*time.Millisecond) == nil || ctx.Err() != nil
}

// peerName names the other end.
func peerName(c net.Conn) string {
	host, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		return "unix"
	}
	return host
}

// enter notes a connection. Where there is no place for one more, the one that was silent for the
// longest time ends: what it has sent is stored. roster.makeRoom in forward/room.go and
// cmd/internal/syslog/stream.go do the same for their connections.
func (l *lineInput) enter(s *lineStream, conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.maxConnections > 0 && len(l.conns) >= l.maxConnections {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(l.conns)), func(a, b *lineStream) int {
			return int(a.last.Load() - b.last.Load())
		})
		_ = l.conns[oldest].SetReadDeadline(time.Unix(1, 0))
	}
	l.conns[s] = conn
	l.open.Add(1)
}

func (l *lineInput) leave(s *lineStream, conn net.Conn) {
	_ = conn.Close()
	l.mu.Lock()
	delete(l.conns, s)
	l.mu.Unlock()
	l.open.Add(-1)
}

// endAll ends the input: no connection is let in, and what is on its way from those that are is
// taken.
func (l *lineInput) endAll() {
	_ = l.listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		l.endSoon(conn)
	}
}

func (l *lineInput) endSoon(conn net.Conn) { _ = conn.SetReadDeadline(time.Now().Add(lineLinger)) }

// report tells what is wrong with a connection.
func (l *lineInput) report(s *lineStream, err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, errTakesNothing) {
		return
	}
	if leftOut, ok := l.reporter.take(codes.PeerBroken); ok {
		codes.PeerBroken.Warn(l.reporter.log, "bad input",
			withLeftOut(leftOut, "peer", s.peer, "input", l.name, "error", err)...)
	}
}
