// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/internal/codes"
)

// A status is what a collector did between two looks, and how it stands at the second.
// docs/serve.md explains each word.
type status struct {
	before, now collector.Stats
	at          time.Time
	period      time.Duration
}

// bytesIn is what all inputs have read.
func bytesIn(s *collector.Stats) (n int64) {
	for i := range s.Inputs {
		n += s.Inputs[i].Bytes
	}
	return n
}

// connections is how many all inputs have.
func connections(s *collector.Stats) (n int64) {
	for i := range s.Inputs {
		n += s.Inputs[i].Connections
	}
	return n
}

// out is how many events and bytes of an output came since the look before.
func (s *status) out(i int) (events, bytes int64) {
	now, before := &s.now.Outputs[i], &collector.OutputStats{}
	if i < len(s.before.Outputs) { // else a reload has added it; those before it stay where they are
		before = &s.before.Outputs[i]
	}
	return now.Out - before.Out, now.Bytes - before.Bytes
}

// failures calls f for what does not work now: the journal or an output, by its name.
func (s *status) failures(f func(what string, failure *collector.Failure, lasts time.Duration)) {
	each := func(what string, failure *collector.Failure) {
		if failure != nil {
			f(what, failure, s.at.Sub(failure.Since).Round(time.Second))
		}
	}
	each("journal", s.now.Failure)
	for i := range s.now.Outputs {
		each(s.now.Outputs[i].Name, s.now.Outputs[i].Failure)
	}
}

// wrong says what does not work now, and since when.
func (s *status) wrong() []string {
	var list []string
	s.failures(func(what string, f *collector.Failure, lasts time.Duration) {
		list = append(list, fmt.Sprintf("%s since %s (%v): %s",
			what, f.Since.UTC().Format(time.RFC3339), lasts, strings.TrimPrefix(f.Err.Error(), what+": ")))
	})
	return list
}

// log writes the status as one line.
func (s *status) log(log *slog.Logger) {
	wrong := s.wrong()
	if len(wrong) > 0 {
		codes.Status.Warn(log, "status", s.attrs(wrong)...)
		return
	}
	codes.Status.Info(log, "status", s.attrs(nil)...)
}

func (s *status) attrs(wrong []string) []any {
	attrs := []any{
		slog.Duration("period", s.period.Round(time.Millisecond)),
		slog.Int64("in", s.now.In-s.before.In),
		slog.Int64("in_bytes", bytesIn(&s.now)-bytesIn(&s.before)),
	}
	for _, n := range []struct {
		name        string
		now, before int64
	}{
		{"repeated", s.now.Repeated, s.before.Repeated},
		{"skipped", s.now.Skipped, s.before.Skipped},
		{"invalid", s.now.Invalid, s.before.Invalid},
		{"oversize", s.now.Oversize, s.before.Oversize},
		{"refused", s.now.Refused, s.before.Refused},
		{"refused_messages", s.now.RefusedMessages, s.before.RefusedMessages},
	} {
		if d := n.now - n.before; d > 0 {
			attrs = append(attrs, slog.Int64(n.name, d))
		}
	}
	for i := range s.now.Outputs {
		o := &s.now.Outputs[i]
		events, bytes := s.out(i)
		if o.Removed && events == 0 {
			continue
		}
		group := []any{
			slog.String("url", o.URL), slog.Int64("out", events), slog.Int64("bytes", bytes),
			slog.Int64("behind", o.Behind), slog.Int64("behind_bytes", o.BehindBytes),
			slog.Duration("behind_for", o.BehindFor.Round(time.Second)),
		}
		if o.Name != o.URL {
			group = slices.Insert(group, 0, any(slog.String("name", o.Name)))
		}
		attrs = append(attrs, slog.Group(fmt.Sprint("output", i), group...))
	}
	attrs = append(attrs, slog.Group("journal", slog.Int64("used", s.now.Journal.Used),
		slog.Int64("limit", s.now.Journal.MaxBytes)),
		slog.Int64("connections", connections(&s.now)))
	if len(wrong) > 0 {
		attrs = append(attrs, slog.String("wrong", strings.Join(wrong, "; ")))
	}
	return attrs
}

// line is the status for a terminal. A narrow one cuts its end off, so what is wrong comes first,
// in few words: the log has them all.
func (s *status) line() string {
	var b strings.Builder
	s.failures(func(what string, f *collector.Failure, lasts time.Duration) {
		cause := f.Err
		for next := cause; next != nil; next = errors.Unwrap(next) {
			cause = next
		}
		fmt.Fprintf(&b, "WRONG for %v, %s: %s | ", lasts, outputName(what), short(cause.Error(), 30))
	})
	rate := func(n int64) string {
		return humanize.Comma(int64(float64(n)/max(s.period.Seconds(), 0.001)+0.5)) + "/s"
	}
	fmt.Fprintf(&b, "events in %s, %s", humanize.Comma(s.now.In), rate(s.now.In-s.before.In))
	for i := range s.now.Outputs {
		o := &s.now.Outputs[i]
		events, _ := s.out(i)
		if o.Removed && events == 0 {
			continue
		}
		fmt.Fprintf(&b, " | %s out %s, %s, ", outputName(o.Name), humanize.Comma(o.Out), rate(events))
		switch {
		case o.Behind > 0:
			fmt.Fprintf(&b, "behind %s (%s, %v)", humanize.Comma(o.Behind), humanize.IBytes(uint64(o.BehindBytes)),
				o.BehindFor.Round(time.Second))
		case s.now.Counting:
			b.WriteString("counting what is behind")
		default:
			b.WriteString("nothing behind")
		}
	}
	fmt.Fprintf(&b, " | journal %s of %s | %s connections",
		humanize.IBytes(uint64(s.now.Journal.Used)), humanize.IBytes(uint64(s.now.Journal.MaxBytes)),
		humanize.Comma(connections(&s.now)))
	return printableASCII(b.String())
}

// outputName is what names an output on a narrow terminal: its name, or the last part of its path.
func outputName(url string) string {
	url, _, _ = strings.Cut(url, "?")
	return short(url[strings.LastIndexByte(url, '/')+1:], 30)
}

func short(text string, limit int) string {
	if len(text) > limit {
		text = text[:limit-2] + ".."
	}
	return text
}

// printableASCII replaces what would move a terminal's cursor or take another width.
func printableASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}
