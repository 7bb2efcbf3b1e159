// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bytes"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/spillwaylog/spillway/msgpack"
)

// A Redact takes what looks like a secret out of texts.
type Redact struct {
	Fields   []string `help:"Fields whose texts are looked through, those in maps and lists in them as well; none: all."`
	Patterns []string `help:"What is looked for: card, email, ip, token; none: all of these." enum:"card,email,ip,token"`
	Also     []string `help:"Regular expressions of what is looked for as well; of one with a group that alone is taken out."`
}

// redactions are patterns that are known.
var redactions = map[string]func(text []byte) [][2]int{
	"card": cards,
	"email": expression{
		expr:  regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+`),
		needs: []byte{'@'},
	}.find,
	"ip": addresses,
	"token": func(text []byte) (found [][2]int) {
		found = credentials(text)
		for i := range tokens {
			found = append(found, tokens[i].find(text)...)
		}
		return found
	},
}

// tokens are what gives access: signed tokens, keys of well-known services, and what stands behind
// a word that says so.
var tokens = []expression{
	{expr: regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?`), needs: []byte("eyJ")},
	{expr: regexp.MustCompile(`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`), needs: []byte("IA")},
	{expr: regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{20,}`), needs: []byte("gh")},
	{expr: regexp.MustCompile(`\bxox[abeprs]-[A-Za-z0-9-]{10,}`), needs: []byte("xox")},
	{
		expr: regexp.MustCompile(`(?is:(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key)["']?\s*[=:]\s*(?:"((?:[^"\\]|\\.)+)|'((?:[^'\\]|\\.)+)|([^\s"'&,;]+)))`),
		may:  namesSecret, any: true,
	},
}

// minCredential is how long what stands behind "Bearer" or "Basic" is at least where nothing says
// that they are no words.
const minCredential = 8

const blanks = " \t\r\n\f"

// credentials finds what stands behind the name of a scheme of HTTP. An expression would take much
// longer.
func credentials(text []byte) (found [][2]int) {
	for i := 0; i < len(text); i++ {
		if text[i]|0x20 != 'b' || i > 0 && text[i-1] < 0x80 && isLetter(text[i-1]) {
			continue
		}
		from := i
		switch {
		case begins(text[i:], "bearer"):
			from += len("bearer")
		case begins(text[i:], "basic"):
			from += len("basic")
		default:
			continue
		}
		rest := bytes.TrimLeft(text[from:], blanks)
		if len(rest) == len(text)-from {
			continue
		}
		from = len(text) - len(rest)
		to := from
		for to < len(text) && (text[to] < 0x80 && isLetter(text[to]) || strings.IndexByte(".~+/=-", text[to]) >= 0) {
			to++
		}
		if to-from >= minCredential || to > from && inHeader(text[:i]) {
			found = append(found, [2]int{from, to})
			i = to - 1
		}
	}
	return found
}

// inHeader says whether a text ends with the name of the header of credentials and what stands
// between that and its value, in JSON and lists, too.
func inHeader(text []byte) bool {
	const name = "authorization"
	text = bytes.TrimRight(text, blanks+"\"'[")
	n := len(text) - 1
	if n < 0 || text[n] != ':' && text[n] != '=' {
		return false
	}
	text = bytes.TrimRight(text[:n], blanks)
	if n = len(text) - 1; n >= 0 && (text[n] == '"' || text[n] == '\'') {
		text = text[:n]
	}
	n = len(text) - len(name)
	return n >= 0 && begins(text[n:], name)
}

// begins says whether a text begins with a word, in capitals or not.
func begins(text []byte, word string) bool {
	return len(text) >= len(word) && strings.EqualFold(string(text[:len(word)]), word)
}

// namesSecret says whether one of the words may stand before an equals sign or a colon: by its last
// letter.
func namesSecret(text []byte) bool {
	for i, c := range text {
		if c != '=' && c != ':' {
			continue
		}
		word := bytes.TrimRight(text[:i], blanks)
		if n := len(word); n > 0 && (word[n-1] == '"' || word[n-1] == '\'') {
			word = word[:n-1]
		}
		if n := len(word); n > 0 && strings.IndexByte("dtny", word[n-1]|0x20) >= 0 {
			return true
		}
	}
	return false
}

// An expression is a regular one. What has not all of needs, or may not match, cannot.
type expression struct {
	expr  *regexp.Regexp
	needs []byte
	may   func(text []byte) bool
	any   bool // any of its groups counts, not only the first
}

// find returns where it matches: its first group, if it has one.
func (x expression) find(text []byte) (found [][2]int) {
	if x.needs != nil && !bytes.Contains(text, x.needs) || x.may != nil && !x.may(text) {
		return nil
	}
	for _, at := range x.expr.FindAllSubmatchIndex(text, -1) {
		span := [2]int{at[0], at[1]}
		for k := 2; k < len(at); k += 2 {
			if at[k] >= 0 {
				span = [2]int{at[k], at[k+1]}
			}
			if !x.any {
				break
			}
		}
		if span[0] < span[1] {
			found = append(found, span)
		}
	}
	return found
}

// Bounds of the digits of a card number.
const (
	minCard = 13
	maxCard = 19
)

// cards finds 13 to 19 digits, perhaps with single blanks or dashes between them, whose check digit
// is right. Other digits may stand beside them behind such a blank or dash, a date as well; so what
// is found may overlap.
func cards(text []byte) (found [][2]int) {
	for i := 0; i < len(text); i++ {
		if !isDigit(text[i]) {
			continue
		}
		if n := card(text[i:]); n > 0 {
			found = append(found, [2]int{i, i + n})
		}
		for i < len(text) && isDigit(text[i]) {
			i++
		}
	}
	return found
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// card is the length of the longest number of a card at the start of a text, 0 if there is none.
// Its last digit is the one that the others ask for, by Luhn's rule: every second one from the
// right is doubled. From the left these are the first, third and so on of an even number.
func card(text []byte) (length int) {
	var sums [2]int // with the first digit doubled, and with the second
	n, zeros := 0, true
	for k, c := range text {
		switch {
		case isDigit(c):
			d := int(c - '0')
			sums[1-n%2] += d
			if sums[n%2] += 2 * d; d > 4 {
				sums[n%2] -= 9
			}
			zeros = zeros && d == 0
			if n++; n > maxCard {
				return length
			}
			if n >= minCard && !zeros && sums[n%2]%10 == 0 && (k+1 == len(text) || !isDigit(text[k+1])) {
				length = k + 1
			}
		case c != ' ' && c != '-' || !isDigit(text[k-1]):
			return length
		}
	}
	return length
}

// addresses finds those of IP, in both versions.
func addresses(text []byte) (found [][2]int) {
	part := func(c byte) bool {
		return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' || c == '.' || c == ':'
	}
	for i := 0; i < len(text); {
		if !part(text[i]) {
			i++
			continue
		}
		end := i
		for end < len(text) && part(text[end]) {
			end++
		}
		if end-i <= longestRun {
			from, to := i, end
			if i > 0 && isLetter(text[i-1]) {
				from = afterWord(text, i, end)
			}
			if to < len(text) && isLetter(text[to]) {
				to = max(from, i+bytes.LastIndexByte(text[i:end], ':'))
			}
			if at, ok := firstAddress(text[from:to], to == end); ok {
				found = append(found, [2]int{from + at[0], from + at[1]})
			}
		}
		i = end
	}
	return found
}

// longestRun is from how many characters of addresses on there is none.
const longestRun = 64

// afterWord is where an address may begin in a run of its characters that continues a word.
func afterWord(text []byte, from, end int) int {
	if text[from] == '.' {
		return from + 1
	}
	if at := bytes.IndexByte(text[from:end], ':'); at >= 0 {
		return from + at + 1
	}
	return end
}

// firstAddress finds one in a run of its characters, perhaps behind others and a colon: there only
// one of version 4, for of the other version nearly everything with colons has the form. whole says
// that no word begins behind the run.
func firstAddress(run []byte, whole bool) (at [2]int, ok bool) {
	for from := 0; from < len(run); {
		if at, ok = addressIn(run[from:]); ok {
			at[0] += from
			at[1] += from
			if from == 0 && whole || bytes.IndexByte(run[at[0]:at[1]], ':') < 0 {
				return at, true
			}
		}
		next := bytes.IndexByte(run[from:], ':')
		if next < 0 {
			break
		}
		from += next + 1
	}
	return at, false
}

// addressIn finds the address in a run of its characters: without what ends a sentence, and without
// a port.
func addressIn(run []byte) (at [2]int, ok bool) {
	from, to := 0, len(run)
	for to > from && (run[to-1] == '.' || run[to-1] == ':' && (to < 2 || run[to-2] != ':')) {
		to--
	}
	for from < to && (run[from] == '.' || run[from] == ':' && (from+1 == to || run[from+1] != ':')) {
		from++
	}
	text := string(run[from:to])
	if _, err := netip.ParseAddr(text); err == nil {
		return [2]int{from, to}, to-from > 2 // :: is none of anybody
	}
	if a, err := netip.ParseAddrPort(text); err == nil && a.Addr().Is4() {
		return [2]int{from, from + bytes.LastIndexByte(run[from:to], ':')}, true
	}
	return at, false
}

func isLetter(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

// A redactor is the step.
type redactor struct {
	find  []func(text []byte) [][2]int
	spans [][2]int
}

func newRedact(s *Redact, wrong func(error, ...any)) func(*event) error {
	r := &redactor{}
	names := s.Patterns
	if len(names) == 0 && len(s.Also) == 0 {
		names = []string{"card", "email", "ip", "token"}
	}
	for i, name := range names {
		find := redactions[name]
		if find == nil {
			wrong(fmt.Errorf("%q is none of card, email, ip and token", name), "patterns", i)
			continue
		}
		r.find = append(r.find, find)
	}
	for i, text := range s.Also {
		expr, err := regexp.Compile(text)
		if err != nil {
			wrong(err, "also", i)
			continue
		}
		r.find = append(r.find, expression{expr: expr}.find)
	}
	if len(s.Fields) > 0 {
		return all(s.Fields, inner(wrong, "fields"), r.redact)
	}
	return func(e *event) error {
		for i := range e.fields {
			f := &e.fields[i]
			if f.gone {
				continue
			}
			if value, how := r.redact(e, f.value); how == changed {
				f.put(e.store(value))
				e.dirty = true
			}
		}
		return nil
	}
}

// redact is a doer.
func (r *redactor) redact(e *event, value []byte) ([]byte, change) {
	e.scratch = e.scratch[:0]
	if !r.value(e, value) {
		return nil, kept
	}
	return e.scratch, changed
}

// value appends a value to scratch, and says whether something of it is another one.
func (r *redactor) value(e *event, value []byte) (found bool) {
	if text, ok := textOf(value); ok {
		return r.text(e, value, text)
	}
	t, n, err := msgpack.ReadToken(value)
	if err != nil || t.Kind != msgpack.KindArray && t.Kind != msgpack.KindMap {
		e.scratch = append(e.scratch, value...)
		return false
	}
	e.scratch = append(e.scratch, value[:n]...)
	rest := value[n:]
	for i := range t.Len {
		if t.Kind == msgpack.KindMap {
			k := size(rest)
			e.scratch = append(e.scratch, rest[:k]...)
			rest = rest[k:]
		}
		k := size(rest)
		if k == 0 {
			panic(fmt.Sprintf("a value breaks off at element %d", i))
		}
		found = r.value(e, rest[:k:k]) || found
		rest = rest[k:]
	}
	return found
}

// text appends a text without what is found in it.
func (r *redactor) text(e *event, value, text []byte) bool {
	r.spans = r.spans[:0]
	for _, find := range r.find {
		r.spans = append(r.spans, find(text)...)
	}
	if len(r.spans) == 0 {
		e.scratch = append(e.scratch, value...)
		return false
	}
	slices.SortFunc(r.spans, func(a, b [2]int) int { return a[0] - b[0] })
	clean := make([]byte, 0, len(text))
	from := 0
	for _, s := range r.spans {
		if s[0] >= from {
			clean = append(append(clean, text[from:s[0]]...), "***"...)
		}
		from = max(from, s[1])
	}
	clean = append(clean, text[from:]...)
	e.scratch = append(msgpack.AppendStringHeader(e.scratch, len(clean)), clean...)
	return true
}
