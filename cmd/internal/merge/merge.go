// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"time"
)

// Options are those of a merge. The zero value has the defaults.
type Options struct {
	Format  string         // of the files: JSON, Logfmt, Text, or Auto, by the first lines of each
	TimeKey string         // the key of the time; "" is "time"
	TagKey  string         // the key of the tag; "" is "tag"
	Tag     string         // only lines with this tag; "" is all
	Since   time.Time      // only lines of this time or later; zero is all
	Until   time.Time      // only lines before this time; zero is all
	Slack   time.Duration  // how much earlier than a line before it a line of a file may be
	Memory  int            // bytes for buffers; 0 is 64 MiB. What is more goes to a temporary file
	Zone    *time.Location // of times that say none; nil is the local one

	// Follow makes a merge that goes on, until its context ends, as plain files grow, are rotated
	// or are new. It tells now and then which files there are. What is read is held for Slack, of
	// the real time, and not in a temporary file. Nil: the merge ends with the files.
	Follow func() []string
	// Dir gives the events of a directory as lines of JSON with their times, in any order, until
	// yield returns an error, which it hands on. Nil: there are none. The lines have TagKey.
	Dir func(path string, yield Yield) error
	// Lines takes the lines in the place of Run's writer. Nil: they are written.
	Lines Lines
	// Warn is told what cannot be read: a line of a file, or with line 0 a file. It may be nil.
	Warn func(path string, line int, err error)
	// Progress is told now and then how many bytes were read, of files as they lie on disk and of
	// temporary ones, and how many that will be as far as that is known. It may be nil.
	Progress func(done, all int64)
}

// Yield takes a line, which may change afterwards, and its time in nanoseconds since 1970.
type Yield func(ns int64, line []byte) error

// Result is what became of the lines.
type Result struct {
	Written int64 // lines
	Left    int64 // lines of other times or tags
	Late    int64 // lines written after a later one, because they were later than Slack allows
	Broken  int64 // lines and files that could not be read, or not to their end
}

// What is wrong with a line.
var (
	ErrTime     = errors.New("no time that can be read")
	ErrTorn     = errors.New("the line is torn: it does not end with }")
	ErrUnfinish = errors.New("the last line has no end yet")
)

const progressEvery = 4 << 20 // bytes

type merge struct {
	Options
	Result
	files    []*input
	spool    spool
	all      int64 // bytes of files
	told     int64 // of the progress
	base     int   // bytes of a buffer
	maxFiles int   // files that are merged at once
	grown    int   // bytes of buffers beyond base
	ended    error // why the reading was ended
	held     held
	room     []byte // for a line that is read again
	out      *bufio.Writer
	since    int64
	until    int64
	last     int64 // time of the line written last
}

// Run writes the lines of files to w in the order of their times. The error is one of w, of the
// temporary file, or ctx's; what is wrong with files is counted and goes to Warn.
func Run(ctx context.Context, w io.Writer, paths []string, o *Options) (Result, error) {
	m := newMerge(o, len(paths))
	m.out = bufio.NewWriterSize(w, 256<<10)
	defer m.close()
	m.endWith(ctx)
	err := m.open(ctx, paths)
	for err == nil && len(m.files) > m.maxFiles {
		if m.Follow != nil {
			return m.Result, m.tooMany()
		}
		err = m.pass()
	}
	if err == nil {
		err = m.merge(m.files, m.put)
	}
	if err == nil && m.Follow != nil {
		err = m.follow(ctx, len(paths))
	}
	for err == nil && !m.held.empty() {
		err = m.held.release(m.writeHeld)
	}
	if err != nil && m.ended != nil {
		err = m.ended
	}
	if err != nil && ctx.Err() == nil {
		return m.Result, err
	}
	return m.Result, errors.Join(err, m.flush())
}

// merge gives the lines of files to put, each as the line that its file has taken.
func (m *merge) merge(files []*input, put func(*input) error) error {
	var heap entries
	for _, f := range files {
		ok, err := m.advance(f)
		if err != nil {
			return err
		}
		if ok {
			heap = append(heap, entry{f.time, f.n, f})
		}
	}
	heap.order()
	for len(heap) > 0 {
		f := heap[0].file
		if err := put(f); err != nil {
			return err
		}
		ok, err := m.advance(f)
		if err != nil {
			return err
		}
		if !ok {
			heap.remove()
			continue
		}
		heap[0].time, heap[0].n = f.time, f.n
		heap.down(0)
	}
	return nil
}

// pass makes fewer files of many: runs, each of as many as can be merged at once. Order is kept,
// for the runs have the files in their order.
func (m *merge) pass() error {
	var runs []*input
	for files := range slices.Chunk(m.files, m.maxFiles) {
		w := m.spool.newRun()
		err := m.merge(files, func(f *input) error {
			line, ok := m.line(f)
			if !ok {
				return nil
			}
			return w.add(f.time, f.n, f.number, line)
		})
		if err != nil {
			return err
		}
		f, err := w.end()
		if err != nil {
			return err
		}
		runs = append(runs, f)
	}
	m.files = runs
	return nil
}

func newMerge(o *Options, files int) *merge {
	m := &merge{Options: *o, since: math.MinInt64, until: math.MaxInt64, last: math.MinInt64}
	m.TimeKey = cmp.Or(m.TimeKey, "time")
	m.TagKey = cmp.Or(m.TagKey, "tag")
	m.Zone = cmp.Or(m.Zone, time.Local)
	if m.Memory <= 0 {
		m.Memory = 64 << 20
	}
	// Half of the memory is for buffers, a quarter for what they have grown by, a quarter for lines
	// that are held.
	m.maxFiles = max(2, m.Memory/2/minBuffer)
	m.base = min(max(m.Memory/2/max(1, min(files, m.maxFiles)), minBuffer), maxBuffer)
	m.spool.base = m.base
	m.held = held{spool: &m.spool, limit: m.Memory / 4}
	if m.Follow != nil {
		m.held.limit = math.MaxInt // what is more is released
	}
	if !m.Since.IsZero() {
		m.since = nanos(m.Since)
	}
	if !m.Until.IsZero() {
		m.until = nanos(m.Until)
	}
	return m
}

// endWith makes reads fail once ctx has ended, whatever there is to read, and tells the progress.
func (m *merge) endWith(ctx context.Context) {
	m.ended = nil
	m.spool.check = func() error {
		m.progress()
		m.ended = context.Cause(ctx)
		return m.ended
	}
}

// nanos are nanoseconds since 1970, the nearest that there are.
func nanos(t time.Time) int64 {
	switch {
	case t.Before(earliest):
		return math.MinInt64
	case t.After(latest):
		return math.MaxInt64
	}
	return t.UnixNano()
}

func (m *merge) warn(path string, line int, err error) {
	m.Broken++
	if m.Warn != nil {
		m.Warn(path, line, err)
	}
}

// advance takes the next line of a file that is to be written; false at the end of the file. The
// error is one of the temporary file.
func (m *merge) advance(f *input) (ok bool, err error) {
	before := f.grown()
	if f.run {
		if err = f.record(); err == io.EOF { //nolint:errorlint // a part's own is never wrapped
			err, f.buf, f.line = nil, nil, nil
		} else {
			ok = err == nil
		}
	} else if ok = m.take(f); !ok {
		if err = m.ended; !f.follow {
			f.buf, f.line = nil, nil // which is the buffer, too
		}
	}
	if m.grown += f.grown() - before; m.grown > m.Memory/4 {
		now := f.grown()
		if f.leave() {
			m.grown -= now
		}
	}
	return ok, err
}

func (m *merge) take(f *input) bool {
	for {
		if f.format == nil && f.number >= f.looked {
			f.ahead()
		}
		err := f.next()
		if m.ended != nil && !f.follow { // the line may be cut
			return false
		}
		if err != nil && err != errLong { //nolint:errorlint // this one is never wrapped
			failed := m.ended == nil && !f.over(err)
			if failed && !f.failed { // a file that is followed is read again and again
				m.warn(f.path, f.number+1, err)
			}
			f.failed = failed
			return false
		}
		if err == nil {
			if f.format == nil && f.detect(m.Format) && f.format.name != JSON {
				f.wanted = m.wanted(f) // also what comes before the first time
			}
			if (f.format == nil || f.format.name == JSON) && len(bytes.TrimSpace(f.line)) == 0 {
				continue
			}
			err = m.read(f)
		}
		if err != nil {
			m.warn(f.path, f.number, err)
			continue
		}
		if f.wanted {
			return true
		}
		m.Left++
	}
}

// read finds the time of the line: its own, or in text that of the last one before that had one.
func (m *merge) read(f *input) error {
	if f.format == nil {
		return jsonError(f, ErrTime)
	}
	if f.format.name == JSON {
		return m.readJSON(f)
	}
	if ns, ok := f.format.time(f.line, &f.finder); ok {
		f.time = ns
		f.wanted = m.wanted(f)
	}
	return nil
}

// readJSON finds the time of the line, and that it is not torn.
func (m *merge) readJSON(f *input) error {
	if err := jsonError(f, nil); err != nil {
		return err
	}
	ns, ok := jsonTime(f.line, &f.finder)
	if !ok {
		return ErrTime
	}
	f.time = ns
	f.wanted = m.wanted(f)
	return nil
}

// jsonError says that the line is torn, or else what is given.
func jsonError(f *input, other error) error {
	text := bytes.TrimRight(f.line, " \t\r")
	switch {
	case text[len(text)-1] == '}' || f.format == nil && text[0] != '{':
		return other
	case !f.whole:
		return ErrUnfinish
	}
	return ErrTorn
}

func (m *merge) wanted(f *input) bool {
	if f.time < m.since || f.time >= m.until && m.until != math.MaxInt64 {
		return false
	}
	if m.Tag == "" {
		return true
	}
	var value []byte
	var ok bool
	switch f.format.name {
	case JSON:
		value, ok = field(f.line, m.TagKey)
	case Logfmt:
		value, ok = pair(f.line, m.TagKey)
	}
	if !ok {
		return false
	}
	if len(value) == 0 || value[0] != '"' { // logfmt
		return string(value) == m.Tag
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return len(value) == len(m.Tag)+2 && value[0] == '"' && string(value[1:len(value)-1]) == m.Tag
	}
	var tag string
	return json.Unmarshal(value, &tag) == nil && tag == m.Tag
}

func (m *merge) progress() {
	if done := m.spool.done; m.Progress != nil && done-m.told >= progressEvery {
		m.told = done
		m.Progress(done, m.all+m.spool.size)
	}
}

// line is the text of the line that a file has taken; ok is false if it is gone meanwhile.
func (m *merge) line(f *input) (line []byte, ok bool) {
	var err error
	if line, m.room, err = f.text(m.room); err != nil {
		m.warn(f.path, f.number, err)
		return nil, false
	}
	return line, true
}

// put writes the line of a file, or with Slack holds it until none that comes can be before it.
func (m *merge) put(f *input) error {
	line, ok := m.line(f)
	if !ok {
		return nil
	}
	if m.Slack <= 0 {
		return m.write(line, f.time)
	}
	if err := m.held.push(f.time, f.n, f.number, line); err != nil {
		return err
	}
	for m.held.passed(m.Slack) {
		if err := m.held.release(m.writeHeld); err != nil {
			return err
		}
	}
	return m.bound()
}

// bound writes what there is no memory for, with Follow.
func (m *merge) bound() error {
	for m.Follow != nil && m.held.bytes > m.Memory/4 {
		if err := m.held.release(m.writeHeld); err != nil {
			return err
		}
	}
	return nil
}

func (m *merge) writeHeld(l *heldLine) error { return m.write(l.text, l.time) }

func (m *merge) write(line []byte, t int64) error {
	if t < m.last {
		m.Late++
	} else {
		m.last = t
	}
	m.Written++
	if m.Lines != nil {
		return m.Lines.Line(t, line)
	}
	if _, err := m.out.Write(line); err != nil {
		return err
	}
	return m.out.WriteByte('\n')
}

func (m *merge) close() {
	for _, f := range m.files {
		f.close()
	}
	m.spool.close()
}
