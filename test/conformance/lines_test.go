// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"os"
	"slices"
	"strings"
	"time"
)

// A lineReader follows the file that a server writes.
type lineReader struct {
	path  string
	at    int64
	rest  []byte
	byTag map[string][]line
	bad   []string // lines that cannot be read
}

// A line is an event as a server wrote it.
type line struct {
	sec  int64
	nsec int64
	meta string // "" without
	// rec is the record with its keys in order, sorted has them sorted, of equal ones the last.
	rec, sorted string
}

// follow starts at what is in the file already.
func follow(path string) *lineReader {
	r := &lineReader{path: path, byTag: map[string][]line{}}
	if info, err := os.Stat(path); err == nil {
		r.at = info.Size()
	}
	return r
}

// read takes in what was written since.
func (r *lineReader) read() error {
	f, err := os.Open(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, r.at, 1<<40))
	if err != nil {
		return err
	}
	r.at += int64(len(b))
	r.rest = append(r.rest, b...)
	for {
		text, rest, ok := bytes.Cut(r.rest, []byte{'\n'})
		if !ok {
			return nil
		}
		r.rest = rest
		tag, l, err := parseLine(text)
		if err != nil {
			r.bad = append(r.bad, fmt.Sprintf("%v: %.300q", err, text))
			continue
		}
		r.byTag[tag] = append(r.byTag[tag], l)
	}
}

// members are those of an object, in order.
type member struct {
	key   string
	value json.RawMessage
}

func members(text []byte) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("no object: %w", err)
	}
	var out []member
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, _ := t.(string)
		m := member{key: key}
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	_, err := d.Token()
	return out, err
}

// parseLine takes a line apart.
func parseLine(text []byte) (tag string, l line, err error) {
	all, err := members(text)
	if err != nil {
		return "", l, err
	}
	var record []member
	timed, tagged := false, false
	for _, m := range all {
		switch {
		case m.key == *timeKey && !timed:
			timed = true
			if l.sec, l.nsec, err = parseTime(m.value); err != nil {
				return "", l, err
			}
		case m.key == *tagKey && !tagged:
			tagged = true
			if err := json.Unmarshal(m.value, &tag); err != nil {
				return "", l, err
			}
		case m.key == *metaKey && l.meta == "":
			l.meta = canonical(m.value, false)
		case *recordKey == "":
			record = append(record, m)
		case m.key == *recordKey:
			if record, err = members(m.value); err != nil {
				return "", l, err
			}
		}
	}
	if !timed || !tagged {
		return "", l, fmt.Errorf("no %q or no %q in it", *timeKey, *tagKey)
	}
	l.rec, l.sorted = object(record, false), object(record, true)
	return tag, l, nil
}

// parseTime reads RFC 3339, or seconds since 1970.
func parseTime(raw json.RawMessage) (sec, nsec int64, err error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
			return t.Unix(), int64(t.Nanosecond()), nil
		}
	} else {
		text = string(raw)
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return 0, 0, fmt.Errorf("no time: %s", raw)
	}
	whole := new(big.Int).Div(r.Num(), r.Denom())
	r.Sub(r, new(big.Rat).SetInt(whole)).Mul(r, big.NewRat(1e9, 1))
	return whole.Int64(), new(big.Int).Div(r.Num(), r.Denom()).Int64(), nil
}

// object writes members in order, or sorted without those that a later one replaces.
func object(list []member, sorted bool) string {
	if sorted {
		last := map[string]member{}
		for _, m := range list {
			last[m.key] = m
		}
		list = list[:0:0]
		for _, m := range last {
			list = append(list, m)
		}
		slices.SortFunc(list, func(a, b member) int { return strings.Compare(a.key, b.key) })
	}
	var b strings.Builder
	b.WriteByte('{')
	for i, m := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		key, _ := json.Marshal(m.key) //nolint:errchkjson // a string
		b.Write(key)
		b.WriteByte(':')
		b.WriteString(canonical(m.value, sorted))
	}
	b.WriteByte('}')
	return b.String()
}

// canonical writes a value without spaces, and strings with the fewest escapes.
func canonical(raw json.RawMessage, sorted bool) string {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) > 0 && raw[0] == '{':
		if list, err := members(raw); err == nil {
			return object(list, sorted)
		}
	case len(raw) > 0 && raw[0] == '[':
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) == nil {
			parts := make([]string, len(list))
			for i, v := range list {
				parts[i] = canonical(v, sorted)
			}
			return "[" + strings.Join(parts, ",") + "]"
		}
	case len(raw) > 0 && raw[0] == '"':
		var s string
		if json.Unmarshal(raw, &s) == nil {
			b, _ := json.Marshal(s) //nolint:errchkjson // a string
			return string(b)
		}
	}
	return string(raw)
}
