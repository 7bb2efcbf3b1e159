// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A family is the files that a pattern makes for one tag on this host: those of all processes and,
// where the files are not shared, of all days and hours.
//
//	pattern   /var/log/{tag}.{pid}.jsonl     tag web
//	family    /var/log/web.{pid}.jsonl       web.17.jsonl, web.17-20261121T020304.123.jsonl.gz, web.204.jsonl, …
//
// Its members are found by name, so a name has to be one that the pattern makes, from its first to
// its last letter. What stands for the rest ("other" in the place of a time) is none.
type family struct {
	base     string   // directory
	elements [][]part // below it, of literals, times and pidPart
	varies   bool     // it may have more than one path
}

// A member is a file of a family, with all forms of a rotated one.
type member struct {
	rotated
	current bool      // it is not rotated, so that somebody may write it
	pid     int       // whose it is; 0: the pattern does not say
	past    bool      // of another day or hour than now
	size    int64     // of all forms
	changed time.Time // last
}

// gathers says which placeholders leave files behind that no process goes on with.
func (p *pattern) gathers(shared Sharing) (some placeholderSet) {
	if !canWait {
		return some // without locks nobody knows what is written
	}
	some[pidPart] = p.uses[pidPart] && p.partsPIDs()
	if shared == Unshared { // else another process may come back to a file of yesterday
		some[datePart], some[hourPart] = p.uses[datePart], p.uses[hourPart]
	}
	return some
}

// Gathers reports whether files under a path are left behind that no process goes on with, and that
// Rotation's Keep, MaxAge, MaxTotal and Compress are about although nothing is rotated.
func Gathers(path string, shared Sharing) bool {
	p, err := parsePattern(path)
	return err == nil && p.gathers(shared) != placeholderSet{}
}

// partsPIDs reports whether something other than digits stands between each tag and each process
// id: else the tag a1 of the process 23 has the file of the tag a of the process 123.
func (p *pattern) partsPIDs() bool {
	for _, parts := range p.elements {
		last := literal // of tagPart and pidPart
		for _, x := range parts {
			switch {
			case x.what == datePart, x.what == literal && strings.Trim(x.text, "0123456789") != "":
				last = literal
			case x.what == tagPart && last == pidPart, x.what == pidPart && last == tagPart:
				return false
			case x.what == tagPart, x.what == pidPart:
				last = x.what
			}
		}
	}
	return true
}

// familyOf returns the family of a path that the pattern makes for a process. A path of which that
// cannot be said is alone.
func (p *pattern) familyOf(path string, id identity, shared Sharing) *family {
	some := p.gathers(shared)
	if some == (placeholderSet{}) {
		return alone(path)
	}
	base := p.base
	if !os.IsPathSeparator(base[len(base)-1]) {
		base += string(filepath.Separator)
	}
	rest, ok := strings.CutPrefix(path, base)
	names := strings.Split(rest, string(filepath.Separator))
	if !ok || len(names) != len(p.elements) {
		return alone(path)
	}
	all := &family{base: p.base, varies: true}
	for i, parts := range p.elements {
		element, ok := take(parts, names[i], id, some)
		if !ok {
			return alone(path)
		}
		all.elements = append(all.elements, element)
	}
	return all
}

// alone is the family of one path.
func alone(path string) *family {
	return &family{base: filepath.Dir(path), elements: [][]part{{{text: filepath.Base(path)}}}}
}

// take parts a name that parts have made, and keeps those as they are that vary.
func take(parts []part, name string, id identity, some placeholderSet) (element []part, ok bool) {
	fixed, tags := 0, 0
	for i := range parts {
		fixed += parts[i].length(id)
		if parts[i].what == tagPart {
			tags++
		}
	}
	room := len(name) - fixed
	if room < 0 || tags == 0 && room > 0 || tags > 0 && room%tags != 0 {
		return nil, false
	}
	var text []byte
	for _, x := range parts {
		n := x.length(id)
		if x.what == tagPart {
			n = room / tags
		}
		this := name[:n]
		name = name[n:]
		if !some[x.what] {
			text = append(text, this...)
			continue
		}
		if x.what != pidPart && !isTime(this, x.what) || x.what == pidPart && this != id.pid {
			return nil, false
		}
		if len(text) > 0 {
			element, text = append(element, part{text: string(text)}), nil
		}
		element = append(element, part{what: x.what})
	}
	if len(text) > 0 {
		element = append(element, part{text: string(text)})
	}
	return element, true
}

// isTime reports whether a text is the day or hour of some time.
func isTime(text string, what placeholder) bool {
	layout := dayLayout
	if what == hourPart {
		layout = hourLayout
	}
	t, err := time.Parse(layout, text)
	return err == nil && t.Format(layout) == text
}

// name tells the family from others.
func (m *family) name() string {
	b := []byte(m.base)
	for _, parts := range m.elements {
		if len(b) == 0 || !os.IsPathSeparator(b[len(b)-1]) {
			b = append(b, filepath.Separator)
		}
		for _, x := range parts {
			switch x.what {
			case datePart:
				b = append(b, "{date}"...)
			case hourPart:
				b = append(b, "{hour}"...)
			case pidPart:
				b = append(b, "{pid}"...)
			default:
				b = append(b, x.text...)
			}
		}
	}
	return string(b)
}

// A variable is what stood in the places of a path that vary.
type variable struct{ pid, day, hour string }

// match reports whether parts make a name, and notes what stands in its places. What was noted has
// to be the same again.
func (v *variable) match(parts []part, name string) bool {
	fixed, pids := 0, 0
	for i := range parts {
		fixed += parts[i].length(identity{}) // without those of ids
		if parts[i].what == pidPart {
			pids++
		}
	}
	room := len(name) - fixed
	if room < pids || pids == 0 && room > 0 || pids > 0 && room%pids != 0 {
		return false
	}
	note := func(into *string, n int) bool {
		if *into == "" {
			*into = name[:n]
		}
		return *into == name[:n]
	}
	for _, x := range parts {
		n, ok := 0, false
		switch x.what {
		case literal:
			n = len(x.text)
			ok = name[:n] == x.text
		case datePart:
			n = len(dayLayout)
			ok = isTime(name[:n], datePart) && note(&v.day, n)
		case hourPart:
			n = len(hourLayout)
			ok = isTime(name[:n], hourPart) && note(&v.hour, n)
		case pidPart:
			n = room / pids
			ok = parsePID(name[:n]) > 0 && note(&v.pid, n)
		}
		if !ok {
			return false
		}
		name = name[n:]
	}
	return true
}

// parsePID returns 0 for what is no process id as it is written in a path.
func parsePID(text string) int {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n <= 0 || text[0] == '0' || text[0] == '+' {
		return 0
	}
	return int(n)
}

// batchNames is how many names of a directory are in memory at once.
const batchNames = 1 << 10

// members looks for all files of the family. Where it varies, files of other users are none. What
// vanishes meanwhile is none. The error is errStopped, or why a directory cannot be read.
func (m *family) members(now time.Time, sizes bool, stop <-chan struct{}) ([]member, error) {
	now = now.UTC()
	w := walk{
		family: m, sizes: sizes, day: now.Format(dayLayout), hour: now.Format(hourLayout), stop: stop,
		rotated: map[string]int{},
	}
	err := w.look(m.base, 0, variable{})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return w.found, err
}

// A walk goes through the directories of a family.
type walk struct {
	*family
	sizes   bool   // are wanted, whether it varies or not
	day     string // of now
	hour    string
	stop    <-chan struct{}
	found   []member
	rotated map[string]int // index of those in found, by path
}

// look looks into a directory, and into those below. What cannot be read of these is another
// user's, or goes with the next look. The error is that of the first.
func (w *walk) look(dir string, depth int, so variable) error {
	parts := w.elements[depth]
	last := depth == len(w.elements)-1
	if !last && len(parts) == 1 && parts[0].what == literal {
		return w.look(filepath.Join(dir, parts[0].text), depth+1, so)
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	var below []string
	for more := true; more; {
		if isClosed(w.stop) {
			return errStopped
		}
		entries, err := d.ReadDir(batchNames)
		for _, e := range entries {
			v := so
			switch {
			case last && e.Type().IsRegular():
				w.add(dir, e, so)
			case !last && e.IsDir() && v.match(parts, e.Name()):
				below = append(below, e.Name())
			}
		}
		more = err == nil
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	for _, name := range below {
		v := so
		v.match(parts, name)
		if err := w.look(filepath.Join(dir, name), depth+1, v); errors.Is(err, errStopped) {
			return err
		}
	}
	return nil
}

// isClosed reports whether a channel is closed; nil is not.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// add notes a file if it is a member.
func (w *walk) add(dir string, e fs.DirEntry, so variable) {
	parts := w.elements[len(w.elements)-1]
	var it member
	v, form := so, 0
	if it.current = v.match(parts, e.Name()); !it.current {
		var ok bool
		it.at, form, ok = unrotated(e.Name(), func(before string) bool {
			v = so
			return v.match(parts, before)
		})
		if !ok {
			return
		}
	}
	it.path = filepath.Join(dir, strings.TrimSuffix(e.Name(), endings[form]))
	if w.varies || w.sizes {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || w.varies && !isOurs(info) {
			return
		}
		it.size, it.changed = info.Size(), info.ModTime()
	}
	if it.current {
		if it.at = it.changed; it.at.After(time.Now()) { // a clock was wrong, or is now
			it.at = time.Now()
		}
	}
	it.pid = parsePID(v.pid)
	it.past = v.day != "" && v.day != w.day || v.hour != "" && v.hour != w.hour
	it.forms[form] = true
	if it.current {
		w.found = append(w.found, it)
		return
	}
	if i, ok := w.rotated[it.path]; ok {
		before := &w.found[i]
		before.forms[form] = true
		before.size += it.size
		if it.changed.After(before.changed) {
			before.changed = it.changed
		}
		return
	}
	w.rotated[it.path] = len(w.found)
	w.found = append(w.found, it)
}

// unrotated reads the name of a rotated file, of one that had a name before.
func unrotated(name string, had func(before string) bool) (at time.Time, form int, ok bool) {
	for form := range endings {
		rest, ok := strings.CutSuffix(name, endings[form])
		for _, end := range []int{strings.LastIndexByte(rest, '.'), len(rest)} {
			start := end - len(stampLayout)
			if !ok || start < 1 || rest[start-1] != '-' {
				continue
			}
			before := rest[:start-1] + rest[end:]
			_, base, ending := splitName(before)
			if at, f, ok := parseRotated(name, base, ending); ok && f == form && had(before) {
				return at, form, true
			}
		}
	}
	return at, 0, false
}

// tidy removes the directories of a member that vary, if nothing is in them any more.
func (m *family) tidy(path string) {
	for i := len(m.elements) - 2; i >= 0; i-- {
		path = filepath.Dir(path)
		outer := false // it, or one that it is in, varies
		for _, parts := range m.elements[:i+1] {
			outer = outer || len(parts) != 1 || parts[0].what != literal
		}
		if !outer || os.Remove(path) != nil {
			return
		}
	}
}

// tends reports whether something is done with files of a pattern that nobody writes.
func (o *Options) tends(p *pattern) bool {
	return o.Rotation.tends() && (o.Rotation.on() || p.gathers(o.Shared) != placeholderSet{})
}
