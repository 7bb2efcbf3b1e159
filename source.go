// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"log/slog"
	"runtime"
	"strconv"
	"strings"

	"github.com/spillwaylog/spillway/internal/record"
	"github.com/spillwaylog/spillway/msgpack"
)

// caller returns the program counter of the function that is skip calls above the one that calls caller.
func caller(skip int) uintptr {
	var pcs [1]uintptr
	runtime.Callers(2+skip, pcs[:]) // Callers and caller
	return pcs[0]
}

// appendSource appends the pair of the source at pc.
func (c *core) appendSource(b []byte, pc uintptr) ([]byte, int) {
	frames := runtime.CallersFrames([]uintptr{pc})
	f, _ := frames.Next()
	if f.File == "" {
		return b, 0
	}
	if c.replace != nil {
		a := c.replace(nil, slog.Any(slog.SourceKey, &slog.Source{Function: f.Function, File: f.File, Line: f.Line}))
		s, ok := a.Value.Any().(*slog.Source)
		if !ok || s == nil || a.Key == "" {
			return record.AppendAttr(b, a)
		}
		b = msgpack.AppendString(b, a.Key)
		return c.appendPlace(b, s.File, s.Line), 1
	}
	b = msgpack.AppendString(b, slog.SourceKey)
	return c.appendPlace(b, f.File, f.Line), 1
}

// appendPlace appends file.go:12 as a string.
func (c *core) appendPlace(b []byte, file string, line int) []byte {
	if c.source == ShortSource {
		file = file[strings.LastIndexByte(file, '/')+1:]
	}
	var digits [20]byte
	d := strconv.AppendInt(digits[:0], int64(line), 10)
	b = msgpack.AppendStringHeader(b, len(file)+1+len(d))
	b = append(b, file...)
	b = append(b, ':')
	return append(b, d...)
}
