// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spillwaylog/spillway/internal/record"
	"github.com/spillwaylog/spillway/msgpack"
)

// caller returns the program counter of the function that is skip calls above the one that calls
// caller.
func caller(skip int) uintptr {
	var pcs [1]uintptr
	runtime.Callers(2+skip, pcs[:]) // Callers and caller
	return pcs[0]
}

// sourceCache are the sources that were asked for before, encoded: finding a file and a line takes
// longer than all else in a call. A program has few calls that log, so that the map is copied for
// each new one.
type sourceCache struct {
	of atomic.Pointer[map[uintptr][]byte]
	mu sync.Mutex // held to add one
}

// maxCachedSources bounds the map. Sources beyond are found anew each time.
const maxCachedSources = 1 << 12

func (p *sourceCache) get(pc uintptr) []byte {
	if m := p.of.Load(); m != nil {
		return (*m)[pc]
	}
	return nil
}

func (p *sourceCache) put(pc uintptr, pair []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := map[uintptr][]byte{}
	if old := p.of.Load(); old != nil {
		if len(*old) >= maxCachedSources {
			return
		}
		m = maps.Clone(*old)
	}
	m[pc] = slices.Clone(pair)
	p.of.Store(&m)
}

// appendSource appends the pair of the source at pc.
func (c *core) appendSource(b []byte, pc uintptr) ([]byte, int) {
	if c.replace == nil {
		if pair := c.sources.get(pc); pair != nil {
			return append(b, pair...), 1
		}
	}
	frames := runtime.CallersFrames([]uintptr{pc})
	f, _ := frames.Next()
	if f.File == "" {
		return b, 0
	}
	start := len(b)
	b, n := c.appendFrame(b, &slog.Source{Function: f.Function, File: f.File, Line: f.Line})
	if c.replace == nil {
		c.sources.put(pc, b[start:])
	}
	return b, n
}

// appendFrame appends the pair of a place.
func (c *core) appendFrame(b []byte, s *slog.Source) ([]byte, int) {
	if c.replace == nil {
		b = msgpack.AppendString(b, slog.SourceKey)
		return c.appendPlace(b, s.File, s.Line), 1
	}
	a := c.replace(nil, slog.Any(slog.SourceKey, &slog.Source{Function: s.Function, File: s.File, Line: s.Line}))
	s, ok := a.Value.Any().(*slog.Source)
	if !ok || s == nil || a.Key == "" {
		return record.AppendAttr(b, a)
	}
	b = msgpack.AppendString(b, a.Key)
	return c.appendPlace(b, s.File, s.Line), 1
}

// appendPlace appends file.go:12 as a string.
func (c *core) appendPlace(b []byte, file string, line int) []byte {
	if c.source != LongSource {
		file = file[strings.LastIndexByte(file, '/')+1:]
	}
	var digits [20]byte
	d := strconv.AppendInt(digits[:0], int64(line), 10)
	b = msgpack.AppendStringHeader(b, len(file)+1+len(d))
	b = append(b, file...)
	b = append(b, ':')
	return append(b, d...)
}
