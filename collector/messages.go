// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/internal/lines"
)

// A Message is what the collector said last of something that went wrong: a warning or an error of
// its log.
type Message struct {
	Time  time.Time // when it was said last
	Level slog.Level
	Code  string // attribute code; empty: it has none
	Text  string
	About string // attribute output, or input
	Error string // attribute error
	Attrs string // all others, key=value, as a line of text has them
	Times int64  // how often it was said
}

// lastMessages remember what was said, each kind once: what hostile peers make be said again and
// again pushes nothing else out.
type lastMessages struct {
	mu   sync.Mutex
	last []Message // the one that was said last is the last one
}

const (
	maxMessages    = 32
	maxMessageText = 8 << 10 // bytes of its error, and of all others; of /status: less, once secrets are hidden
)

// all returns a copy.
func (m *lastMessages) all() []Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.last)
}

func (m *lastMessages) note(s Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.last, func(o Message) bool {
		return o.Text == s.Text && o.Code == s.Code &&
			o.About == s.About
	})
	switch {
	case i >= 0:
		s.Times = m.last[i].Times
	case len(m.last) >= maxMessages:
		i = 0
	}
	if i >= 0 {
		m.last = slices.Delete(m.last, i, i+1)
	}
	s.Times++
	m.last = append(m.last, s)
}

// over returns a handler that notes what goes by it to another one.
func (m *lastMessages) over(to slog.Handler) slog.Handler { return &noting{to: to, messages: m} }

type noting struct {
	to       slog.Handler
	messages *lastMessages
	attrs    []slog.Attr // of With
}

// Enabled implements slog.Handler.
func (n *noting) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn || n.to.Enabled(ctx, l)
}

// Handle implements slog.Handler.
func (n *noting) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		n.messages.note(n.message(r))
	}
	if !n.to.Enabled(ctx, r.Level) {
		return nil
	}
	return n.to.Handle(ctx, r)
}

// message is what a record says.
func (n *noting) message(r slog.Record) Message {
	t := Message{Time: r.Time, Level: r.Level, Text: r.Message}
	var line bytes.Buffer
	h := slog.NewTextHandler(&line, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey, slog.LevelKey, slog.MessageKey:
		case "code":
			t.Code = a.Value.String()
		case "output", "input":
			t.About = a.Value.String()
		case "error":
			t.Error = lines.Shortened(a.Value.String(), maxMessageText)
		default:
			return a
		}
		return slog.Attr{}
	}})
	_ = h.WithAttrs(n.attrs).Handle(context.Background(), r) // a buffer takes all
	t.Attrs = lines.Shortened(strings.TrimSpace(line.String()), maxMessageText)
	return t
}

// WithAttrs implements slog.Handler.
func (n *noting) WithAttrs(attrs []slog.Attr) slog.Handler {
	m := *n
	m.to, m.attrs = n.to.WithAttrs(attrs), slices.Concat(n.attrs, attrs)
	return &m
}

// WithGroup implements slog.Handler. What is noted has no groups.
func (n *noting) WithGroup(name string) slog.Handler {
	m := *n
	m.to = n.to.WithGroup(name)
	return &m
}
