// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spillwaylog/spillway/msgpack"
)

// The oracle: events as trees of Go values, and steps on these as one would write them where speed
// does not matter. A tree is a *tree for a map, []any for an array, text for str and bin, and a
// msgpack.Token for all else; an ext is its bytes.
type (
	tree struct{ keys, values []any }
	text string
	ext  struct {
		typ  int8
		data string
	}
)

// treeOf reads a value.
func treeOf(t testing.TB, b []byte) (v any, n int) {
	tok, n, err := msgpack.ReadToken(b)
	if err != nil {
		t.Fatal(err)
	}
	switch tok.Kind {
	case msgpack.KindStr, msgpack.KindBin:
		return text(b[n : n+tok.Len]), n + tok.Len
	case msgpack.KindExt:
		return ext{tok.Ext, string(b[n : n+tok.Len])}, n + tok.Len
	case msgpack.KindArray:
		list := []any{}
		for range tok.Len {
			one, k := treeOf(t, b[n:])
			list = append(list, one)
			n += k
		}
		return list, n
	case msgpack.KindMap:
		m := &tree{}
		for range tok.Len {
			key, k := treeOf(t, b[n:])
			n += k
			value, k := treeOf(t, b[n:])
			n += k
			m.keys, m.values = append(m.keys, key), append(m.values, value)
		}
		return m, n
	}
	return tok, n
}

// show writes a tree so that equal ones are equal texts.
func show(v any) string {
	switch v := v.(type) {
	case *tree:
		var b strings.Builder
		for i := range v.keys {
			fmt.Fprintf(&b, "%s:%s,", show(v.keys[i]), show(v.values[i]))
		}
		return "{" + b.String() + "}"
	case []any:
		var b strings.Builder
		for _, one := range v {
			b.WriteString(show(one) + ",")
		}
		return "[" + b.String() + "]"
	case text:
		return fmt.Sprintf("%q", string(v))
	case msgpack.Token:
		if r, ok := rational(v); ok {
			return r.RatString() + fmt.Sprint(v.Kind >= msgpack.KindFloat32)
		}
		return fmt.Sprint(v.Kind, v.Bool(), v.Float())
	}
	return fmt.Sprint(v)
}

// encode is a tree as MessagePack.
func encode(b []byte, v any) []byte {
	switch v := v.(type) {
	case *tree:
		b = msgpack.AppendMapHeader(b, len(v.keys))
		for i := range v.keys {
			b = encode(encode(b, v.keys[i]), v.values[i])
		}
	case []any:
		b = msgpack.AppendArrayHeader(b, len(v))
		for _, one := range v {
			b = encode(b, one)
		}
	case text:
		b = msgpack.AppendString(b, string(v))
	case ext:
		b = msgpack.AppendExt(b, v.typ, []byte(v.data))
	case msgpack.Token:
		switch v.Kind {
		case msgpack.KindBool:
			b = msgpack.AppendBool(b, v.Bool())
		case msgpack.KindFloat32:
			b = msgpack.AppendFloat32(b, float32(v.Float()))
		case msgpack.KindFloat64:
			b = msgpack.AppendFloat64(b, v.Float())
		case msgpack.KindNil:
			b = msgpack.AppendNil(b)
		default:
			if n, ok := v.Int(); ok {
				return msgpack.AppendInt(b, n)
			}
			n, _ := v.Uint()
			b = msgpack.AppendUint(b, n)
		}
	}
	return b
}

// textIn is the JSON of what is no text.
func textIn(v any) string {
	if s, ok := v.(text); ok {
		return string(s)
	}
	out, _, _ := msgpack.AppendJSON(nil, encode(nil, v), nil)
	return string(out)
}

// merge takes a pair: the last field with its name gets the value.
func (m *tree) merge(key, value any) {
	if _, ok := key.(text); ok {
		for i := len(m.keys) - 1; i >= 0; i-- {
			if m.keys[i] == key {
				m.values[i] = value
				return
			}
		}
	}
	m.keys, m.values = append(m.keys, key), append(m.values, value)
}

// leaves calls take for what a flattened map becomes.
func (m *tree) leaves(prefix, separator string, take func(name string, v any)) {
	for i, key := range m.keys {
		name := prefix + separator + textIn(key)
		if inner, ok := m.values[i].(*tree); ok && len(inner.keys) > 0 {
			inner.leaves(name, separator, take)
		} else {
			take(name, m.values[i])
		}
	}
}

func (o *oracle) flatten(s *Flatten) {
	rest, maps := &tree{}, &tree{}
	for i, key := range o.record.keys {
		name, isText := key.(text)
		inner, isTree := o.record.values[i].(*tree)
		to := rest
		if isText && isTree && len(inner.keys) > 0 &&
			(len(s.Fields) == 0 || slices.Contains(s.Fields, string(name)) ||
				slices.Contains(s.Fields, "`"+string(name)+"`")) {
			to = maps
		}
		to.keys, to.values = append(to.keys, key), append(to.values, o.record.values[i])
	}
	for i, inner := range maps.values {
		separator := s.Separator
		if separator == "" {
			separator = "."
		}
		inner.(*tree).leaves(string(maps.keys[i].(text)), separator,
			func(name string, v any) { rest.merge(text(name), v) })
	}
	o.record = rest
}

func (o *oracle) nest(s *Nest) error {
	kept, moved := &tree{}, &tree{}
	for i, key := range o.record.keys {
		name, ok := key.(text)
		to := kept
		switch {
		case !ok || string(name) == s.Under:
		case s.Prefix != "" && strings.HasPrefix(string(name), s.Prefix):
			to, key = moved, text(strings.TrimPrefix(string(name), s.Prefix))
		case s.Prefix == "" && (slices.Contains(s.Fields, string(name)) ||
			slices.Contains(s.Fields, "`"+string(name)+"`")):
			to = moved
		}
		to.keys, to.values = append(to.keys, key), append(to.values, o.record.values[i])
	}
	if len(moved.keys) == 0 {
		return nil
	}
	if at := kept.last(s.Under); at >= 0 {
		m, ok := kept.values[at].(*tree)
		if !ok {
			return errOracle
		}
		for i, key := range moved.keys {
			m.merge(key, moved.values[i])
		}
	} else {
		m := &tree{}
		for i, key := range moved.keys {
			m.merge(key, moved.values[i])
		}
		kept.keys, kept.values = append(kept.keys, text(s.Under)), append(kept.values, m)
	}
	o.record = kept
	return nil
}

func (o *oracle) parse(t testing.TB, s *Parse) error {
	p, _ := parsePath(s.Field)
	v := o.record.get(namesOf(p))
	if v == nil {
		return nil
	}
	in, ok := v.(text)
	if !ok {
		return errOracle
	}
	made := &tree{}
	switch s.As {
	case "json":
		d := json.NewDecoder(strings.NewReader(string(in)))
		d.UseNumber()
		b, err := msgpack.AppendFromJSON(nil, d)
		if err != nil {
			return errOracle
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return errOracle
		}
		value, _ := treeOf(t, b)
		if made, ok = value.(*tree); !ok {
			return errOracle
		}
	case "regexp":
		expr := regexp.MustCompile(s.Pattern)
		groups := expr.FindStringSubmatchIndex(string(in))
		if groups == nil {
			return errOracle
		}
		for i, name := range expr.SubexpNames() {
			if name != "" && groups[2*i] >= 0 {
				made.keys, made.values = append(made.keys, text(name)), append(made.values,
					in[groups[2*i]:groups[2*i+1]])
			}
		}
	}
	var into []string
	if s.Into != "" {
		p, _ := parsePath(s.Into)
		into = namesOf(p)
	}
	fresh := into != nil && o.record.get(into) == nil
	if !s.Keep {
		o.record.each(namesOf(p), func(any) any { return nil })
	}
	if fresh {
		return o.record.set(into, made)
	}
	for i, key := range made.keys {
		if into == nil {
			o.record.merge(key, made.values[i])
		} else if err := o.record.set(append(slices.Clone(into), string(key.(text))), made.values[i]); err != nil {
			return err
		}
	}
	return nil
}

func rational(t msgpack.Token) (*big.Rat, bool) {
	switch t.Kind {
	case msgpack.KindInt, msgpack.KindUint:
		if n, ok := t.Int(); ok {
			return new(big.Rat).SetInt64(n), true
		}
		n, _ := t.Uint()
		return new(big.Rat).SetUint64(n), true
	case msgpack.KindFloat32, msgpack.KindFloat64:
		r := new(big.Rat).SetFloat64(t.Float())
		return r, r != nil
	}
	return nil, false
}

// clone copies maps, which are all that is changed.
func clone(v any) any {
	if m, ok := v.(*tree); ok {
		n := &tree{keys: slices.Clone(m.keys)}
		for _, one := range m.values {
			n.values = append(n.values, clone(one))
		}
		return n
	}
	return v
}

func (m *tree) last(key string) int {
	for i := len(m.keys) - 1; i >= 0; i-- {
		if m.keys[i] == any(text(key)) {
			return i
		}
	}
	return -1
}

func (m *tree) get(p []string) any {
	i := m.last(p[0])
	if i < 0 {
		return nil
	}
	if len(p) == 1 {
		return m.values[i]
	}
	if inner, ok := m.values[i].(*tree); ok {
		return inner.get(p[1:])
	}
	return nil
}

var errOracle = errors.New("failed")

func (m *tree) set(p []string, v any) error {
	i := m.last(p[0])
	if i < 0 {
		m.keys, m.values = append(m.keys, text(p[0])), append(m.values, &tree{})
		i = len(m.keys) - 1
	} else if _, ok := m.values[i].(*tree); !ok && len(p) > 1 {
		return errOracle
	}
	if len(p) == 1 {
		m.values[i] = clone(v)
		return nil
	}
	return m.values[i].(*tree).set(p[1:], v)
}

// each changes all fields that a path names; nil removes them.
func (m *tree) each(p []string, do func(any) any) {
	for i := 0; i < len(m.keys); i++ {
		if m.keys[i] != any(text(p[0])) {
			continue
		}
		if len(p) > 1 {
			if inner, ok := m.values[i].(*tree); ok {
				inner.each(p[1:], do)
			}
			continue
		}
		if m.values[i] = do(m.values[i]); m.values[i] == nil {
			m.keys, m.values = slices.Delete(m.keys, i, i+1), slices.Delete(m.values, i, i+1)
			i--
		}
	}
}

// oracle is an event.
type oracle struct {
	tag    string
	record *tree
}

func (o *oracle) move(from, to []string, keep bool) error {
	v := clone(o.record.get(from))
	switch {
	case v == nil:
		return nil
	case keep:
		return o.record.set(to, v)
	case len(from) > 1 || len(to) > 1:
		o.record.each(from, func(any) any { return nil })
		return o.record.set(to, v)
	}
	at := o.record.last(from[0])
	kept := &tree{}
	for i, key := range o.record.keys {
		switch {
		case i == at:
			kept.keys, kept.values = append(kept.keys, text(to[0])), append(kept.values, v)
		case key != any(text(from[0])) && key != any(text(to[0])):
			kept.keys, kept.values = append(kept.keys, key), append(kept.values, o.record.values[i])
		}
	}
	o.record = kept
	return nil
}

// holds is a condition on a value.
func (o *oracle) holds(c *condition) bool {
	switch c.op {
	case opAnd:
		return o.holds(c.a) && o.holds(c.b)
	case opOr:
		return o.holds(c.a) || o.holds(c.b)
	case opNot:
		return !o.holds(c.a)
	}
	var v any = text(o.tag)
	if c.subject != nil {
		v = o.record.get(namesOf(c.subject))
	}
	equal := func(k constant) bool {
		t, ok := v.(msgpack.Token)
		switch k.kind {
		case isNil:
			return v == nil || ok && t.Kind == msgpack.KindNil
		case isText:
			return v == any(text(k.text))
		case isTruth:
			return ok && t.Kind == msgpack.KindBool && t.Bool() == k.truth
		}
		order, ok := against(v, k)
		return ok && order == 0
	}
	s, isText := v.(text)
	switch c.op {
	case opTrue:
		t, ok := v.(msgpack.Token)
		return ok && t.Kind == msgpack.KindBool && t.Bool()
	case opEqual:
		return equal(c.constant)
	case opIn:
		return slices.ContainsFunc(c.list, equal)
	case opContains:
		return isText && strings.Contains(string(s), c.constant.text)
	case opMatches:
		return isText && regexp.MustCompile(c.constant.text).MatchString(string(s))
	}
	order, ok := against(v, c.constant)
	return ok && (c.op == opLess && order < 0 || c.op == opLessEqual && order <= 0 || c.op == opGreater && order > 0 ||
		c.op == opGreaterEqual && order >= 0)
}

// against compares a value with a constant of its type.
func against(v any, k constant) (int, bool) {
	if s, ok := v.(text); ok && k.kind == isText {
		return strings.Compare(string(s), k.text), true
	}
	t, ok := v.(msgpack.Token)
	if !ok || k.kind != isNumber {
		return 0, false
	}
	if f := t.Float(); math.IsInf(f, 0) {
		return int(math.Copysign(1, f)), true
	}
	a, ok := rational(t)
	if !ok {
		return 0, false
	}
	b := new(big.Rat).SetFrac(new(big.Int).SetUint64(k.size), big.NewInt(1))
	if k.negative {
		b.Neg(b)
	}
	if k.float {
		b.SetFloat64(k.f)
	}
	return a.Cmp(b), true
}

func namesOf(p path) (names []string) {
	for i := range p {
		names = append(names, p[i].text)
	}
	return names
}

// expand is a template of fields alone.
func (o *oracle) expand(t template) (string, error) {
	var b strings.Builder
	for _, p := range t {
		one, may := p.text, true
		switch {
		case p.tag && p.part < 0:
			one, may = o.tag, p.may
		case p.tag:
			one, may = "", p.may
			if parts := strings.Split(o.tag, "."); p.part < len(parts) {
				one = parts[p.part]
			}
		case p.field != nil:
			one, may = "", p.may
			switch v := o.record.get(namesOf(p.field)).(type) {
			case text:
				one = string(v)
			case msgpack.Token:
				switch {
				case v.Kind == msgpack.KindBool:
					one = fmt.Sprint(v.Bool())
				case v.Kind != msgpack.KindNil:
					one = jsonOf(v)
				}
			}
		}
		if one == "" && !may {
			return "", errOracle
		}
		if one == "" {
			one = p.otherwise
		}
		b.WriteString(one)
	}
	if n := b.Len(); n == 0 || n > maxTag {
		return "", errOracle
	}
	return b.String(), nil
}

func jsonOf(t msgpack.Token) string {
	if n, ok := t.Int(); ok && t.Kind < msgpack.KindFloat32 {
		return fmt.Sprint(n)
	}
	if n, ok := t.Uint(); ok && t.Kind < msgpack.KindFloat32 {
		return fmt.Sprint(n)
	}
	b := msgpack.AppendFloat64(nil, t.Float())
	if t.Kind == msgpack.KindFloat32 {
		b = msgpack.AppendFloat32(nil, float32(t.Float()))
	}
	out, _, _ := msgpack.AppendJSON(nil, b, nil)
	return string(out)
}

// apply runs one step, and says whether the event stays.
func (o *oracle) apply(t testing.TB, s *Step) (keep bool, err error) {
	paths := func(list []string, do func([]string)) {
		for _, one := range list {
			p, err := parsePath(one)
			if err != nil {
				t.Fatal(err)
			}
			do(namesOf(p))
		}
	}
	pairs := func(names Names, do func(from, to []string) error) error {
		for _, n := range names {
			from, _ := parsePath(n.From)
			to, _ := parsePath(n.To)
			if err := do(namesOf(from), namesOf(to)); err != nil {
				return err
			}
		}
		return nil
	}
	switch {
	case s.Keep != "" || s.Drop != "":
		c, err := parseCondition(s.Keep+s.Drop, nil)
		if err != nil {
			t.Fatal(err)
		}
		return o.holds(c) == (s.Keep != ""), nil
	case s.Set != nil:
		for _, v := range s.Set {
			b, err := appendAny(nil, v.Value, 0)
			if err != nil {
				t.Fatal(err)
			}
			to, _ := parsePath(v.Field)
			value, _ := treeOf(t, b)
			if err := o.record.set(namesOf(to), value); err != nil {
				return true, err
			}
		}
	case s.Remove != nil:
		paths(s.Remove, func(p []string) { o.record.each(p, func(any) any { return nil }) })
	case s.Mask != nil:
		paths(s.Mask, func(p []string) { o.record.each(p, func(any) any { return text("***") }) })
	case s.Rename != nil:
		err = pairs(s.Rename, func(from, to []string) error { return o.move(from, to, false) })
	case s.Copy != nil:
		err = pairs(s.Copy, func(from, to []string) error { return o.move(from, to, true) })
	case s.Hash != nil:
		paths(s.Hash.Fields, func(p []string) {
			o.record.each(p, func(v any) any {
				if tok, ok := v.(msgpack.Token); ok && tok.Kind == msgpack.KindNil {
					return v
				}
				return text(hashed(textIn(v)))
			})
		})
	case s.Flatten != nil:
		o.flatten(s.Flatten)
	case s.Nest != nil:
		err = o.nest(s.Nest)
	case s.Parse != nil:
		err = o.parse(t, s.Parse)
	case s.Tag != "":
		tpl, err := parseTemplate(s.Tag)
		if err != nil {
			t.Fatal(err)
		}
		tag, err := o.expand(tpl)
		if err == nil {
			o.tag = tag
		}
		return true, err
	default:
		t.Fatalf("the oracle does not know %+v", s)
	}
	return true, err
}

// run is what a chain of steps makes.
func (o *oracle) run(t testing.TB, do []Step) (keep, failed bool) {
	for i := range do {
		before := oracle{o.tag, clone(o.record).(*tree)}
		keep, err := o.apply(t, &do[i])
		if err != nil {
			*o, failed = before, true
			continue
		}
		if !keep {
			return false, failed
		}
	}
	return true, failed
}

// stepsOf makes steps of some bytes.
func stepsOf(plan []byte) (do []Step) {
	next := func(n int) int {
		if len(plan) == 0 {
			return 0
		}
		c := plan[0]
		plan = plan[1:]
		return int(c) % n
	}
	names := []string{"a", "b", "c", "level", "user", "`x.y`", "``", "n"}
	field := func() string {
		p := names[next(len(names))]
		for i := 0; i < 4 && next(3) == 0 && len(plan) > 0; i++ {
			p += "." + names[next(len(names))]
		}
		return p
	}
	constants := []string{
		`"a"`, `""`, `"INFO"`, "0", "-1", "1.5", "9007199254740993", "18446744073709551615",
		"-9223372036854775808", "1e300", "true", "nil",
	}
	leaf := func() string {
		what, some := field(), constants
		if next(8) == 0 {
			what, some = "tag", constants[:3] // the texts
		}
		switch next(8) {
		case 0:
			return fmt.Sprintf("%s in [%s, %s, %s]", what, some[next(len(some))], some[next(len(some))],
				some[next(len(some))])
		case 1:
			return what + ` contains "a"`
		case 2:
			return what + ` not matches "^[a-c]*$"`
		case 3:
			return what + " == " + constants[next(3)]
		case 4:
			if what == "tag" {
				return `tag in ["a", "b", "c", "d", "e", "f", "g", "h", "t"]`
			}
			return what
		case 5:
			return what + " != " + constants[next(3)]
		}
		if what == "tag" {
			return `tag >= "a"`
		}
		return fmt.Sprintf("%s %s %s", what, []string{"<", "<=", ">", ">=", "=="}[next(5)], constants[next(10)])
	}
	condition := func() string {
		c := leaf()
		for i := 0; i < 6 && next(2) == 0 && len(plan) > 0; i++ {
			c = []string{
				"not (" + c + ")", c + " and " + leaf(), c + " or " + leaf(),
				"(" + c + " or " + leaf() + ") and " + leaf(),
			}[next(4)]
		}
		return c
	}
	moves := func() (n Names) {
		for range 1 + next(2) {
			from, to := field(), field()
			for from == to {
				to += ".a"
			}
			n = append(n, struct{ From, To string }{from, to})
		}
		return n
	}
	for len(plan) > 0 && len(do) < 6 {
		do = append(do, func() (s Step) {
			switch next(15) {
			case 10:
				s.Hash = &Hash{Fields: []string{field(), field()}, Key: hashKey}
			case 11:
				s.Flatten = &Flatten{Fields: names[:next(4)], Separator: []string{"", "_"}[next(2)]}
			case 12:
				s.Nest = &Nest{Fields: names[next(4) : 4+next(4)], Under: []string{"m", "a", "user"}[next(3)]}
			case 13:
				s.Nest = &Nest{Prefix: []string{"a", "us", "x."}[next(3)], Under: []string{"m", "a", "user"}[next(3)]}
			case 14:
				s.Parse = &Parse{Field: field(), As: "json", Keep: next(2) == 0}
				if next(2) == 0 {
					s.Parse.Into = field()
				}
				if next(3) == 0 {
					s.Parse.As, s.Parse.Pattern = "regexp", `^(?P<a>[a-c])(?P<n>.)?(x)?(?P<q>.*)`
				}
			case 0:
				s.Keep = condition()
			case 1:
				s.Drop = condition()
			case 2, 3:
				s.Set = Values{{field(), []any{
					nil, "x", int64(7), 1.5, true,
					[]any{"l"},
					Values{{"a", "in"}},
				}[next(7)]}, {field(), "second"}}
			case 4:
				s.Remove = []string{field(), field()}
			case 5:
				s.Rename = moves()
			case 6:
				s.Copy = moves()
			case 7:
				s.Tag = []string{
					"{tag}.x", "{tag[0]}", "{" + field() + "}", "a{" + field() + "|b}",
					"{tag[1]|z}",
				}[next(5)]
			default:
				s.Mask = []string{field(), field()}
			}
			return s
		}())
	}
	return do
}

// FuzzSteps has chains of steps run on any record, beside the oracle.
func FuzzSteps(f *testing.F) {
	for i, record := range []string{
		full, `{}`, `{"a":{"a":{"b":1},"b":[{"a":1}]},"b":"abc","c":{"x.y":2}}`,
		`{"level":"INFO","n":9007199254740993,"":{"":1}}`,
		`{"a":1,"a":{"b":2},"a":{"b":3,"b":4},"user":{"a":"t"},"user":null}`,
		`{"n":-1.5,"b":18446744073709551615,"c":1e300}`,
		`{"a":"{\"a\":{\"b\":1},\"n\":2}","b":{"c":"[]","a":"{} "},"user":"abc","x.y":{"1":"2"}}`,
	} {
		b, _, err := msgpack.AppendFromJSONText(nil, []byte(record))
		if err != nil {
			f.Fatal(err)
		}
		for k := range 15 {
			f.Add(b, []byte{byte(k), byte(i), 1, byte(7 * k), 3, 5, byte(i + k), 2, 9, 0, byte(i), 4, 2, 2, 8, 1})
		}
	}
	f.Add([]byte("\x81\xc4\x01a\xd9\x01b"), []byte{5, 0, 1, 1, 1, 2})
	f.Add([]byte("\xde\x00\x01\x01\xc7\x00\x05"), []byte{9, 0, 1, 1, 1, 2})
	f.Add([]byte("\xc1"), []byte{9})
	f.Fuzz(func(t *testing.T, record, plan []byte) {
		if len(record) > 4096 {
			return
		}
		do := stepsOf(plan)
		if do == nil {
			return
		}
		r, err := Read([]Route{{Match: "**", Do: do, To: []string{"x"}}}, []string{"x"}, 1<<28, nil)
		if err != nil {
			t.Fatalf("%+v: %v", do, err)
		}
		head := metaHead
		entry := append(bytes.Clone(head), record...)
		before := bytes.Clone(entry)
		var got Sifted
		err = r.For("x").Sift(&got, "t.u", entry, 1, 0)
		if !bytes.Equal(entry, before) {
			t.Fatal("it wrote into the entries")
		}
		n, bad := msgpack.Skip(record)
		if bad != nil || n != len(record) || len(record) == 0 || record[0]&0xf0 != 0x80 && record[0] != 0xde &&
			record[0] != 0xdf {
			if err == nil && bad != nil {
				t.Errorf("% x is taken", record)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		v, _ := treeOf(t, record)
		o := oracle{"t.u", v.(*tree)}
		keep, failed := o.run(t, do)
		if !keep {
			if len(got.Runs) != 0 {
				t.Errorf("%+v of %s: it stays, and should not", do, show(v))
			}
			return
		}
		if len(got.Runs) != 1 || got.Runs[0].Events != 1 || got.Runs[0].Tag != o.tag ||
			!bytes.HasPrefix(got.Entries, head) {
			t.Fatalf("%+v of %s: %+v, want the tag %q", do, show(v), got.Runs, o.tag)
		}
		made, n := treeOf(t, got.Entries[len(head):])
		if n != len(got.Entries)-len(head) {
			t.Fatalf("%d bytes behind the record", len(got.Entries)-len(head)-n)
		}
		m := made.(*tree)
		if failed {
			at := m.last(ErrorField)
			if at < 0 {
				t.Fatalf("%+v: nothing says that a step failed: %s", do, show(made))
			}
			if strings.Contains(show(m.values[at]), errDeep.Error()) { // which the oracle does not know
				return
			}
			o.record.set([]string{ErrorField}, m.values[at])
		} else if at := m.last(ErrorField); at >= 0 && strings.Contains(show(m.values[at]), errDeep.Error()) {
			return
		}
		if show(m) != show(o.record) {
			t.Errorf("%+v of %s:\n%s\nwant\n%s", do, show(v), show(m), show(o.record))
		}
	})
}

// FuzzCondition: no text makes the parser of conditions do more than say what is wrong, at a place
// in the text; what it takes can be evaluated.
func FuzzCondition(f *testing.F) {
	for _, s := range []string{
		`level == "DEBUG"`, `a.b in [1, 'x', nil] and not (c contains "d" or tag matches "^x")`,
		"`a b` != -1.5e3 || !d && e <= 18446744073709551615",
		`a not in ["\x00", "\u00e9"]`, `((`, `a == `, `x == '\"'`, `a matches "("`,
	} {
		f.Add(s)
	}
	entry := entryOf(f, plainHead, full)
	var e event
	if _, err := e.read("t", entry); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		compile := func(text string) (*Expression, error) {
			if !strings.Contains(s, text) || text == "" {
				t.Errorf("%q: %q is compiled", s, text)
			}
			if n := len(text); n%4 == 0 {
				return nil, &Fault{At: n, Text: "no", Syntax: n%8 == 0}
			}
			return &Expression{
				Fields: [][]string{{"n"}, nil},
				Holds:  func(values []any) (bool, error) { return values[1] == "t", nil },
			}, nil
		}
		_, plain := parseCondition(s, nil)
		c, err := parseCondition(s, compile)
		if plain == nil && err != nil {
			t.Errorf("%q: with expressions %v", s, err)
		}
		if err == nil {
			_ = c.holds(&e)
			return
		}
		var at *Fault
		if !errors.As(err, &at) || at.At < 0 || at.At > len(s) || at.Text == "" {
			t.Errorf("%q: %#v", s, err)
		}
	})
}

// FuzzGlob compares patterns with regular expressions.
func FuzzGlob(f *testing.F) {
	for _, p := range []string{"**", "a.**.b", "{a,b*}.c", "*.*", "a*b*c", "**.**.x"} {
		f.Add(p, "a.b.c")
		f.Add(p, "axbxc.x")
	}
	f.Fuzz(func(t *testing.T, pattern, tag string) {
		if len(pattern) > 64 || len(tag) > 256 || !utf8.ValidString(pattern) || !utf8.ValidString(tag) {
			return
		}
		g, err := parseGlob(pattern)
		if err != nil {
			return
		}
		want := false
		for _, form := range g {
			want = want || regexp.MustCompile("(?s)^"+regexpOf(form)+"$").MatchString("."+tag)
		}
		if got := g.match(tag); got != want {
			t.Errorf("%q and %q: %v, want %v", pattern, tag, got, want)
		}
	})
}

// regexpOf is a form as a regular expression, with a dot before each part.
func regexpOf(form []string) string {
	var b strings.Builder
	for _, part := range form {
		if part == "**" {
			b.WriteString(`(\.[^.]*)*`)
			continue
		}
		b.WriteString(`\.`)
		for i, piece := range strings.Split(part, "*") {
			if i > 0 {
				b.WriteString(`[^.]*`)
			}
			b.WriteString(regexp.QuoteMeta(piece))
		}
	}
	return b.String()
}

// TestFigures compares numbers as big ones.
func TestFigures(t *testing.T) {
	numbers := []any{
		int64(0), int64(1), int64(-1), int64(math.MaxInt64), int64(math.MinInt64), uint64(math.MaxUint64),
		uint64(1) << 63, int64(1)<<53 + 1,
		0.0, 0.5, -0.5, float64(1 << 53), float64(1<<63 - 1024), float64(-1 << 63), 1.8446744073709552e19,
		1.8446744073709550e19, 1e300, -1e300, 5e-324,
	}
	figures := make([]figure, len(numbers))
	exact := make([]*big.Rat, len(numbers))
	for i, n := range numbers {
		b, _ := appendAny(nil, n, 0)
		tok, _, err := msgpack.ReadToken(b)
		if err != nil {
			t.Fatal(err)
		}
		figures[i], _ = figureOf(&tok)
		exact[i], _ = rational(tok)
	}
	for i := range figures {
		for j := range figures {
			if order, ok := figures[i].compare(figures[j]); !ok || order != exact[i].Cmp(exact[j]) {
				t.Errorf("%v and %v: %d, %v", numbers[i], numbers[j], order, ok)
			}
		}
		for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			order, ok := figures[i].compare(figure{float: true, f: f})
			if math.IsNaN(f) && ok || math.IsInf(f, 1) && order != -1 || math.IsInf(f, -1) && order != 1 {
				t.Errorf("%v and %v: %d, %v", numbers[i], f, order, ok)
			}
		}
	}
}

// isCard says whether digits are the number of a card.
func isCard(digits string) bool {
	if len(digits) < minCard || len(digits) > maxCard || strings.Trim(digits, "0") == "" {
		return false
	}
	sum := 0
	for i := range digits {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			d = d*2/10 + d*2%10
		}
		sum += d
	}
	return sum%10 == 0
}

// FuzzRedactions compares what is found of cards and addresses with what expressions and package
// netip say; whatever is found lies in the text.
func FuzzRedactions(f *testing.F) {
	for _, s := range []string{
		"4111 1111-1111 1111", "41111111111111112", "192.0.2.1:80, ::1 1.2.3.4.5 2001:db8::.",
		"a@b.c Bearer abcdefghij password=x", "1.2.3.4x ::ffff:1.2.3.4 [::1]:80",
	} {
		f.Add(s)
	}
	scheme := `(?:[Bb][Ee][Aa][Rr][Ee][Rr]|[Bb][Aa][Ss][Ii][Cc])\s+`
	credential := expression{any: true, expr: regexp.MustCompile(
		`(?i:authorization)["']?\s*[=:][\s"'\[]*` + scheme + `([A-Za-z0-9._~+/=-]+)|\b` +
			scheme + `([A-Za-z0-9._~+/=-]{8,})`)}
	run, group := regexp.MustCompile(`[0-9](?:[ -]?[0-9])*`), regexp.MustCompile(`[0-9]+`)
	f.Add("2026-11-25 4111-1111-1111-1111 17")
	f.Add(`access_token="a b" PWD: x bearer abcdefgh`)
	f.Add(`Authorization: Basic dTpw, "authorization"='bearer x`)
	f.Add(`authorization=bearer bearer abcdefgh bearer basic abcdefgh_ xbearer abcdefgh ébasic abcdefgh`)
	f.Fuzz(func(t *testing.T, s string) {
		var want [][2]int
		for _, at := range run.FindAllStringIndex(s, -1) {
			groups := group.FindAllStringIndex(s[at[0]:at[1]], -1)
			for i := range groups {
				for k := len(groups) - 1; k >= i; k-- {
					span := [2]int{at[0] + groups[i][0], at[0] + groups[k][1]}
					if isCard(strings.NewReplacer(" ", "", "-", "").Replace(s[span[0]:span[1]])) {
						want = append(want, span)
						break
					}
				}
			}
		}
		if got := cards([]byte(s)); !slices.Equal(got, want) {
			t.Errorf("%q: cards at %v, want %v", s, got, want)
		}
		for _, x := range tokens { // a quick look says no only where there is nothing
			quick := x.find([]byte(s))
			if x.needs, x.may = nil, nil; !slices.Equal(quick, x.find([]byte(s))) {
				t.Errorf("%q: %v finds more without a quick look", s, x.expr)
			}
		}
		want = credential.find([]byte(s))
		if got := credentials([]byte(s)); !slices.Equal(got, want) {
			t.Errorf("%q: credentials at %v, want %v", s, got, want)
		}
		for name, find := range redactions {
			for _, at := range find([]byte(s)) {
				if at[0] < 0 || at[0] >= at[1] || at[1] > len(s) {
					t.Fatalf("%q: %s at %v", s, name, at)
				}
				if _, err := netip.ParseAddr(s[at[0]:at[1]]); name == "ip" && err != nil {
					t.Errorf("%q: %s is no address", s, s[at[0]:at[1]])
				}
			}
		}
		for _, part := range strings.Fields(s) {
			if _, err := netip.ParseAddr(part); err == nil && !strings.Contains(part, "%") && len(part) > 2 &&
				len(addresses([]byte(part))) != 1 {
				t.Errorf("%q is an address", part)
			}
		}
	})
}
