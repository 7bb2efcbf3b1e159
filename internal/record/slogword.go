// SPDX-License-Identifier: Apache-2.0

package record

import (
	"log/slog"
	"math"
	"reflect"
	"slices"
	"time"
	"unsafe"
)

// valueWord is a slog.Value as package slog keeps it: a kind in any, and the value in num; or the
// address of a string's bytes in any, and its length in num. Reading it at once is half the cost of
// asking Kind and then for the value, which asks for the kind again.
type valueWord struct {
	num uint64
	any word
}

// kindWord and stringWord are the types in a valueWord that say what num is. If slog has changed,
// they are types that nothing has, and values are asked for what they are.
var kindWord, stringWord = func() (kind, text unsafe.Pointer) {
	nothing := unsafe.Pointer(new(int))
	t := reflect.TypeFor[slog.Value]()
	num, ok1 := t.FieldByName("num")
	inner, ok2 := t.FieldByName("any")
	if !ok1 || !ok2 || t.Size() != unsafe.Sizeof(valueWord{}) || num.Offset != 0 ||
		inner.Offset != unsafe.Offsetof(valueWord{}.any) ||
		num.Type.Kind() != reflect.Uint64 || inner.Type != reflect.TypeFor[any]() {
		return nothing, nothing
	}
	s := "text"
	text = wordsOf(slog.StringValue(s)).any.typ
	kind = wordsOf(slog.BoolValue(true)).any.typ
	for _, sample := range []struct {
		v    slog.Value
		num  uint64
		typ  unsafe.Pointer
		data unsafe.Pointer // of a string
	}{
		{slog.StringValue(s), uint64(len(s)), text, unsafe.Pointer(unsafe.StringData(s))},
		{slog.BoolValue(true), 1, kind, nil},
		{slog.Int64Value(-5), uint64(math.MaxUint64 - 4), kind, nil},
		{slog.Uint64Value(5), 5, kind, nil},
		{slog.Float64Value(0.5), math.Float64bits(0.5), kind, nil},
		{slog.DurationValue(5), 5, kind, nil},
	} {
		w := wordsOf(sample.v)
		if w.num != sample.num || w.any.typ != sample.typ {
			return nothing, nothing
		}
		if sample.typ == kind && (reflect.TypeFor[slog.Kind]().Kind() != reflect.Int ||
			*(*slog.Kind)(w.any.data) != sample.v.Kind()) ||
			sample.typ == text && w.any.data != sample.data {
			return nothing, nothing
		}
	}
	return kind, text
}()

func wordsOf(v slog.Value) valueWord { return *(*valueWord)(unsafe.Pointer(&v)) }

// recordWord is a slog.Record as package slog keeps it. Its method Attrs copies the record, 288
// bytes, and calls a function for each attribute, which is more work than encoding five.
type recordWord struct {
	time  time.Time
	msg   string
	level slog.Level
	pc    uintptr
	first [5]slog.Attr
	count int // in first
	rest  []slog.Attr
}

// recordKnown says that recordWord is right. If slog has changed, records are asked.
var recordKnown = func() bool {
	is, as := reflect.TypeFor[slog.Record](), reflect.TypeFor[recordWord]()
	if is.NumField() != as.NumField() {
		return false
	}
	for i := range as.NumField() {
		a, b := is.Field(i), as.Field(i)
		if a.Type != b.Type || a.Offset != b.Offset {
			return false
		}
	}
	for _, n := range []int{0, 1, 5, 7} {
		var r slog.Record
		for i := range n {
			r.AddAttrs(slog.Int("i", i))
		}
		w := (*recordWord)(unsafe.Pointer(&r))
		if min(n, 5) != w.count || !slices.EqualFunc(collected(&r), slices.Concat(w.first[:w.count], w.rest),
			slog.Attr.Equal) {
			return false
		}
	}
	return true
}()

// AttrsOf returns the attributes of a record, in two parts, to be read while it is not changed.
func AttrsOf(r *slog.Record) (first, rest []slog.Attr) {
	if !recordKnown {
		return collected(r), nil
	}
	w := (*recordWord)(unsafe.Pointer(r))
	return w.first[:w.count], w.rest
}

// collected is AttrsOf for a record of a layout that is not known.
func collected(r *slog.Record) []slog.Attr {
	all := make([]slog.Attr, 0, r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool {
		all = append(all, a)
		return true
	})
	return all
}
