// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"time"
)

// Options are those of a merge. The zero value has the defaults.
type Options struct {
	TimeKey string        // the key of the time; "" is "time"
	TagKey  string        // the key of the tag; "" is "tag"
	Tag     string        // only lines with this tag; "" is all
	Since   time.Time     // only lines of this time or later; zero is all
	Until   time.Time     // only lines before this time; zero is all
	Slack   time.Duration // how much earlier than a line before it a line of a file may be
	Memory  int           // bytes for buffers; 0 is 64 MiB

	// Trouble is told what cannot be read: a line of a file, or with line 0 a file. Nil is nobody.
	Trouble func(path string, line int, err error)
	// Progress is told now and then how many bytes of lines were taken, and about how many there
	// are; compressed ones count as they lie on disk. Nil is nobody.
	Progress func(done, all int64)
}

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
	heap  []entry
	late  held
	out   *bufio.Writer
	since int64
	until int64
	last  int64 // time of the line written last
	done  int64
	told  int64
	all   int64
}

// An entry is a file in the heap, by the line that it has taken.
type entry struct {
	time int64
	n    int // the place of the file
	file *input
}

func (e *entry) before(o *entry) bool { return e.time < o.time || e.time == o.time && e.n < o.n }

// Run writes the lines of files to w in the order of their times. The error is one of w, of the
// temporary file, or ctx's; what is wrong with files is counted and goes to Trouble.
func Run(ctx context.Context, w io.Writer, paths []string, o *Options) (Result, error) {
	m := &merge{Options: *o, since: math.MinInt64, until: math.MaxInt64, last: math.MinInt64}
	m.defaults()
	m.out = bufio.NewWriterSize(w, 256<<10)
	all, err := openInputs(paths, m.Memory, m.trouble)
	if all != nil {
		defer all.close()
	}
	if err != nil {
		return m.Result, err
	}
	m.all = all.bytes
	for n, f := range all.files {
		if m.advance(f) {
			m.heap = append(m.heap, entry{f.time, n, f})
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
	for count := 0; len(m.heap) > 0; count++ {
		if count%1024 == 0 && ctx.Err() != nil {
			return m.Result, errors.Join(context.Cause(ctx), m.out.Flush())
		}
		top := &m.heap[0]
		if err := m.put(top); err != nil {
			return m.Result, err
		}
		if m.advance(top.file) {
			top.time = top.file.time
		} else {
			last := len(m.heap) - 1
			m.heap[0] = m.heap[last]
			m.heap[last] = entry{}
			m.heap = m.heap[:last]
		}
		m.down(0)
	}
	for len(m.late.lines) > 0 {
		if err := m.release(); err != nil {
			return m.Result, err
		}
	}
	return m.Result, m.out.Flush()
}

func (m *merge) defaults() {
	if m.TimeKey == "" {
		m.TimeKey = "time"
	}
	if m.TagKey == "" {
		m.TagKey = "tag"
	}
	if m.Memory <= 0 {
		m.Memory = 64 << 20
	}
	if !m.Since.IsZero() {
		m.since = nanos(m.Since)
	}
	if !m.Until.IsZero() {
		m.until = nanos(m.Until)
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

func (m *merge) trouble(path string, line int, err error) {
	m.Broken++
	if m.Trouble != nil {
		m.Trouble(path, line, err)
	}
}

// advance takes the next line of a file that is to be written; false at the end of the file.
func (m *merge) advance(f *input) bool {
	for {
		err := f.next()
		if err != nil && err != errLong { //nolint:errorlint // this one is never wrapped
			if err != io.EOF { //nolint:errorlint // a wrapped one is not the end of the file
				m.trouble(f.path, f.number+1, err)
			}
			f.buf = nil
			return false
		}
		m.count(len(f.line) + 1)
		if err == nil {
			if len(bytes.TrimSpace(f.line)) == 0 {
				continue
			}
			err = m.read(f)
		}
		if err != nil {
			m.trouble(f.path, f.number, err)
			continue
		}
		if m.wanted(f) {
			return true
		}
		m.Left++
	}
}

// read finds the time of the line, and that it is not torn.
func (m *merge) read(f *input) error {
	if text := bytes.TrimRight(f.line, " \t\r"); text[len(text)-1] != '}' {
		if !f.whole {
			return ErrUnfinish
		}
		return ErrTorn
	}
	value, ok := field(f.line, m.TimeKey)
	if ok {
		f.time, ok = parseTime(value)
	}
	if !ok {
		return ErrTime
	}
	return nil
}

func (m *merge) wanted(f *input) bool {
	if f.time < m.since || f.time >= m.until && m.until != math.MaxInt64 {
		return false
	}
	if m.Tag == "" {
		return true
	}
	value, ok := field(f.line, m.TagKey)
	if !ok {
		return false
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return len(value) == len(m.Tag)+2 && value[0] == '"' && string(value[1:len(value)-1]) == m.Tag
	}
	var tag string
	return json.Unmarshal(value, &tag) == nil && tag == m.Tag
}

func (m *merge) count(n int) {
	m.done += int64(n)
	if m.Progress != nil && m.done-m.told >= progressEvery {
		m.told = m.done
		m.Progress(m.done, m.all)
	}
}

// down moves an entry to its place in the heap.
func (m *merge) down(i int) {
	h := m.heap
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h[c+1].before(&h[c]) {
			c++
		}
		if !h[c].before(&h[i]) {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}

// put writes the line of an entry, or with Slack holds it until none that comes can be before it.
func (m *merge) put(e *entry) error {
	if m.Slack <= 0 {
		return m.write(e.file.line, e.time)
	}
	m.late.push(e)
	for len(m.late.lines) > 0 && (m.late.passed(m.Slack) || m.late.bytes > m.Memory/2) {
		if err := m.release(); err != nil {
			return err
		}
	}
	return nil
}

func (m *merge) release() error {
	l := m.late.pop()
	return m.write(l.text, l.time)
}

func (m *merge) write(line []byte, t int64) error {
	if t < m.last {
		m.Late++
	} else {
		m.last = t
	}
	m.Written++
	if _, err := m.out.Write(line); err != nil {
		return err
	}
	return m.out.WriteByte('\n')
}
