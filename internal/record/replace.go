// SPDX-License-Identifier: Apache-2.0

package record

import (
	"log/slog"
	"unsafe"
)

// Replace is slog.HandlerOptions.ReplaceAttr: it sees each attribute that is no group, with the
// keys of the groups around it, and returns what is written instead. Values are resolved before.
type Replace = func(groups []string, a slog.Attr) slog.Attr

// AppendAttrsReplaced is AppendAttrs after replace has seen the attributes. groups, the keys of the
// groups that are open around them, is not kept. If replace panics, the value says so: what it was
// to hide is not written.
func AppendAttrsReplaced(dst []byte, groups []string, attrs []slog.Attr, replace Replace) (out []byte, n int) {
	if replace == nil {
		return AppendAttrs(dst, attrs)
	}
	return appendReplaced(dst, groups, attrs, replace, where{depth: 1})
}

func appendReplaced(b []byte, groups []string, attrs []slog.Attr, replace Replace, w where) (out []byte, n int) {
	for i := range attrs {
		var k int
		b, k = appendReplacedAttr(b, groups, attrs[i], replace, w)
		n += k
	}
	return b, n
}

func appendReplacedAttr(b []byte, groups []string, a slog.Attr, replace Replace, w where) (out []byte, n int) {
	if a.Value.Kind() == slog.KindLogValuer {
		v, wrong := w.enter(b, visitOf(a.Value.LogValuer(), w))
		if wrong != "" {
			return appendString(appendString(b, a.Key), wrong), 1
		}
		w = v
		defer w.leave()
		a.Value = resolve(a.Value)
	}
	if a.Value.Kind() != slog.KindGroup {
		a = replaced(groups, a, replace)
		a.Value = resolve(a.Value)
	}
	if a.Value.Kind() == slog.KindGroup {
		return appendReplacedGroup(b, groups, a.Key, a.Value.Group(), replace, w)
	}
	return appendAttr(b, &a, w)
}

func replaced(groups []string, a slog.Attr, replace Replace) (out slog.Attr) {
	defer func() {
		if r := recover(); r != nil {
			out = slog.String(a.Key, PanicText(r))
		}
	}()
	return replace(groups, a)
}

func appendReplacedGroup(b []byte, groups []string, key string, attrs []slog.Attr, replace Replace,
	w where,
) (out []byte, n int) {
	if len(attrs) == 0 {
		return b, 0
	}
	if w.depth >= Depth {
		return appendString(appendString(b, key), deep), 1
	}
	w.depth++
	w, wrong := w.enter(b, visit{p: unsafe.Pointer(unsafe.SliceData(attrs)), typ: groupType, n: len(attrs)})
	if wrong != "" {
		return appendString(appendString(b, key), wrong), 1
	}
	defer w.leave()
	if key == "" {
		return appendReplaced(b, groups, attrs, replace, w)
	}
	start := len(b)
	b, at := BeginMap(appendString(b, key), len(attrs))
	b, n = appendReplaced(b, append(groups[:len(groups):len(groups)], key), attrs, replace, w)
	if n == 0 {
		return b[:start], 0
	}
	return EndMap(b, at, n), 1
}
