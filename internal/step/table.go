// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

// A table is a file of comma-separated values that steps look things up in. All steps that look up
// the same in it share it.
//
//	file ─► rows: text of the key column ─► its columns as fields, MessagePack
//
// The steps of an output take up new rows between two records of the journal.
type table struct {
	of   tableOf
	rows atomic.Pointer[rows]

	mu   sync.Mutex
	seen fs.FileInfo // what the file was when it was read last
	at   time.Time   // when that was
	err  error       // what came of it
	told string      // the error that refresh has told
}

// tableOf says what a table has of its file.
type tableOf struct {
	path, key string
	columns   string // their names, each with a line end behind it
}

// rows are the rows of a table as they were read; nothing changes them.
type rows struct {
	sum   [sha256.Size]byte // of the file
	known map[string]row
	all   []byte
}

// A row is a place in rows.all: key and value of a pair of a record, one after another.
type row struct{ from, end uint32 }

// Bounds of a table: it is in memory, and read at once.
const (
	maxTable = 32 << 20
	maxRows  = 1 << 20
)

// young is how long ago a file may have been written when it is read so that another write may have
// left it with the same time.
const young = 2 * time.Second

// load reads the file, if it is another one than it was. Rows that are there stay after an error.
func (t *table) load() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	info, err := os.Stat(t.of.path)
	if err != nil {
		t.seen, t.err = nil, reason(err)
		return t.err
	}
	if s := t.seen; s == nil || !os.SameFile(s, info) || isChanged(s, info) || t.at.Sub(info.ModTime()) < young {
		t.at = time.Now()
		t.seen, err = t.read()
		t.err = reason(err)
	}
	return t.err
}

// isChanged reports whether a file was written between two looks at it, as far as that shows.
func isChanged(before, now fs.FileInfo) bool {
	return before.Size() != now.Size() || !before.ModTime().Equal(now.ModTime())
}

// read returns what the file was when it was read; nil: what it is now is not known.
func (t *table) read() (fs.FileInfo, error) {
	f, err := os.OpenFile(t.of.path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not hold it up
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, info, err := readSettled(f)
	if err != nil {
		return info, err
	}
	sum := sha256.Sum256(data)
	if old := t.rows.Load(); old != nil && old.sum == sum {
		return info, nil
	}
	r, err := t.of.read(data)
	if err != nil {
		return info, err
	}
	r.sum = sum
	t.rows.Store(r)
	return info, nil
}

// A settling file is one that somebody may be writing.
type settling interface {
	io.ReaderAt
	Stat() (fs.FileInfo, error)
}

// readTries is how often a file is read that changes meanwhile.
const readTries = 10

// readSettled reads a file until it is the same behind that as it was before, and returns what it
// was; nil: it did not settle.
func readSettled(f settling) (data []byte, info fs.FileInfo, err error) {
	before, err := f.Stat()
	if err == nil && !before.Mode().IsRegular() {
		return nil, before, errors.New("it is no regular file")
	}
	for range readTries {
		if err == nil {
			data, err = io.ReadAll(io.NewSectionReader(f, 0, maxTable+1))
		}
		if err == nil {
			info, err = f.Stat()
		}
		switch {
		case err != nil:
			return nil, nil, err
		case isChanged(before, info):
			before = info
		case len(data) > maxTable:
			return nil, info, fmt.Errorf("it is larger than %d MiB", maxTable>>20)
		default:
			return data, info, nil
		}
	}
	return nil, nil, errors.New("it changes while it is read")
}

// reason is an error without the path, which its reader knows.
func reason(err error) error {
	if in := (*fs.PathError)(nil); errors.As(err, &in) {
		return in.Err
	}
	return err
}

// read understands a file. Its first line has the names of the columns.
func (o *tableOf) read(data []byte) (*rows, error) {
	c := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))))
	c.ReuseRecord = true
	head, err := c.Read()
	if errors.Is(err, io.EOF) {
		err = errors.New("it has no line with the names of its columns")
	}
	if err != nil {
		return nil, csvError(err)
	}
	head = slices.Clone(head)
	key, columns, err := o.columnsOf(head)
	if err != nil {
		return nil, err
	}
	r := &rows{known: map[string]row{}}
	for {
		line, err := c.Read()
		if errors.Is(err, io.EOF) {
			return r, nil
		}
		if err != nil {
			return nil, csvError(err)
		}
		number, _ := c.FieldPos(key)
		if _, is := r.known[line[key]]; is {
			return nil, fmt.Errorf("line %d: %q stands in column %s twice", number, short(line[key]), head[key])
		}
		if len(r.known) == maxRows {
			return nil, fmt.Errorf("it has more than %d rows", maxRows)
		}
		from := uint32(len(r.all))
		for _, i := range columns {
			r.all = msgpack.AppendString(msgpack.AppendString(r.all, head[i]), line[i])
		}
		if len(r.all) > 4*maxTable {
			return nil, errors.New("it takes too much memory: its columns have long names")
		}
		r.known[string([]byte(line[key]))] = row{from, uint32(len(r.all))}
	}
}

// columnsOf finds columns by their names: that of the key, and those whose values become fields.
func (o *tableOf) columnsOf(head []string) (key int, columns []int, err error) {
	at := make(map[string]int, len(head))
	for i, name := range head {
		if name == "" {
			return 0, nil, fmt.Errorf("column %d has no name", i+1)
		}
		if _, is := at[name]; is {
			return 0, nil, fmt.Errorf("two columns are called %s", short(name))
		}
		at[name] = i
	}
	find := func(name string) int {
		i, is := at[name]
		if !is {
			err = fmt.Errorf("it has no column %s", name)
		}
		return i
	}
	if o.key != "" {
		key = find(o.key)
	}
	for name := range bytes.Lines([]byte(o.columns)) {
		columns = append(columns, find(string(name[:len(name)-1])))
	}
	if columns == nil {
		for i := range head {
			if i != key {
				columns = append(columns, i)
			}
		}
	}
	return key, columns, err
}

func csvError(err error) error {
	if e := (*csv.ParseError)(nil); errors.As(err, &e) {
		return fmt.Errorf("line %d: %w", e.Line, e.Err)
	}
	return err
}

// short is a text of a file, as long as a message may have it.
func short(text string) string { return text[:min(len(text), 100)] }

// find returns the fields that a text has: key and value, one after another.
func (r *rows) find(text []byte) (fields []byte, ok bool) {
	at, ok := r.known[string(text)]
	return r.all[at.from:at.end], ok
}

func (t *table) refresh() error {
	err := t.load()
	t.mu.Lock()
	defer t.mu.Unlock()
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == t.told {
		return nil
	}
	if t.told = text; err != nil {
		return fmt.Errorf("lookup: %s: %w; what was read before stays in force", t.of.path, err)
	}
	return nil
}
