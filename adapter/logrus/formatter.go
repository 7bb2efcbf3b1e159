// SPDX-License-Identifier: Apache-2.0

package spillwaylogrus

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
)

// A Formatter writes an entry as a line of JSON, with the members in a fixed order and without a
// map in between. The zero value writes what logrus.JSONFormatter does: the same names and values,
// in the order time, level, msg, then the entry's data sorted by name. All fields are to be set
// before the first entry; goroutines may share it.
//
// A value that encoding/json refuses, or a method of it that panics, costs that value alone: in its
// place stands a text that begins with "!ERROR: " or "!PANIC: ".
type Formatter struct {
	// Schema is what a line begins with, in this order. nil: time, level, msg. Caller and
	// logrus_error, where an entry has them, follow.
	Schema []Field
	// DropRest leaves out data that Schema does not name. Otherwise it comes last, sorted by name.
	DropRest bool

	// The rest is as in logrus.JSONFormatter.

	TimestampFormat   string // default time.RFC3339
	DisableTimestamp  bool   // leaves out the time wherever Schema has it
	DisableHTMLEscape bool
	DataKey           string // the object that the data which follows Schema is in; it stays away if there is none
	FieldMap          logrus.FieldMap
	CallerPrettyfier  func(*runtime.Frame) (function, file string)

	once  sync.Once
	steps []step
	named []string // the data that Schema names, sorted
	taken []taken  // what else Schema writes, and so gets "fields." before its name if data is called that

	// what stands before the values of func, file, logrus_error and DataKey
	function, file, wrong, data []byte
}

// A Field is one member of a schema: [Const], [Time], [Level], [Message] or [Data] make it.
type Field struct {
	key     string // empty: as FieldMap says
	from    callSource
	name    string // of Data
	value   any    // of Const; of Data where an entry has none
	missing bool   // Data without a value is left out
}

type callSource uint8

const (
	fromConst callSource = iota
	fromTime
	fromLevel
	fromMessage
	fromData
)

// Const is a member that is the same in each line.
func Const(key string, value any) Field { return Field{key: key, from: fromConst, value: value} }

// Time is the entry's time, written as TimestampFormat says. An empty key is that of FieldMap, or
// "time".
func Time(key string) Field { return Field{key: key, from: fromTime} }

// Level is the entry's level. An empty key is that of FieldMap, or "level".
func Level(key string) Field { return Field{key: key, from: fromLevel} }

// Message is the entry's message. An empty key is that of FieldMap, or "msg".
func Message(key string) Field { return Field{key: key, from: fromMessage} }

// Data is the data called name, as a member called key. An entry without it has the value
// otherwise, or no such member if that is not given.
func Data(key, name string, otherwise ...any) Field {
	f := Field{key: key, from: fromData, name: name, missing: true}
	if len(otherwise) > 0 {
		f.value, f.missing = otherwise[0], false
	}
	return f
}

// offsetFormat is RFC 3339 with the offset of UTC as digits, too.
const offsetFormat = "2006-01-02T15:04:05-07:00"

// NewServiceFormatter returns a formatter with the four members service, msg, task_id (the data of
// that name, "" without) and log_date, which has the real offset from UTC. Other data is dropped.
func NewServiceFormatter(service string) *Formatter {
	return &Formatter{
		Schema: []Field{
			Const("service", service), Message("msg"), Data("task_id", "task_id", ""),
			Time("log_date"),
		},
		DropRest:        true,
		TimestampFormat: offsetFormat,
	}
}

// taken is the key of a member that is no data.
type taken struct {
	first uint64
	key   string
}

// A step writes one member.
type step struct {
	head []byte // what stands before the value: a comma, the key, a colon; of a constant the value, too
	Field
}

// plan makes the steps.
func (f *Formatter) plan() {
	schema := f.Schema
	if schema == nil {
		schema = []Field{Time(""), Level(""), Message("")}
	}
	if f.TimestampFormat == "" {
		f.TimestampFormat = time.RFC3339
	}
	take := func(key string) { f.taken = append(f.taken, taken{first(key), key}) }
	take(f.key(logrus.FieldKeyLogrusError))
	if f.Schema == nil && f.DisableTimestamp {
		take(f.key(logrus.FieldKeyTime)) // as logrus has it
	}
	for _, field := range schema {
		standard := [...]string{
			fromTime: logrus.FieldKeyTime, fromLevel: logrus.FieldKeyLevel,
			fromMessage: logrus.FieldKeyMsg, fromData: field.name,
		}
		if field.key == "" && field.from != fromConst {
			field.key = f.key(standard[field.from])
		}
		if field.from == fromTime && f.DisableTimestamp {
			continue
		}
		s := step{f.head(field.key), field}
		switch field.from {
		case fromConst:
			s.head = f.value(s.head, field.value)
		case fromData:
			f.named = append(f.named, field.name)
		}
		if field.from != fromData || field.key != field.name {
			take(field.key)
		}
		f.steps = append(f.steps, s)
	}
	slices.Sort(f.named)
	f.function, f.file = f.head(f.key(logrus.FieldKeyFunc)), f.head(f.key(logrus.FieldKeyFile))
	f.wrong, f.data = f.head(f.key(logrus.FieldKeyLogrusError)), f.head(f.DataKey)
}

// key returns what FieldMap calls a standard member.
func (f *Formatter) key(name string) string {
	for standard, key := range f.FieldMap {
		if string(standard) == name {
			return key
		}
	}
	return name
}

// head returns what stands before a member's value.
func (f *Formatter) head(key string) []byte {
	return append(f.appendString([]byte{','}, key), ':')
}

// A pair is one of an entry's data.
type pair struct {
	key   string
	value any
}

// A rank sorts pairs, which themselves stay where they are.
type rank struct {
	first uint64 // bytes of the key, in which nearly all differ
	at    int
}

// first returns the first eight bytes of a key as a number that sorts as they do.
func first(key string) (n uint64) {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64([]byte(key[:8]))
	}
	for i := range len(key) {
		n |= uint64(key[i]) << (56 - 8*i)
	}
	return n
}

// scratch is what a call works in.
type scratch struct {
	line  []byte
	pairs []pair
	ranks []rank
}

var scratches = sync.Pool{New: func() any { return &scratch{line: make([]byte, 0, 512)} }}

// maxPooled is the largest line that is kept for the next one.
const maxPooled = 64 << 10

// Format writes an entry. The line is valid until the entry's Buffer is used again; without a
// Buffer it is its caller's.
func (f *Formatter) Format(entry *logrus.Entry) ([]byte, error) {
	f.once.Do(f.plan)
	s := scratches.Get().(*scratch)
	b := s.line[:0]
	if entry.Buffer != nil {
		b = entry.Buffer.AvailableBuffer()
	}
	b = f.append(b, entry, s)
	if entry.Buffer != nil {
		entry.Buffer.Write(b)
		b = entry.Buffer.Bytes()
	} else {
		if cap(b) <= maxPooled {
			s.line = b
		}
		b = bytes.Clone(b)
	}
	if cap(s.pairs) > maxPooledAttrs {
		s.pairs, s.ranks = nil, nil
	}
	clear(s.pairs)
	scratches.Put(s)
	return b, nil
}

func (f *Formatter) append(b []byte, entry *logrus.Entry, s *scratch) []byte {
	start := len(b)
	used := 0 // of the entry's data
	for i := range f.steps {
		s := &f.steps[i]
		if s.from == fromData {
			value, ok := entry.Data[s.name]
			if ok {
				used++
			} else if value = s.value; s.missing {
				continue
			}
			b = f.value(append(b, s.head...), value)
			continue
		}
		b = append(b, s.head...)
		switch s.from {
		case fromTime:
			b = f.time(b, entry.Time)
		case fromLevel:
			b = append(append(append(b, '"'), levelText(entry.Level)...), '"')
		case fromMessage:
			b = f.appendString(b, entry.Message)
		}
	}
	if entry.Caller != nil {
		b = f.caller(b, entry.Caller)
	}
	if wrong := errorOf(entry); wrong != "" {
		b = f.appendString(append(b, f.wrong...), wrong)
	}
	if !f.DropRest && len(entry.Data) > used {
		b = f.rest(b, entry, s)
	}
	if len(b) == start {
		return append(b, "{}\n"...)
	}
	b[start] = '{' // the first comma
	return append(b, '}', '\n')
}

// rest appends the data that Schema does not name.
func (f *Formatter) rest(b []byte, entry *logrus.Entry, s *scratch) []byte {
	pairs, ranks := s.pairs[:0], s.ranks[:0]
	for key, value := range entry.Data {
		if len(f.named) > 0 {
			if _, named := slices.BinarySearch(f.named, key); named {
				continue
			}
		}
		r := rank{first(key), len(pairs)}
		if f.DataKey == "" && f.clashes(r.first, key, entry) {
			key = "fields." + key
			r.first = first(key)
		}
		pairs = append(pairs, pair{key, value})
		i := len(ranks)
		ranks = append(ranks, r)
		for i > 0 && (r.first < ranks[i-1].first || r.first == ranks[i-1].first && key < pairs[ranks[i-1].at].key) {
			ranks[i] = ranks[i-1]
			i--
		}
		ranks[i] = r
	}
	s.pairs, s.ranks = pairs, ranks
	from := len(b)
	if f.DataKey != "" {
		b = append(b, f.data...)
		from = len(b)
	}
	for i, r := range ranks {
		p := &pairs[r.at]
		if i+1 < len(ranks) && ranks[i+1].first == r.first && pairs[ranks[i+1].at].key == p.key {
			continue // "fields.msg" of the data's own, and of a clash
		}
		b = f.appendString(append(b, ','), p.key)
		b = f.value(append(b, ':'), p.value)
	}
	if f.DataKey != "" {
		b[from] = '{'
		b = append(b, '}')
	}
	return b
}

// clashes reports whether data is called like what the formatter writes.
func (f *Formatter) clashes(start uint64, key string, entry *logrus.Entry) bool {
	for i := range f.taken {
		if t := &f.taken[i]; t.first == start && t.key == key {
			return true
		}
	}
	return entry.Caller != nil && (key == f.key(logrus.FieldKeyFunc) || key == f.key(logrus.FieldKeyFile))
}

func (f *Formatter) caller(b []byte, at *runtime.Frame) []byte {
	function, file := at.Function, ""
	if f.CallerPrettyfier != nil {
		function, file = f.CallerPrettyfier(at)
	} else {
		file = at.File + ":" + strconv.Itoa(at.Line)
	}
	if function != "" {
		b = f.appendString(append(b, f.function...), function)
	}
	if file != "" {
		b = f.appendString(append(b, f.file...), file)
	}
	return b
}

// time appends a time. Only the layouts of RFC 3339 are fast in package time, so the offset that
// differs is put in by hand.
func (f *Formatter) time(b []byte, t time.Time) []byte {
	switch f.TimestampFormat {
	case time.RFC3339, time.RFC3339Nano:
		return append(t.AppendFormat(append(b, '"'), f.TimestampFormat), '"')
	case offsetFormat:
		b = t.AppendFormat(append(b, '"'), time.RFC3339)
		if b[len(b)-1] == 'Z' {
			b = append(b[:len(b)-1], "+00:00"...)
		}
		return append(b, '"')
	}
	var text [64]byte
	return f.appendString(b, string(t.AppendFormat(text[:0], f.TimestampFormat)))
}

func levelText(l logrus.Level) string {
	switch l {
	case logrus.InfoLevel:
		return "info"
	case logrus.WarnLevel:
		return "warning"
	case logrus.ErrorLevel:
		return "error"
	case logrus.DebugLevel:
		return "debug"
	}
	return strings.Trim(l.String(), `"\`)
}
