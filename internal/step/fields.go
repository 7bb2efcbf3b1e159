// SPDX-License-Identifier: Apache-2.0

package step

import (
	"errors"
	"fmt"

	"github.com/spillwaylog/spillway/msgpack"
)

// Names are fields and other fields, in their order.
type Names []struct{ From, To string }

// Values are fields and constants, in their order.
type Values []Value

// A Value is a field and a constant: a string, bool, int64, uint64, float64, nil, []any of such, or
// Values.
type Value struct {
	Field string
	Value any
}

// masked stands for a value that nobody is to see.
var masked = msgpack.AppendString(nil, "***")

// all has do decide about each of some fields.
func all(fields []string, wrong func(error, ...any), do doer) func(*event) error {
	var paths []path
	for i, text := range fields {
		paths = append(paths, pathOf(text, wrong, i))
	}
	return func(e *event) error {
		for _, p := range paths {
			e.each(p, do)
			if err := e.settle(); err != nil {
				return err
			}
		}
		return nil
	}
}

// An assignment is a field and the value that it gets.
type assignment struct {
	path  path
	value []byte
}

// assignments understands fields and constants.
func assignments(values Values, wrong func(error, ...any)) (list []assignment) {
	for i := range values {
		v := &values[i]
		p, err := parsePath(v.Field)
		if err == nil {
			var b []byte
			if b, err = appendAny(nil, v.Value, 0); err == nil {
				list = append(list, assignment{p, b})
			}
		}
		if err != nil {
			wrong(err, v.Field)
		}
	}
	return list
}

// setAll gives fields constants.
func setAll(list []assignment) func(*event) error {
	return func(e *event) error { return e.setAll(list) }
}

func (e *event) setAll(list []assignment) error {
	for i := range list {
		err := e.set(list[i].path, list[i].value)
		if err == nil {
			err = e.settle()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", list[i].path, err)
		}
	}
	return nil
}

// AppendValue appends a constant, as a Value has it.
func AppendValue(dst []byte, v any) ([]byte, error) { return appendAny(dst, v, 0) }

// appendAny appends a constant.
func appendAny(dst []byte, v any, depth int) (_ []byte, err error) {
	if depth > maxDepth {
		return dst, errors.New("this nests too deep")
	}
	switch v := v.(type) {
	case nil:
		return msgpack.AppendNil(dst), nil
	case string:
		return msgpack.AppendString(dst, v), nil
	case bool:
		return msgpack.AppendBool(dst, v), nil
	case int:
		return msgpack.AppendInt(dst, int64(v)), nil
	case int64:
		return msgpack.AppendInt(dst, v), nil
	case uint64:
		return msgpack.AppendUint(dst, v), nil
	case float64:
		if v-v != 0 {
			return dst, fmt.Errorf("%v is no number", v)
		}
		return msgpack.AppendFloat64(dst, v), nil
	case []any:
		dst = msgpack.AppendArrayHeader(dst, len(v))
		for _, one := range v {
			if dst, err = appendAny(dst, one, depth+1); err != nil {
				return dst, err
			}
		}
		return dst, nil
	case Values:
		dst = msgpack.AppendMapHeader(dst, len(v))
		for i := range v {
			dst = msgpack.AppendString(dst, v[i].Field)
			if dst, err = appendAny(dst, v[i].Value, depth+1); err != nil {
				return dst, err
			}
		}
		return dst, nil
	}
	return dst, fmt.Errorf("a %T is no constant", v)
}

// moveAll moves fields to others.
func moveAll(names Names, wrong func(error, ...any), move func(e *event, from, to path) error) func(*event) error {
	var list [][2]path
	for i := range names {
		from, err := parsePath(names[i].From)
		to, err2 := parsePath(names[i].To)
		switch err := errors.Join(err, err2); {
		case err != nil:
			wrong(err, names[i].From)
		case from.String() == to.String():
			wrong(errors.New("both names are the same"), names[i].From)
		}
		list = append(list, [2]path{from, to})
	}
	return func(e *event) error {
		for i := range list {
			err := move(e, list[i][0], list[i][1])
			if err == nil {
				err = e.settle()
			}
			if err != nil {
				return fmt.Errorf("%s: %w", list[i][1], err)
			}
		}
		return nil
	}
}

// rename gives a field another name, in its place at the top of the record, and takes its value
// elsewhere otherwise. What had the name before is gone; without the field nothing happens.
func (e *event) rename(from, to path) error {
	if len(from) > 1 || len(to) > 1 {
		value := e.get(from)
		if value == nil {
			return nil
		}
		e.each(from, func(*event, []byte) ([]byte, change) { return nil, removed })
		return e.set(to, value)
	}
	last := e.find(&from[0])
	if last < 0 {
		return nil
	}
	for i := range e.fields {
		f := &e.fields[i]
		if i == last {
			f.name, f.key, f.both = to[0].bytes(), to[0].key, nil
			continue
		}
		if f.name != nil && (string(f.name) == from[0].text || string(f.name) == to[0].text) {
			f.drop()
		}
	}
	e.dirty = true
	return nil
}

// copy gives a field the value of another one, if that is there.
func (e *event) copy(from, to path) error {
	value := e.get(from)
	if value == nil {
		return nil
	}
	return e.set(to, value)
}

// Bounds of a tag, and of how many are remembered.
const (
	maxTag  = 1024 // as in the protocol
	maxTags = 4096
)

// retag gives the event another tag.
func (e *event) retag(t template) error {
	var err error
	if e.scratch, err = t.append(e.scratch[:0], e); err != nil {
		return err
	}
	switch n := len(e.scratch); {
	case n == 0:
		return errors.New("the tag would be empty")
	case n > maxTag:
		return fmt.Errorf("the tag would have %d bytes; it may have %d", n, maxTag)
	}
	tag, known := e.tags[string(e.scratch)]
	if !known {
		if tag = string(e.scratch); len(e.tags) >= maxTags {
			clear(e.tags)
		}
		if e.tags == nil {
			e.tags = map[string]string{}
		}
		e.tags[tag] = tag
	}
	e.tag = tag
	return nil
}
