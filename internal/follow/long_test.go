// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/msgpack"
)

// TestLong: long events come out whole and in order between the others, however they are stored, of
// two outputs that have their turns.
func TestLong(t *testing.T) {
	dir := t.TempDir()
	const records, n = 12, 100_000
	var want strings.Builder
	j := filled(t, dir, records, func(i int) *forward.Chunk {
		c := &forward.Chunk{Tag: "app"}
		for k := range 3 {
			text := strings.Repeat(string(rune('a'+i)), 10)
			if k == 1 {
				text = strings.Repeat("\x01", n+i)
			}
			b := forward.AppendEventTime(append(c.Entries, 0x92), 1, uint32(k))
			c.Entries = msgpack.AppendString(msgpack.AppendString(append(b, 0x81), "t"), text)
			c.Events++
			want.WriteString(`{"time":"1970-01-01T00:00:01.00000000` + string(rune('0'+k)) + `Z","tag":"app","t":"` +
				strings.ReplaceAll(text, "\x01", `\u0001`) + "\"}\n")
		}
		if i%2 == 0 {
			return zipped(c)
		}
		return c
	})
	defer j.Close()
	drain, ended := context.WithCancel(t.Context())
	ended()
	var turn Turn
	over := make(chan error, 2)
	paths := []string{filepath.Join(dir, "x"), filepath.Join(dir, "y")}
	for _, path := range paths {
		reader, err := j.Reader(filepath.Base(path))
		must(t, err)
		f := New(&Config{
			Reader: reader, Piece: 16 << 10, Bytes: 32 << 10, Turn: &turn,
			Open: func() (output.Output, error) { return output.NewFile(&output.FileConfig{Path: path, Sync: true}) },
		})
		go func() { over <- f.Run(t.Context(), drain) }()
	}
	for range paths {
		must(t, <-over)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		must(t, err)
		if string(b) != want.String() {
			t.Errorf("%d bytes, want %d", len(b), want.Len())
		}
	}
}
