// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/spillwaylog/spillway/cmd/internal/merge"
	"github.com/spillwaylog/spillway/internal/lines"
)

type mergeCmd struct {
	Files []string `arg:"" help:"Files, plain or compressed with gzip or zstd, and directories of journals and rings; patterns like app.*.jsonl are expanded."`

	Format  string        `help:"What the files are: json (a line each), logfmt, text (lines that begin with a time), or auto: what the first lines of each file are." enum:"auto,json,logfmt,text" default:"auto"`
	Since   string        `help:"Only lines of this time or later: RFC 3339, or a duration like 2h, before now." placeholder:"TIME"`
	Until   string        `help:"Only lines before this time, given as for --since." placeholder:"TIME"`
	Tag     string        `help:"Only lines with this tag."`
	TimeKey string        `help:"Key of the time in json and logfmt: text, or a number since 1970 (${default}). In logfmt ts does as well as time." default:"time" placeholder:"KEY"`
	TagKey  string        `help:"Key of the tag (${default})." default:"tag" placeholder:"KEY"`
	Slack   time.Duration `help:"How much earlier than a line before it a line of the same file may be." default:"0s"`
	Follow  bool          `help:"Go on as plain files grow, are rotated or are new, until interrupted. Lines are held for --slack before they are written."`
	Output  string        `help:"lines: byte for byte as they came; text: for people, in colours on a terminal." enum:"lines,text" default:"lines"`
	To      string        `help:"Send the lines there, with acks, and write none: forward://host:port, forward+tls://host:port?ca=PEM or forward+unix:///path." placeholder:"URL"`
	Else    string        `help:"With --to: the tag of lines that have none (${default})." default:"lines" placeholder:"TAG"`
	Timeout time.Duration `help:"With --to: give up when what is sent together is not acked within this time." default:"30s"`
	Memory  size          `help:"Memory for buffers and waiting lines; what is more goes to a temporary file, in passes." default:"64MiB"`
}

// Help tells what does not fit behind a flag.
func (c *mergeCmd) Help() string {
	return `Lines leave byte for byte as they came, in the order of their times; those of the same time in the order of the files, and then of their lines. Of a line only the time is read. Files are read up to where they ended when the merge began, or with --follow as they grow.

Text begins with a time: 2026-11-21T02:03:04Z and its kin, syslog's Nov 21 02:03:04, klog's I1121 02:03:04.5, seconds since 1970, or has the one of web servers' access logs. A line of text or logfmt without a time belongs to the line before it. Times without a zone are local (the environment's TZ), times without a year are of the last year in which they are no later than the file.

A directory is a journal, a data directory, a logger's spill or its Dir with all of them, a ring, or one of rings, in use or not. Its events are lines as journal cat prints them, in the order of their times.

A line of JSON without a time that can be read is told with its file and number, and left out. Exit status: 0 when all was read, 1 when not. The temporary file lies in the environment's TMPDIR.

--output text writes JSON and logfmt as the logger writes text: time, level, tag, message, all else as key=value. Text stays as it is, but for controls, which are escaped.

--to sends the lines to a Forward server, each as an event of its time, under its tag or else --else; a line of JSON or logfmt is the record, without its time and its tag, and one of text is the member message of one. It tells how many events are acked, and exits with 1 if some are not. Started again it sends all again. Parameters of the URL are those of send, see spillway help send.`
}

const minMergeMemory = 1 << 20

// Validate implements kong's interface.
func (c *mergeCmd) Validate() error {
	if c.Memory < minMergeMemory || c.Memory > math.MaxInt/2 {
		return fmt.Errorf("--memory: %d bytes are too few or too many; at least 1MiB", c.Memory)
	}
	if c.Slack < 0 {
		return fmt.Errorf("--slack: %v is less than nothing", c.Slack)
	}
	if c.Timeout <= 0 {
		return fmt.Errorf("--timeout: %v is no time in which an ack can come", c.Timeout)
	}
	if c.To != "" && c.Output != "lines" {
		return errors.New("--output: with --to nothing is written")
	}
	return nil
}

// Run merges files.
func (c *mergeCmd) Run(ctx context.Context, s *streams) error {
	o := &merge.Options{TimeKey: c.TimeKey, TagKey: c.TagKey, Tag: c.Tag, Slack: c.Slack, Memory: int(c.Memory)}
	if c.Format != "auto" {
		o.Format = c.Format
	}
	var err error
	if o.Since, err = momentOf(c.Since, time.Now()); err != nil {
		return usageError{fmt.Errorf("--since: %w", err)}
	}
	if o.Until, err = momentOf(c.Until, time.Now()); err != nil {
		return usageError{fmt.Errorf("--until: %w", err)}
	}
	o.Dir = (&mergeDir{keys: lines.Options{Time: c.TimeKey, Tag: c.TagKey}}).events
	if c.Follow {
		o.Follow = c.paths
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(max(int64(c.Memory), minMerge) + minMerge/4))
	}
	screen := openTerminal(s.err)
	told := &inTurn{w: screen.through(s.err)}
	sender, err := c.lines(ctx, s, told, o)
	if err != nil {
		return err
	}
	if sender != nil {
		defer sender.client.Close()
	}
	warnings := mergeWarnings{to: told, broken: map[string]int{}}
	o.Warn = warnings.tell
	if screen != nil && screen.draws() && (openTerminal(s.out) == nil || sender != nil) && !c.Follow {
		began := time.Now()
		o.Progress = func(done, all int64) { screen.set(mergeBar(done, all, time.Since(began))) }
		defer screen.set("")
	}
	r, err := merge.Run(ctx, s.out, c.paths(), o)
	warnings.end()
	if sender != nil {
		err = errors.Join(err, sender.end())
		if _, printErr := fmt.Fprintf(s.out, "%d acked\n", sender.acked); err == nil {
			err = printErr
		}
		if left := r.Written - int64(sender.acked); err != nil && left > 0 {
			err = fmt.Errorf("%d lines not acked, and what was not read yet: %w", left, err)
		}
	}
	if r.Late > 0 {
		fmt.Fprintf(told, "spillway: %d lines are earlier than a line before them, by more than --slack %v\n", r.Late,
			c.Slack)
	}
	if err == nil && r.Broken > 0 {
		err = fmt.Errorf("%d lines or files could not be read; the others are all there", r.Broken)
	}
	return err
}

// lines sets what becomes of the lines, where they are not written as they came. A sender has to be
// closed.
func (c *mergeCmd) lines(ctx context.Context, s *streams, warnings io.Writer, o *merge.Options) (*mergeSender, error) {
	if c.To == "" && c.Output == "lines" {
		return nil, nil
	}
	reader, err := newMergeReader(c.TimeKey, c.TagKey)
	if err != nil {
		return nil, fmt.Errorf("--time-key, --tag-key: %w", err)
	}
	if c.To == "" {
		o.Lines = newMergeText(reader, s.out)
		return nil, nil
	}
	client, url, err := clientTo(c.To, "merge", warnings)
	if err != nil {
		return nil, err
	}
	client.Window = sendWindow
	server := &reach{w: warnings, url: url, address: client.Address}
	client.Changed = server.changed
	if c.Follow { // which an interrupt ends: what was read is sent all the same
		ctx = context.WithoutCancel(ctx)
	}
	sender := &mergeSender{ctx: ctx, timeout: c.Timeout, client: client, server: server, reader: reader, tag: c.Else}
	o.Lines = sender
	return sender, nil
}

// mergeWarnings tell what cannot be read, of each file the first lines and then how many more.
type mergeWarnings struct {
	to     io.Writer
	broken map[string]int // lines of files
}

const maxTold = 10 // broken lines of a file

func (m *mergeWarnings) tell(path string, line int, err error) {
	where := strconv.Quote(path)
	if line > 0 {
		if m.broken[path]++; m.broken[path] > maxTold {
			return
		}
		where = fmt.Sprintf("%s, line %d", where, line)
	}
	if e, ok := err.(*fs.PathError); ok && e.Path == path { //nolint:errorlint // a wrapped one says more
		err = e.Err
	}
	for text := range strings.SplitSeq(err.Error(), "\n") { // joined ones have a line each
		fmt.Fprintf(m.to, "spillway: %s: %s\n", where, text)
	}
}

func (m *mergeWarnings) end() {
	for _, path := range slices.Sorted(maps.Keys(m.broken)) {
		if more := m.broken[path] - maxTold; more > 0 {
			fmt.Fprintf(m.to, "spillway: %q: %d more lines like these\n", path, more)
		}
	}
}

// paths are the files that are there now, each once.
func (c *mergeCmd) paths() []string {
	var paths []string
	seen := map[string]bool{}
	for _, f := range c.Files {
		found, err := filepath.Glob(f)
		if err != nil || len(found) == 0 {
			found = []string{f} // which is told when it is not there
		}
		for _, path := range found {
			if !seen[filepath.Clean(path)] {
				seen[filepath.Clean(path)] = true
				paths = append(paths, path)
			}
		}
	}
	return paths
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

// minMerge is what a merge needs, however little it is given, in bytes: most of it decoders. Of
// what it is given by default buffers take less than half.
const minMerge = 16 << 20

func mergeBar(done, all int64, passed time.Duration) string {
	done, all = min(done, all), max(1, all)
	text := humanize.IBytes(uint64(done)) + " of " + humanize.IBytes(uint64(all))
	if passed > time.Second && done > 0 {
		left := time.Duration(float64(all-done) / float64(done) * float64(passed))
		text += fmt.Sprintf(", %v left", left.Round(time.Second))
	}
	return barOf(int(float64(done)/float64(all)*100)) + text
}
