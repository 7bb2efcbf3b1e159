// SPDX-License-Identifier: Apache-2.0

package output

import (
	"io"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/spillwaylog/spillway/internal/lines"
)

// TestOutputsGiveLargeBuffersBack: a large event does not leave its memory behind.
func TestOutputsGiveLargeBuffersBack(t *testing.T) {
	const large = 32 << 20
	for name, open := range map[string]func(dir string) (Output, error){
		"file": func(dir string) (Output, error) { return NewFile(&FileConfig{Path: filepath.Join(dir, "out")}) },
		"file, sync": func(dir string) (Output, error) {
			return NewFile(&FileConfig{Path: filepath.Join(dir, "out"), Sync: true})
		},
		"file, text": func(dir string) (Output, error) {
			return NewFile(&FileConfig{Path: filepath.Join(dir, "out"), Format: FormatText, Text: lines.TextOptions{}})
		},
		"stream": func(string) (Output, error) { return NewStream(io.Discard, nil), nil },
		"stream, text": func(string) (Output,
			error,
		) {
			return NewStream(io.Discard, &StreamConfig{Format: FormatText}), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := open(t.TempDir())
			must(t, err)
			if r, ok := out.(Resumer); ok {
				must(t, r.Resume(func([]byte) error { return nil }))
			}
			before := inUse()
			done := make(chan Result)
			for _, n := range []int{1, large, 1, 1} {
				out.Submit(padded("app", 0, 1, n), func(r Result) { done <- r })
				if r := <-done; r.Err != nil || len(r.Rejected) > 0 {
					t.Fatalf("%+v", r)
				}
				must(t, out.Flush(t.Context()))
			}
			if kept := inUse() - before; kept > large/8 {
				t.Errorf("it keeps %d bytes", kept)
			}
			must(t, out.Close(t.Context()))
		})
	}
}

func inUse() int64 {
	runtime.GC()
	runtime.GC() // what pools had, too
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}
