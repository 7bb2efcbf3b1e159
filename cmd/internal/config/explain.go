// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/internal/urls"
)

// explain makes mistakes of what a check has found.
func (r *reader) explain(err error) {
	if err == nil {
		return
	}
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range all.Unwrap() {
			r.explain(err)
		}
		return
	}
	var end *collector.EndError
	var key *KeyError
	var route *collector.RouteError
	switch {
	case errors.As(err, &route) && r.file.said[routesKey] != nil:
		r.explainRoute(route)
	case errors.As(err, &end):
		r.explainURL(r.file.said[end.Side+"s."+end.End.Name], end.Err)
	case errors.As(err, &key) && r.file.said[key.Key] != nil:
		if e := (*urls.Error)(nil); errors.As(err, &e) {
			r.explainURL(r.file.said[key.Key], e)
			return
		}
		r.wrong(r.file.said[key.Key], "%s: %s", key.Key, r.file.Hide(key.Err.Error()))
	default:
		r.mistakes = append(r.mistakes, Mistake{File: r.files[0].name, Text: r.file.Hide(err.Error())})
	}
}

// explainURL tells what is wrong with an end; n is nil for one that is not from the file.
func (r *reader) explainURL(n *node, err error) {
	var e *urls.Error
	text := err.Error()
	if errors.As(err, &e) {
		if text = e.Reason; e.Example != "" {
			text += "; for example " + e.Example
		}
	}
	if n == nil {
		r.mistakes = append(r.mistakes, Mistake{Text: r.file.Hide(err.Error())})
		return
	}
	at := n
	if n.kind == mapping {
		at = n.get(urlKey)
	}
	line, column := at.line, at.column
	if e != nil && e.Parameter != "" {
		if p := n.get(e.Parameter); p != nil {
			line, column = p.line, p.column
		} else if source := []rune(at.file.lines[line-1]); column <= len(source) {
			if before, _, found := strings.Cut(string(source[column-1:]), e.Parameter+"="); found {
				column += len([]rune(before))
			}
		}
		if strings.HasPrefix(text, "unknown parameter") {
			text += meant(e.Parameter, takesList(text))
		}
	}
	if found := noScheme.FindStringSubmatch(text); found != nil {
		text += meant(found[1], strings.Split(found[2], ", "))
	}
	if strings.Contains(at.value, "${") || n.kind == mapping {
		text = r.file.Hide(text)
	}
	r.mistakes = append(r.mistakes, at.file.mistake(line, column, "%s", text))
}

var (
	noScheme = regexp.MustCompile(`^no scheme "([^"]*)"; known are ([a-z0-9+, ]*)`)
	takesAll = regexp.MustCompile(`; \S+ takes ([a-z0-9_, ]*)`)
)

// takesList are the parameters that an error lists.
func takesList(text string) []string {
	if found := takesAll.FindStringSubmatch(text); found != nil {
		return strings.Split(found[1], ", ")
	}
	return nil
}

// shortest is how long what a variable gave has to be, to be taken out of the middle of a word.
const shortest = 4

// Hide returns a text without what variables and files gave.
func (f *File) Hide(s string) string {
	if f == nil {
		return s
	}
	return hideAll(s, f.given)
}

// HideFiles returns a text without what files gave: for messages, which would be of no use without
// the hosts and paths that variables give.
func (f *File) HideFiles(s string) string {
	if f == nil {
		return s
	}
	return hideAll(s, f.files)
}

// Remember has a file hide what another one hides, too: it is what was in force before.
func (f *File) Remember(before *File) {
	if f == nil || before == nil {
		return
	}
	f.given, f.files = union(f.given, before.given), union(f.files, before.files)
}

// union is all of a and what b has besides, the longest first.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(all)
}

func hideAll(s string, values []string) string {
	for _, value := range values {
		quoted := strconv.Quote(value)
		forms := []string{value, escape(value), quoted[1 : len(quoted)-1]}
		for i, form := range forms {
			switch {
			case slices.Contains(forms[:i], form):
			case len(value) >= shortest:
				s = strings.ReplaceAll(s, form, hidden)
			default:
				s = hideWord(s, form)
			}
		}
	}
	return s
}

// hideWord hides a short value where it is a word of its own.
func hideWord(s, word string) string {
	var b strings.Builder
	from := 0
	for {
		i := strings.Index(s[from:], word)
		if i < 0 {
			return b.String() + s[from:]
		}
		i += from
		end := i + len(word)
		b.WriteString(s[from:i])
		if i > 0 && letter(s[i-1]) || end < len(s) && letter(s[end]) {
			b.WriteString(word)
		} else {
			b.WriteString(hidden)
		}
		from = end
	}
}

func letter(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
}

// explainRoute puts what is wrong with a route to its place, which may be within a text.
func (r *reader) explainRoute(e *collector.RouteError) {
	n := r.file.said[routesKey].at(e.Path)
	if e.Output != "" && r.file.said[outputsKey+"."+e.Output] != nil {
		n = r.file.said[outputsKey+"."+e.Output]
	}
	var names []string // of outputs without a mistake
	for i := range r.file.Outputs {
		names = append(names, r.file.Outputs[i].Name)
	}
	unknown := len(e.Path) > 1 && e.Path[1] == "to" && !slices.Contains(names, n.value)
	if r.told(n) || unknown && r.file.said[outputsKey+"."+n.value] != nil {
		return
	}
	column := n.column
	said := e.Text
	if e.At >= 0 && n.kind == text && !strings.Contains(n.value, "${") {
		source := []rune(n.file.lines[n.line-1])
		if behind := string(source[min(column-1, len(source)):]); strings.Contains(behind, n.value) {
			before, _, _ := strings.Cut(behind, n.value)
			column += len([]rune(before)) + len([]rune(n.value[:min(e.At, len(n.value))]))
		}
	}
	if unknown {
		said += meant(n.value, names)
	}
	if strings.Contains(n.value, "${") {
		said = r.file.Hide(said)
	}
	r.mistakes = append(r.mistakes, n.file.mistake(n.line, column, "%s", said))
}
