// SPDX-License-Identifier: Apache-2.0

package step

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// A Step is one change of an event. Exactly one of its fields is set.
type Step struct {
	Keep   string   `help:"Condition: other events end here."`
	Drop   string   `help:"Condition: such events end here."`
	Set    Values   `help:"Fields and the constants that they get."`
	Remove []string `help:"Fields that are removed."`
	Rename Names    `help:"Fields and what they are called from now on."`
	Copy   Names    `help:"Fields and where their values stand as well from now on."`
	Tag    string   `help:"Template of the event's new tag, such as {tag}.{user.id}."`
	Mask   []string `help:"Fields whose values become ***."`

	Hash    *Hash    `help:"Fields whose values become what tells equal ones from others."`
	Redact  *Redact  `help:"What looks like a card number, an address or a token becomes ***."`
	Parse   *Parse   `help:"A field whose text becomes fields, or the time."`
	Flatten *Flatten `help:"Maps whose fields move to the top."`
	Nest    *Nest    `help:"Fields that move into a map."`
	Sample  *Sample  `help:"A share of the events is kept, others end here."`

	Throttle *Throttle `help:"So many events of a key pass in each span of time, others end here."`
	Dedup    *Dedup    `help:"Of events that are alike one passes, others end here for some time."`
	Lookup   *Lookup   `help:"Fields from the row of a file that a field's value finds."`
}

// strictKinds are what takes something out: without it events would have what nobody is to see.
var strictKinds = []string{"keep", "drop", "sample", "throttle", "dedup", "mask", "remove", "hash", "redact"}

// newAction understands a step. Mistakes go to fail, each with its key in the step. Tables, and
// what compiles expressions, are those of routes.
func newAction(s *Step, of *Routes, fail func(key []any, at int, text string)) (a action) {
	v := reflect.ValueOf(s).Elem()
	var given []string
	empty := false
	for i := range v.NumField() {
		if f := v.Field(i); !f.IsZero() {
			empty = f.Kind() == reflect.Slice && f.Len() == 0
			given = append(given, strings.ToLower(v.Type().Field(i).Name))
		}
	}
	if len(given) != 1 {
		text := "a step is one of " + strings.Join(Kinds(), ", ")
		if len(given) > 1 {
			text = fmt.Sprintf("these are %d steps: each is an item of the list", len(given))
		}
		fail(nil, -1, text)
		return a
	}
	a.kind = given[0]
	a.strict = slices.Contains(strictKinds, a.kind)
	wrong := func(err error, key ...any) {
		at := -1
		if f := (*Fault)(nil); errors.As(err, &f) {
			at = f.At
		}
		fail(append([]any{a.kind}, key...), at, err.Error())
	}
	if empty {
		wrong(errors.New("it names no field"))
	}
	switch a.kind {
	case "keep", "drop":
		c, err := parseCondition(s.Keep+s.Drop, of.compile)
		if err != nil {
			wrong(err)
		}
		a.holds, a.keep = c.holds, a.kind == "keep"
	case "set":
		a.do = setAll(assignments(s.Set, wrong))
	case "remove":
		a.do = all(s.Remove, wrong, func(*event, []byte) ([]byte, change) { return nil, removed })
	case "mask":
		a.do = all(s.Mask, wrong, func(*event, []byte) ([]byte, change) { return masked, changed })
	case "rename":
		a.do = moveAll(s.Rename, wrong, (*event).rename)
	case "copy":
		a.do = moveAll(s.Copy, wrong, (*event).copy)
	case "hash":
		a.do = newHash(s.Hash, wrong)
	case "redact":
		a.do = newRedact(s.Redact, wrong)
	case "parse":
		a.do = newParse(s.Parse, wrong)
	case "flatten":
		a.do = newFlatten(s.Flatten, wrong)
	case "nest":
		a.do = newNest(s.Nest, wrong)
	case "sample":
		a.holds, a.keep = newSample(s.Sample, wrong), true
	case "throttle":
		newThrottle(&a, s.Throttle, wrong)
	case "dedup":
		newDedup(&a, s.Dedup, wrong)
	case "lookup":
		if l := newLookup(s.Lookup, of, wrong); l != nil {
			a.lookup, a.do = l, l.do
		}
	case "tag":
		t, err := parseTemplate(s.Tag)
		if err != nil {
			wrong(err)
		}
		a.do = func(e *event) error { return e.retag(t) }
	}
	return a
}

// Kinds are the names of all steps.
func Kinds() (kinds []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Step]()) {
		kinds = append(kinds, strings.ToLower(f.Name))
	}
	return kinds
}

// spelled is a text of steps that others have not.
func spelled(do []Step) []byte {
	var b []byte
	for i := range do {
		v := reflect.ValueOf(&do[i]).Elem()
		for k := range v.NumField() { // those that are not set are left out: a version may have more of them
			if f := v.Field(k); !f.IsZero() {
				text, _ := json.Marshal(f.Interface()) // numbers that JSON has not, Read has refused
				b = fmt.Appendf(b, "%s %s\n", v.Type().Field(k).Name, text)
			}
		}
		b, _ = appendAny(b, do[i].Set, 0) // in JSON 1 is 1.0
		if l := do[i].Lookup; l != nil {
			b, _ = appendAny(b, l.Default, 0)
		}
	}
	return b
}
