// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ErrPattern says that lines cannot go to files under a path.
var ErrPattern = errors.New("files: unusable path pattern")

// identity is what of the writing process stands in paths. A pattern without {host} has an empty
// host, and so on. In a state of version 1 the pattern is empty: it is that of the reader.
type identity struct{ host, pid, pattern string }

// A route is what of an event decides about its path; what the pattern does not use is zero.
type route struct {
	tag  string
	slot int64 // hours or days since the year 0, or restSlot
}

// restSlot stands for no time, in the route of the rest.
const restSlot = -1

// restName is in the place of the tag and of the time in the path of the file for the rest.
const restName = "other"

// A placeholder is what stands in braces in a path. {host} is the name of the machine that writes
// the file; in the templates of steps (internal/step/template.go) and of Kafka
// (cmd/internal/kafka/template.go), which have parsers of their own, it is the field host of the
// record.
type placeholder uint8

const (
	literal placeholder = iota
	tagPart
	datePart
	hourPart
	hostPart
	pidPart
)

var placeholders = map[string]placeholder{
	"tag": tagPart, "date": datePart, "hour": hourPart, "host": hostPart,
	"pid": pidPart,
}

// The forms of times.
const (
	dayLayout  = "2006-01-02"
	hourLayout = "15"
)

type part struct {
	what placeholder
	text string // of a literal
}

// length is how many bytes of a name a part has that is not a tag.
func (x *part) length(id identity) int {
	switch x.what {
	case literal:
		return len(x.text)
	case datePart:
		return len(dayLayout)
	case hourPart:
		return len(hourLayout)
	case hostPart:
		var buf [maxName]byte
		return len(appendName(buf[:0], id.host, maxName, true))
	case pidPart:
		return len(id.pid)
	}
	return 0
}

// placeholderSet says something of each placeholder.
type placeholderSet [pidPart + 1]bool

// A pattern is a path with placeholders.
type pattern struct {
	text     string   // the whole, absolute
	base     string   // the path before the first element with a placeholder, absolute
	elements [][]part // names of directories, and of the file at last
	uses     placeholderSet
	reserve  int // bytes of a name that are for the stamp of a rotated file
}

func parsePattern(text string) (*pattern, error) {
	if text == "" {
		return nil, fmt.Errorf("%w: it is empty", ErrPattern)
	}
	if strings.IndexByte(text, 0) >= 0 {
		return nil, fmt.Errorf("%w: %q: NUL in a path", ErrPattern, text)
	}
	if c := text[len(text)-1]; os.IsPathSeparator(c) {
		return nil, fmt.Errorf("%w: %q: it names a directory; the name of the file is missing", ErrPattern, text)
	}
	path := filepath.Clean(filepath.FromSlash(text))
	p := &pattern{}
	volume := filepath.VolumeName(path)
	rest := path[len(volume):]
	if filepath.IsAbs(path) {
		p.base = volume + string(filepath.Separator)
	} else {
		here, err := os.Getwd()
		if err != nil {
			return nil, fmt.Errorf("files: %q is relative: %w", text, err)
		}
		p.base, rest = here, path
	}
	for name := range strings.SplitSeq(rest, string(filepath.Separator)) {
		if name == "" {
			continue
		}
		parts, err := parseElement(name)
		if err != nil {
			return nil, fmt.Errorf("%w: %q: %w", ErrPattern, text, err)
		}
		p.elements = append(p.elements, parts)
	}
	if len(p.elements) == 0 || path == "." || path == ".." {
		return nil, fmt.Errorf("%w: %q: it names a directory", ErrPattern, text)
	}
	p.text = filepath.Join(p.base, rest)
	for len(p.elements) > 1 && len(p.elements[0]) == 1 && p.elements[0][0].what == literal {
		p.base = filepath.Join(p.base, p.elements[0][0].text)
		p.elements = p.elements[1:]
	}
	for _, parts := range p.elements {
		for _, x := range parts {
			p.uses[x.what] = true
		}
	}
	return p, nil
}

const knownPlaceholders = "{tag}, {date}, {hour}, {host}, {pid}"

func parseElement(name string) (parts []part, err error) {
	for name != "" {
		open := strings.IndexAny(name, "{}")
		switch {
		case open < 0:
			return append(parts, part{text: name}), nil
		case name[open] == '}':
			return nil, fmt.Errorf("a closing brace without an opening one")
		case open > 0:
			parts = append(parts, part{text: name[:open]})
		}
		word, rest, ok := strings.Cut(name[open+1:], "}")
		if !ok {
			return nil, fmt.Errorf("an opening brace without a closing one")
		}
		what, ok := placeholders[word]
		if !ok {
			return nil, fmt.Errorf("no placeholder {%s}; there are %s", word, knownPlaceholders)
		}
		parts = append(parts, part{what: what})
		name = rest
	}
	return parts, nil
}

// Personal reports whether each process has files of its own under a path: it has {pid}.
func Personal(path string) bool { return strings.Contains(path, "{pid}") }

// check returns why paths of the given identity could get too long a name.
func (p *pattern) check(id identity) error {
	for _, parts := range p.elements {
		room, tags := p.tagRoom(parts, id)
		if tags == 0 {
			for _, x := range parts {
				if x.what == hourPart {
					room -= len(restName) - len(hourLayout)
				}
			}
		}
		if tags > 0 && room < minName || tags == 0 && room < 0 {
			return fmt.Errorf("%w: a name in it is too long: at most %d bytes, %d of them for a tag", ErrPattern,
				maxName, minName)
		}
	}
	return nil
}

// tagRoom returns how many bytes each of the tags in a name may have.
func (p *pattern) tagRoom(parts []part, id identity) (room, tags int) {
	room = maxName - p.reserve
	for i := range parts {
		if parts[i].what == tagPart {
			tags++
		}
		room -= parts[i].length(id) // "other" in place of an hour has room in what a tag gets at least
	}
	return room / max(tags, 1), tags
}

// of returns what of id the pattern uses.
func (p *pattern) of(id identity) identity {
	id.pattern = p.text
	if !p.uses[hostPart] {
		id.host = ""
	}
	if !p.uses[pidPart] {
		id.pid = ""
	}
	return id
}

// Seconds of the years 0 to 9999; dates beyond have no ten digits.
const (
	minSec = -62167219200
	maxSec = 253402300799
)

// route returns the part of an event that decides about its path.
func (p *pattern) route(tag string, sec int64) (r route) {
	if p.uses[tagPart] {
		r.tag = tag
	}
	if !p.uses[datePart] && !p.uses[hourPart] {
		return r
	}
	sec = min(max(sec, minSec), maxSec) - minSec // not negative, so that division rounds down
	switch {
	case p.uses[datePart] && p.uses[hourPart]:
		r.slot = sec / 3600
	case p.uses[datePart]:
		r.slot = sec / 86400
	default:
		r.slot = sec / 3600 % 24
	}
	return r
}

// routes says what of an event decides about its path.
func (p *pattern) routes() [3]bool {
	return [3]bool{p.uses[tagPart], p.uses[datePart], p.uses[hourPart]}
}

// rest returns the route of all events that get no file of their own. ok is false where every event
// has the same file.
func (p *pattern) rest() (r route, ok bool) {
	timed := p.uses[datePart] || p.uses[hourPart]
	if p.uses[tagPart] {
		r.tag = restName // a tag of that name shares the file, where the path has no time
	}
	if timed {
		r.slot = restSlot
	}
	return r, timed || p.uses[tagPart]
}

// path returns the path of a route.
func (p *pattern) path(r route, id identity) string {
	sec := r.slot * 86400
	if p.uses[hourPart] {
		sec = r.slot * 3600
	}
	t := time.Unix(sec+minSec, 0).UTC()
	b := make([]byte, 0, 256)
	b = append(b, p.base...)
	for _, parts := range p.elements {
		if !os.IsPathSeparator(b[len(b)-1]) {
			b = append(b, filepath.Separator)
		}
		room, _ := p.tagRoom(parts, id)
		for _, x := range parts {
			switch x.what {
			case literal:
				b = append(b, x.text...)
			case tagPart:
				b = appendName(b, r.tag, max(room, minName), p.reserve == 0)
			case datePart:
				b = r.appendTime(b, t, dayLayout)
			case hourPart:
				b = r.appendTime(b, t, hourLayout)
			case hostPart:
				b = appendName(b, id.host, maxName, true)
			case pidPart:
				b = append(b, id.pid...)
			}
		}
	}
	return string(b)
}

// appendTime appends a part of a route's time.
func (r *route) appendTime(b []byte, t time.Time, layout string) []byte {
	if r.slot == restSlot {
		return append(b, restName...)
	}
	return t.AppendFormat(b, layout)
}
