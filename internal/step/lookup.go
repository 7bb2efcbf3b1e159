// SPDX-License-Identifier: Apache-2.0

package step

import (
	"errors"
	"fmt"
	"strings"
)

// A Lookup finds a row of a table by a field, and makes fields of its columns.
type Lookup struct {
	Field   string   `help:"The field whose value is looked up." required:"true"`
	File    string   `help:"A file of comma-separated values; its first line has the names of columns. A relative path is that from the folder of this file." required:"true" path:"true"`
	Column  string   `help:"The column in which the value is; the first one without it."`
	Columns []string `help:"Columns that become fields; without it all others do."`
	Into    string   `help:"A map for these fields; without it they stand at the top."`
	Default Values   `help:"Fields and constants for an event whose value is in no row."`
}

// A looking is the step, and the rows that it has at present.
type looking struct {
	table *table
	rows  *rows
	field path
	into  path
	none  []assignment
	names map[string]path // of columns
}

// newLookup returns nil with a mistake that keeps it from its table.
func newLookup(s *Lookup, of *Routes, wrong func(error, ...any)) *looking {
	l := &looking{names: map[string]path{}}
	l.field = pathOf(s.Field, wrong, "field")
	if s.Into != "" {
		l.into = pathOf(s.Into, wrong, "into")
	}
	l.none = assignments(s.Default, inner(wrong, "default"))
	for i := range l.none {
		l.none[i].path = append(l.into[:len(l.into):len(l.into)], l.none[i].path...)
	}
	for i, name := range s.Columns {
		if name == "" || strings.Contains(name, "\n") {
			wrong(errors.New("this is no name of a column"), "columns", i)
			return nil
		}
	}
	t := tableOf{path: s.File, key: s.Column}
	for _, name := range s.Columns {
		t.columns += name + "\n"
	}
	if s.File == "" {
		wrong(errors.New("lookup has a file"), "file")
		return nil
	}
	var err error
	if l.table, err = of.table(t); err != nil {
		wrong(fmt.Errorf("%s: %w", s.File, err), "file")
		return nil
	}
	l.rows = l.table.rows.Load()
	return l
}

// do sets what the row has, or the defaults. Without the field nothing happens.
func (l *looking) do(e *event) error {
	value := e.get(l.field)
	if value == nil {
		return nil
	}
	var found bool
	var fields []byte
	text, ok := textOf(value)
	if !ok {
		e.scratch, ok = appendText(e.scratch[:0], value)
		text = e.scratch
	}
	if ok {
		fields, found = l.rows.find(text)
	}
	if !found {
		return e.setAll(l.none)
	}
	for len(fields) > 0 {
		key, value := pair(fields)
		fields = fields[len(key)+len(value):]
		to := l.path(key)
		err := e.set(to, value)
		if err == nil {
			err = e.settle()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", to, err)
		}
	}
	return nil
}

// path is where the value of a column goes. The names are remembered, so that each is made once.
func (l *looking) path(key []byte) path {
	name, _ := nameOf(key)
	p, is := l.names[string(name)]
	if !is {
		p = append(l.into[:len(l.into):len(l.into)], newName(string(name)))
		l.names[string(name)] = p
	}
	return p
}

// take takes up the rows that there are now, and says whether they are others.
func (l *looking) take() bool {
	now := l.table.rows.Load()
	if now == l.rows {
		return false
	}
	l.rows = now
	clear(l.names)
	return true
}
