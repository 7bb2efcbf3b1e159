// SPDX-License-Identifier: Apache-2.0

package step

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"regexp"

	"github.com/spillwaylog/spillway/internal/lines"
	"github.com/spillwaylog/spillway/msgpack"
)

// A Parse makes fields, or the time of the event, of a text.
type Parse struct {
	Field   string `help:"The field with the text." required:"true"`
	As      string `help:"What it is." required:"true" enum:"json,logfmt,regexp,time"`
	Pattern string `help:"Of regexp: an expression with groups that have names, (?P<name>…)."`
	Format  string `help:"Of time: rfc3339, which it is without one, unix, unix_ms, unix_us, unix_ns, or a layout of Go."`
	Into    string `help:"The field whose map gets the fields; none: the record gets them."`
	Keep    bool   `help:"Whether the text stays as well."`
}

// A parsing is the step.
type parsing struct {
	field path
	into  path
	keep  bool
	do    func(e *event, value, text []byte) error
}

func newParse(s *Parse, wrong func(error, ...any)) func(*event) error {
	p := &parsing{keep: s.Keep}
	p.field = pathOf(s.Field, wrong, "field")
	if s.Into != "" {
		p.into = pathOf(s.Into, wrong, "into")
	}
	if s.Pattern != "" && s.As != "regexp" {
		wrong(errors.New("only regexp has a pattern"), "pattern")
	}
	if s.Format != "" && s.As != "time" {
		wrong(errors.New("only time has a format"), "format")
	}
	switch s.As {
	case "json":
		p.do = p.json
	case "logfmt":
		p.logfmt(wrong)
	case "regexp":
		p.regexp(s.Pattern, wrong)
	case "time":
		if s.Into != "" {
			wrong(errors.New("a time goes into no field"), "into")
		}
		p.time(s.Format, wrong)
	default:
		wrong(fmt.Errorf("as is one of json, logfmt, regexp, time, not %q", s.As), "as")
	}
	return p.run
}

// run does nothing where the field is missing.
func (p *parsing) run(e *event) error {
	value := e.get(p.field)
	if value == nil {
		return nil
	}
	text, ok := textOf(value)
	if !ok {
		text = nil
	}
	if err := p.do(e, value, text); err != nil {
		return fmt.Errorf("%s: %w", p.field, err)
	}
	return nil
}

// done removes the text, unless it stays. It comes before the new fields, which may have its name.
func (p *parsing) done(e *event) {
	if !p.keep {
		e.each(p.field, func(*event, []byte) ([]byte, change) { return nil, removed })
	}
}

// take takes the pairs of a map, which lies in room.
func (p *parsing) take(e *event, value []byte) error {
	pairs, rest, ok := isMap(value)
	if !ok {
		return errEntry
	}
	if p.into != nil && e.get(p.into) == nil {
		p.done(e)
		return e.set(p.into, value)
	}
	if pairs+len(e.fields) > maxFields {
		return errTooLarge
	}
	if _, err := (msgpack.Limits{Depth: maxNesting + 1 - len(p.into)}).Skip(value); err != nil {
		return errDeep
	}
	p.done(e)
	if p.into != nil {
		if pairs == 0 {
			return nil
		}
		made, err := e.joined(e.get(p.into), pairs, rest)
		if err != nil {
			return err
		}
		return e.set(p.into, made)
	}
	e.dirty = true
	m := newMerge(e)
	for range pairs {
		key, v := pair(rest)
		if key == nil {
			return errEntry
		}
		rest = rest[len(key)+len(v):]
		m.add(key, v)
	}
	return nil
}

// joined is a map, nil for one without anything in it, with other pairs in it: as if each were set.
func (e *event) joined(value []byte, more int, pairs []byte) ([]byte, error) {
	var there int
	var inside []byte
	if value != nil {
		var ok bool
		if there, inside, ok = isMap(value); !ok {
			return nil, errNoMap
		}
	}
	list, at, index := make([]field, 0, more), make([]int, 0, more), make(map[string]int, more)
	for range more {
		key, v := pair(pairs)
		if key == nil {
			return nil, errEntry
		}
		pairs = pairs[len(key)+len(v):]
		text, ok := nameOf(key)
		if !ok {
			continue
		}
		i, twice := index[string(text)]
		if !twice {
			i = len(list)
			list, at, index[string(text)] = append(list, field{key: key}), append(at, -1), i
		}
		list[i].value = v
	}
	fresh := len(list)
	for k, rest := 0, inside; k < there; k++ { // the last one of a name gets the value
		key, v := pair(rest)
		if key == nil {
			return nil, errEntry
		}
		rest = rest[len(key)+len(v):]
		if text, ok := nameOf(key); ok {
			if i, found := index[string(text)]; found {
				if at[i] < 0 {
					fresh--
				}
				at[i] = k
			}
		}
	}
	from := len(e.room)
	e.room = msgpack.AppendMapHeader(e.room, there+fresh)
	for k, rest := 0, inside; k < there; k++ {
		key, v := pair(rest)
		rest = rest[len(key)+len(v):]
		if text, ok := nameOf(key); ok {
			if i, found := index[string(text)]; found && at[i] == k {
				v = list[i].value
			}
		}
		e.room = append(append(e.room, key...), v...)
	}
	for i := range list {
		if at[i] < 0 {
			e.room = append(append(e.room, list[i].key...), list[i].value...)
		}
	}
	return e.room[from:len(e.room):len(e.room)], nil
}

var (
	errNoText   = errors.New("it is no text")
	errNoObject = errors.New("it is no JSON object")
	errNoPairs  = errors.New("it is no logfmt")
	errNoMatch  = errors.New("the expression does not match")
	errNoTime   = errors.New("it is no time of the format")
)

func (p *parsing) json(e *event, _, text []byte) error {
	if text == nil {
		return errNoText
	}
	from := len(e.room)
	room, n, err := msgpack.AppendFromJSONText(e.room, text)
	if err != nil {
		return errNoObject
	}
	for _, c := range text[n:] {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return errNoObject
		}
	}
	e.room = room
	value := room[from:len(room):len(room)]
	if _, _, ok := isMap(value); !ok {
		return errNoObject
	}
	return p.take(e, value)
}

// noPairs is the key of what logfmt takes for text, which no pair of logfmt has.
const noPairs = " "

func (p *parsing) logfmt(wrong func(error, ...any)) {
	r, err := lines.NewReader(&lines.ReadOptions{Text: noPairs})
	if err != nil {
		wrong(err)
	}
	p.do = func(e *event, _, text []byte) error {
		if text == nil {
			return errNoText
		}
		from := len(e.room)
		e.room, _ = r.AppendLogfmt(e.room, text)
		value := e.room[from:len(e.room):len(e.room)]
		if pairs, rest, ok := isMap(value); ok && pairs == 1 {
			if key, _ := pair(rest); len(key) == 2 && string(key[1:]) == noPairs {
				return errNoPairs
			}
		}
		return p.take(e, value)
	}
}

func (p *parsing) regexp(pattern string, wrong func(error, ...any)) {
	if pattern == "" {
		wrong(errors.New("regexp has a pattern"), "as")
		return
	}
	expr, err := regexp.Compile(pattern)
	if err != nil {
		wrong(err, "pattern")
		return
	}
	var names []name
	var groups []int
	for i, text := range expr.SubexpNames() {
		if text != "" {
			names, groups = append(names, newName(text)), append(groups, i)
		}
	}
	if len(names) == 0 {
		wrong(errors.New("no group of it has a name, such as (?P<status>[0-9]+)"), "pattern")
	}
	p.do = func(e *event, _, text []byte) error {
		if text == nil {
			return errNoText
		}
		at := expr.FindSubmatchIndex(text)
		if at == nil {
			return errNoMatch
		}
		n := 0
		for _, g := range groups {
			if at[2*g] >= 0 {
				n++
			}
		}
		from := len(e.room)
		e.room = msgpack.AppendMapHeader(e.room, n)
		for i, g := range groups {
			if at[2*g] < 0 { // it has no part in this match
				continue
			}
			part := text[at[2*g]:at[2*g+1]]
			e.room = append(e.room, names[i].key...)
			e.room = append(msgpack.AppendStringHeader(e.room, len(part)), part...)
		}
		return p.take(e, e.room[from:len(e.room):len(e.room)])
	}
}

func (p *parsing) time(format string, wrong func(error, ...any)) {
	read, err := lines.TimeReader(format)
	if err != nil {
		wrong(err, "format")
		return
	}
	p.do = func(e *event, value, text []byte) error {
		raw := text
		if text == nil {
			t, _, err := msgpack.ReadToken(value)
			if err != nil || t.Kind < msgpack.KindInt || t.Kind > msgpack.KindFloat64 {
				return errNoTime
			}
			if e.scratch, _, err = msgpack.AppendJSON(e.scratch[:0], value, nil); err != nil {
				return errNoTime
			}
			raw = e.scratch
		}
		sec, nsec, ok := read(raw, text, text != nil)
		if !ok || sec < 0 || sec > math.MaxUint32 || sec == 0 && nsec == 0 {
			return errNoTime
		}
		p.done(e)
		e.retime(uint32(sec), nsec)
		return nil
	}
}

// retime gives the event another time. What is beside the time stays.
func (e *event) retime(sec, nsec uint32) {
	var at [10]byte
	at[0] = 0xd7 // an ext of eight bytes, of type 0
	binary.BigEndian.PutUint32(at[2:], sec)
	binary.BigEndian.PutUint32(at[6:], nsec)
	_, n, _ := msgpack.ReadToken(e.head) // read has seen that it is an array
	if t, k, err := msgpack.ReadToken(e.head[n:]); err == nil && t.Kind == msgpack.KindArray {
		n += k
		e.head = e.store(e.head[:n], at[:], e.head[n+size(e.head[n:]):])
	} else {
		e.head = e.store(e.head[:n], at[:])
	}
	e.dirty = true
}
