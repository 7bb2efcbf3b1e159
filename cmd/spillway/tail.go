// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"github.com/spillwaylog/spillway/cmd/internal/config"
	"github.com/spillwaylog/spillway/cmd/internal/expression"
	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/lines"
)

type tailCmd struct {
	adminFlags
	Tag    string `help:"Pattern of tags: * is one part or some of it, ** any parts, {a,b} one of these (${default})." default:"**" placeholder:"GLOB"`
	Where  string `help:"Condition, such as 'level == \"ERROR\" and user.id != 7' (docs/steps.md)." placeholder:"EXPR"`
	Rate   int    `help:"Events a second that are shown at most; 1 to ${maxTail} (${default})." default:"${tail}" placeholder:"N"`
	Format string `help:"text, coloured on a terminal, or json, a line for each event." enum:"text,json" default:"text"`
}

// Help tells what does not fit behind a flag.
func (c *tailCmd) Help() string {
	return `Events are shown as they came, as soon as the journal has taken them: before all routes and steps, and so with what these mask or leave out. What is too fast is skipped, and told: in text on standard error, in JSON as a line {"skipped":N}. With --where, these are events that nobody has looked at: some of them might have been shown.

` + adminHelp
}

// Run shows events until ctx ends.
func (c *tailCmd) Run(ctx context.Context, s *streams) error {
	if err := c.check(); err != nil {
		return err
	}
	client, err := c.dial(s.err)
	if err != nil {
		return err
	}
	defer client.Close()
	query := url.Values{"tag": {c.Tag}, "rate": {strconv.Itoa(c.Rate)}}
	if c.Where != "" {
		query.Set("where", c.Where)
	}
	asked, silent := context.WithCancel(ctx)
	defer silent()
	body, err := client.Get(asked, "/tail", query)
	if err == nil {
		defer body.Close()
		watch := time.AfterFunc(maxSilence, silent)
		defer watch.Stop()
		err = c.show(&heard{body, watch}, s)
	}
	switch {
	case ctx.Err() != nil: // that is how it ends
		return nil
	case asked.Err() != nil:
		return fmt.Errorf("%s: it has said nothing for %v", client.Address(), maxSilence)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s: the collector shows no more: it has ended, or this was not read for too long",
			client.Address())
	}
	return err
}

// maxSilence is how long a collector may say nothing: it says each 5 s that it is there.
const maxSilence = 20 * time.Second

// heard is a reader whose timer begins anew with each read that has something.
type heard struct {
	from  io.Reader
	timer *time.Timer
}

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.from.Read(p)
	if n > 0 {
		h.timer.Reset(maxSilence)
	}
	return n, err
}

// check finds mistakes before anything is asked.
func (c *tailCmd) check() error {
	rate := cmp.Or(c.Rate, -1) // 0 would be the default there
	err := collector.CheckTail(&collector.TailOptions{Tag: c.Tag, Where: c.Where, Rate: rate}, expression.Compile)
	if err == nil {
		return nil
	}
	var wrong *collector.TailError
	if !errors.As(err, &wrong) || wrong.At < 0 {
		return usageError{fmt.Errorf("--%w", err)}
	}
	text := map[string]string{"tag": c.Tag, "where": c.Where}[wrong.Of]
	return usageError{config.Mistakes{config.MistakeIn("--"+wrong.Of, text, wrong.At, wrong.Text)}}
}

// maxTailLine is the longest line that is read: an event has a MiB, and JSON may be six times as
// long.
const maxTailLine = 16 << 20

// show writes what comes to its end, which is an error.
func (c *tailCmd) show(from io.Reader, s *streams) error {
	t := &tailText{json: c.Format == "json", text: newText(s.out, lines.StdFlags|lines.Tag), told: s.err}
	var err error
	if t.reader, err = lines.NewReader(&lines.ReadOptions{Time: "time", Tag: "tag"}); err != nil {
		return err
	}
	r := bufio.NewReaderSize(from, 64<<10)
	w := bufio.NewWriterSize(s.out, 64<<10)
	var long []byte // the beginning of a line that is longer than r's buffer
	for {
		line, err := r.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(long)+len(line) <= maxTailLine:
			long = append(long, line...)
			continue
		case errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("a line is longer than %s", humanize.IBytes(maxTailLine))
		case err != nil: // half a line is no event
			return errors.Join(err, w.Flush())
		}
		if len(long) > 0 {
			line = append(long, line...)
			long = nil
		}
		if err := t.line(w, bytes.TrimSuffix(line, []byte{'\n'})); err != nil {
			return errors.Join(err, w.Flush())
		}
		if r.Buffered() == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
	}
}

// A tailText writes lines of a tail for people or programs.
type tailText struct {
	json   bool
	reader *lines.Reader
	text   *lines.Text
	told   io.Writer

	record, out []byte
}

// skippedStart is how a line begins that says how much was skipped. Those of events begin with
// their time.
const skippedStart = `{"skipped":`

func (t *tailText) line(w *bufio.Writer, line []byte) error {
	if bytes.HasPrefix(line, []byte(skippedStart)) {
		var told struct {
			Skipped int64 `json:"skipped"`
		}
		if err := json.Unmarshal(line, &told); err != nil {
			return fmt.Errorf("a line is not understood: %w", err)
		}
		switch {
		case told.Skipped <= 0: // it only says that the collector is there
			return nil
		case !t.json:
			if err := w.Flush(); err != nil { // so that it stands where it belongs
				return err
			}
			_, err := fmt.Fprintf(t.told, "spillway: %s events skipped\n", humanize.Comma(told.Skipped))
			return err
		}
	}
	if t.json {
		t.out = append(appendVisible(t.out[:0], line), '\n')
	} else {
		var e lines.Event
		t.record, e = t.reader.AppendRecord(t.record[:0], line)
		t.out = t.text.AppendLine(t.out[:0], string(e.Tag), forward.Entry{Sec: e.Sec, Nsec: e.Nsec, Record: t.record})
	}
	_, err := w.Write(t.out)
	if cap(t.out)+cap(t.record) > maxTailLine {
		t.out, t.record = nil, nil
	}
	return err
}

// appendVisible appends a line of JSON with what does something to a terminal as JSON writes it in
// ASCII. JSON has that in texts alone, and there it stays the same; but for blanks between these.
func appendVisible(dst, line []byte) []byte {
	for _, r := range strings.ToValidUTF8(string(line), "\ufffd") {
		switch {
		case r == '\t' || r == '\r':
			dst = append(dst, ' ')
		case lines.IsHidden(r):
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}
