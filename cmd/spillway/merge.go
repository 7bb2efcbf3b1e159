// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/spillwaylog/spillway/cmd/internal/merge"
)

type mergeCmd struct {
	Files []string `arg:"" help:"Files of JSON lines, plain or compressed with gzip or zstd; patterns like app.*.jsonl are expanded."`

	Since   string        `help:"Only lines of this time or later: RFC 3339, or a duration like 2h, before now." placeholder:"TIME"`
	Until   string        `help:"Only lines before this time, given as for --since." placeholder:"TIME"`
	Tag     string        `help:"Only lines with this tag."`
	TimeKey string        `help:"Key of the time: RFC 3339 text, or seconds since 1970." default:"time" placeholder:"KEY"`
	TagKey  string        `help:"Key of the tag." default:"tag" placeholder:"KEY"`
	Slack   time.Duration `help:"How much earlier than a line before it a line of the same file may be." default:"0s"`
}

// Help tells what does not fit behind a flag.
func (c *mergeCmd) Help() string {
	return `Lines leave byte for byte as they came, in the order of their times; those of the same time in the order of the files, and then of their lines. Of a line only the time is read. Files are read up to where they ended when the merge began.

A line without a time that can be read is told with its file and number, and left out. Exit status: 0 when all was read, 1 when not.

To send the lines on: spillway merge app.*.jsonl | spillway send --to URL --time-key time --tag-key tag`
}

// Run merges files.
func (c *mergeCmd) Run(ctx context.Context, s *streams) error {
	o := &merge.Options{TimeKey: c.TimeKey, TagKey: c.TagKey, Tag: c.Tag, Slack: c.Slack}
	var err error
	if o.Since, err = momentOf(c.Since, time.Now()); err != nil {
		return fmt.Errorf("--since: %w", err)
	}
	if o.Until, err = momentOf(c.Until, time.Now()); err != nil {
		return fmt.Errorf("--until: %w", err)
	}
	var paths []string
	for _, f := range c.Files {
		found, err := filepath.Glob(f)
		if err != nil || len(found) == 0 {
			found = []string{f} // which is told when it is not there
		}
		paths = append(paths, found...)
	}
	screen := openTerminal(s.err)
	told := screen.through(s.err)
	o.Trouble = func(path string, line int, err error) {
		if line == 0 {
			fmt.Fprintf(told, "spillway: %q: %v\n", path, err)
			return
		}
		fmt.Fprintf(told, "spillway: %q, line %d: %v\n", path, line, err)
	}
	if screen != nil && screen.draws() && openTerminal(s.out) == nil {
		began := time.Now()
		o.Progress = func(done, all int64) { screen.set(mergeBar(done, all, time.Since(began))) }
		defer screen.set("")
	}
	r, err := merge.Run(ctx, s.out, paths, o)
	if r.Late > 0 {
		fmt.Fprintf(told, "spillway: %d lines are earlier than a line before them, by more than --slack %v\n", r.Late, c.Slack)
	}
	if r.Broken > 0 {
		err = errors.Join(err, fmt.Errorf("%d lines or files could not be read; the others are all there", r.Broken))
	}
	return err
}

// momentOf reads a time, or a duration before now; an empty text is the zero time.
func momentOf(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is neither a time like 2026-11-21T02:03:04Z nor a duration like 2h", text)
	}
	return t, nil
}

func mergeBar(done, all int64, passed time.Duration) string {
	text := humanize.IBytes(uint64(done))
	if done > all { // compressed files hold more than their size
		return text
	}
	text += " of " + humanize.IBytes(uint64(all))
	if passed > time.Second && done > 0 {
		left := time.Duration(float64(all-done) / float64(done) * float64(passed))
		text += fmt.Sprintf(", %v left", left.Round(time.Second))
	}
	return fmt.Sprintf("%d%% %s", done*100/max(1, all), text)
}
