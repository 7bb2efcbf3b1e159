// SPDX-License-Identifier: Apache-2.0

package files

import (
	"path/filepath"
	"slices"
)

// Meet reports whether two paths with placeholders can name one file, for some tags and times: two
// Sets must not write it. Directories are compared as they are now, behind symbolic links.
func Meet(a, b string) (bool, error) {
	p, err := parsePattern(a)
	if err != nil {
		return false, err
	}
	q, err := parsePattern(b)
	if err != nil {
		return false, err
	}
	x, y := p.letters(), q.letters()
	return meet(x, y), nil
}

// A letter is what may stand at one place of a path.
type letter struct {
	char byte // or
	what letterKind
}

type letterKind uint8

const (
	oneChar  letterKind = iota
	oneDigit            // of a time
	someName            // one or more, as a tag may have them
)

// letters returns the places of a path, in each form that it has: a time may be restName. {host}
// and {pid} count as any name.
func (p *pattern) letters() (all [][]letter) {
	base := resolved(p.base)
	if base != string(filepath.Separator) {
		base += string(filepath.Separator)
	}
	all = [][]letter{word(base)}
	for i, parts := range p.elements {
		if i > 0 {
			all = each(all, word(string(filepath.Separator)))
		}
		for _, x := range parts {
			switch x.what {
			case literal:
				all = each(all, word(x.text))
			case datePart:
				all = append(each(all, digits(dayLayout)), each(all, word(restName))...)
			case hourPart:
				all = append(each(all, digits(hourLayout)), each(all, word(restName))...)
			default:
				all = each(all, []letter{{what: someName}})
			}
		}
	}
	return all
}

// resolved follows the symbolic links of a directory, as far as it is there.
func resolved(dir string) string {
	if path, err := filepath.EvalSymlinks(dir); err == nil {
		return path
	}
	parent := filepath.Dir(dir)
	if parent == dir {
		return dir
	}
	return filepath.Join(resolved(parent), filepath.Base(dir))
}

func word(text string) (w []letter) {
	for i := range len(text) {
		w = append(w, letter{char: text[i]})
	}
	return w
}

func digits(layout string) []letter {
	w := word(layout)
	for i := range w {
		if isDigit(w[i].char) {
			w[i] = letter{what: oneDigit}
		}
	}
	return w
}

// each appends a word to all of several.
func each(all [][]letter, w []letter) (longer [][]letter) {
	for _, l := range all {
		longer = append(longer, slices.Concat(l, w))
	}
	return longer
}

func meet(x, y [][]letter) bool {
	for _, a := range x {
		for _, b := range y {
			if meetWords(a, b) {
				return true
			}
		}
	}
	return false
}

// meetWords reports whether some text is both.
func meetWords(a, b []letter) bool {
	seen := map[[2]int]bool{}
	var try func(i, j int) bool
	try = func(i, j int) bool { // a[i:] and b[j:]
		if i == len(a) || j == len(b) {
			return i == len(a) && j == len(b)
		}
		at := [2]int{i, j}
		if seen[at] {
			return false
		}
		seen[at] = true
		if !a[i].fits(b[j]) {
			return false
		}
		return try(i+1, j+1) || a[i].what == someName && try(i, j+1) || b[j].what == someName && try(i+1, j)
	}
	return try(0, 0)
}

// fits reports whether one character can be both.
func (l letter) fits(m letter) bool {
	if l.what > m.what {
		l, m = m, l
	}
	switch m.what {
	case oneChar:
		return l.char == m.char
	case oneDigit:
		return l.what == oneDigit || isDigit(l.char)
	}
	return l.what != oneChar || l.char != filepath.Separator
}
