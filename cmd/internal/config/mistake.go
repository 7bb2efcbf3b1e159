// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spillwaylog/spillway/internal/urls"
)

// A Mistake is one thing that is wrong with a configuration.
type Mistake struct {
	File         string
	Line, Column int    // from 1; 0: the mistake is in no line
	Text         string // what is wrong
	Source       string // the line, without secrets

	caret int // column in Source
}

// MistakeIn is what is wrong at a byte of a text that stands in no file.
func MistakeIn(name, text string, at int, what string) Mistake {
	before := text[:min(max(at, 0), len(text))]
	line := strings.Count(before, "\n") + 1
	s := &configFile{name: name, lines: strings.Split(text, "\n")}
	return s.mistake(line, 1+utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]), "%s", what)
}

// Mistakes are all that is wrong, in the order of the files and lines.
type Mistakes []Mistake

// Error is all of it, for people.
func (m Mistakes) Error() string {
	var b strings.Builder
	for i := range m {
		if i > 0 {
			b.WriteByte('\n')
		}
		m[i].write(&b)
	}
	return b.String()
}

// Bounds of what is shown of a line around its mistake, in characters.
const (
	shownBefore = 60
	shownAfter  = 60
)

// write writes the place, the text, the line and a caret below its column.
func (m *Mistake) write(b *strings.Builder) {
	switch {
	case m.File == "":
		b.WriteString(m.Text)
		return
	case m.Line == 0:
		fmt.Fprintf(b, "%s: %s", m.File, m.Text)
		return
	}
	fmt.Fprintf(b, "%s:%d:%d: %s", m.File, m.Line, m.Column, m.Text)
	line := []rune(m.Source)
	at := min(max(m.caret-1, 0), len(line))
	if len(line) == 0 {
		return
	}
	before, after := line[:at], line[at:]
	if len(before) > shownBefore {
		before = append([]rune("... "), before[len(before)-shownBefore:]...)
	}
	if len(after) > shownAfter {
		after = append(slices.Clone(after[:shownAfter]), []rune(" ...")...)
	}
	pad := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, string(before))
	fmt.Fprintf(b, "\n    %s%s\n    %s^", printable(string(before)), printable(string(after)), pad)
}

// printable replaces what would move a cursor.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// sorted returns mistakes in their order, each once.
func (m Mistakes) sorted(files []*configFile) Mistakes {
	order := map[string]int{}
	for i, s := range files {
		order[s.name] = i
	}
	slices.SortStableFunc(m, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(order[a.File], order[b.File]), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(m)
}

// A configFile is one file, as it was read.
type configFile struct {
	name  string
	dir   string
	lines []string
	plain bool           // no tree was made of it, so what is a secret shows only in its name
	masks map[int][]mask // by line: what is not shown
}

// A mask is a text that stands at a column or, in quotes, behind it.
type mask struct {
	column int
	text   string
}

// mistake is one at a place in the file.
func (s *configFile) mistake(line, column int, format string, args ...any) Mistake {
	m := Mistake{
		File: s.name, Line: line, Column: column,
		Text: strings.ReplaceAll(printable(fmt.Sprintf(format, args...)), "\t", "?"),
	}
	if line >= 1 && line <= len(s.lines) {
		text := []rune(s.lines[line-1])
		m.Source = s.shown(line, string(text))
		m.caret = 1 + len([]rune(s.shown(line, string(text[:min(max(column-1, 0), len(text))]))))
	}
	return m
}

var (
	// secretName is a word that may name a secret: what follows, up to the end of the line.
	secretName = regexp.MustCompile(`([\w-]+)["']?\s*[:=]\s*`)
	webAddress = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*:[^\s"']*`)
)

// shown is a line, or its beginning, without secrets.
func (s *configFile) shown(line int, text string) string {
	masks := s.masks[line]
	// From the end, so that columns stay.
	slices.SortFunc(masks, func(a, b mask) int { return cmp.Compare(b.column, a.column) })
	for _, m := range masks {
		text = m.apply(text)
	}
	if s.plain {
		text = s.withoutSecrets(line, text)
	}
	return webAddress.ReplaceAllStringFunc(text, urls.Show)
}

// withoutSecrets hides what stands behind the name of a secret, in its line and in those below that
// are indented further, as where a value goes on.
func (s *configFile) withoutSecrets(line int, text string) string {
	depth := indent(s.lines[line-1])
	for _, above := range slices.Backward(s.lines[:line-1]) {
		if at := indent(above); strings.TrimSpace(above) != "" && at < depth {
			if secretBehind(above) >= 0 {
				if value := strings.TrimLeft(text, " \t-"); value != "" {
					return strings.TrimSuffix(text, value) + hidden
				}
				return text
			}
			depth = at
		}
	}
	if at := secretBehind(text); at >= 0 && at < len(text) {
		return text[:at] + hidden
	}
	return text
}

// indent is how far a line is indented. An item of a list is within the key above it.
func indent(line string) int {
	n := len(line) - len(strings.TrimLeft(line, " \t"))
	if strings.HasPrefix(line[n:], "-") {
		n++
	}
	return n
}

// secretBehind returns where the first value of a line begins that may be a secret, or -1.
func secretBehind(text string) int {
	for _, at := range secretName.FindAllStringSubmatchIndex(text, -1) {
		if urls.Secret(text[at[2]:at[3]]) {
			return at[1]
		}
	}
	return -1
}

// apply hides the text; or the rest of the line, where the text is written otherwise.
func (m *mask) apply(line string) string {
	runes := []rune(line)
	if m.column > len(runes) {
		return line
	}
	before, after := string(runes[:m.column-1]), string(runes[m.column-1:])
	for _, quote := range []string{"", `"`, "'"} {
		if rest, found := strings.CutPrefix(after, quote+m.text); found && m.text != "" {
			return before + quote + hidden + rest
		}
	}
	return before + hidden
}

// hidden stands for what is not shown.
const hidden = "***"
