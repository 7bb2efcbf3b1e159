// SPDX-License-Identifier: Apache-2.0

package record

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/spillwaylog/spillway/msgpack"
)

// ErrNotRecord says that a value is no record: nil, or nothing that has keys and values.
var ErrNotRecord = errors.New("record: not a struct, a map or attributes")

// Replace may change an attribute before it is written, as slog.HandlerOptions.ReplaceAttr does.
type Replace = func(groups []string, a slog.Attr) slog.Attr

// AppendValue appends any value.
func AppendValue(dst []byte, v any) []byte { return msgpack.AppendString(dst, fmt.Sprint(v)) }

// AppendMap appends v, which must have keys and values, as a map. Otherwise the error is ErrNotRecord, and out is dst.
func AppendMap(dst []byte, v any) (out []byte, err error) {
	if m, ok := v.(map[string]any); ok {
		dst = msgpack.AppendMapHeader(dst, len(m))
		for k, v := range m {
			dst = AppendValue(msgpack.AppendString(dst, k), v)
		}
		return dst, nil
	}
	return dst, ErrNotRecord
}

// AppendAttr appends the pairs of an attribute and tells how many they are: none for the empty one, several for a group without a key.
func AppendAttr(dst []byte, a slog.Attr) (out []byte, n int) {
	return AppendValue(msgpack.AppendString(dst, a.Key), a.Value.Any()), 1
}

// AppendAttrs appends the pairs of all attributes and tells how many they are.
func AppendAttrs(dst []byte, attrs []slog.Attr) (out []byte, n int) {
	for _, a := range attrs {
		var k int
		dst, k = AppendAttr(dst, a)
		n += k
	}
	return dst, n
}

// AppendAttrsReplaced is AppendAttrs with a function that sees each attribute that is no group, as slog's handlers do.
func AppendAttrsReplaced(dst []byte, groups []string, attrs []slog.Attr, replace Replace) (out []byte, n int) {
	for _, a := range attrs {
		if a.Value.Kind() != slog.KindGroup {
			a = replace(groups, a)
		}
		var k int
		dst, k = AppendAttr(dst, a)
		n += k
	}
	return dst, n
}
