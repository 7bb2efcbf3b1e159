// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"fmt"
	"io"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/lines"
)

// streamOutput writes JSON lines to a stream such as standard output: at least
// once, since a stream cannot be asked what it has.
type streamOutput struct {
	name     string
	w        io.Writer
	encoder  lines.Encoder
	pending  []byte
	reporter *reporter
}

// streamBuffer is how much is written at once.
const streamBuffer = 64 << 10

func (o *streamOutput) take(ctx context.Context, c *forward.Chunk) error {
	entries := forward.ReadEntries(c.Entries)
	for {
		e, ok := entries.Next()
		if !ok {
			return nil
		}
		o.pending = o.encoder.AppendLine(o.pending, c.Tag, e)
		for len(o.pending) >= streamBuffer {
			_, err := o.flush(false)
			if err == nil {
				break
			}
			o.reporter.trouble("output", fmt.Errorf("%s: %w; trying again", o.name, err))
			if err := pause(ctx, retryPause); err != nil {
				return err
			}
		}
	}
}

func (o *streamOutput) flush(bool) ([]byte, error) {
	n, err := o.w.Write(o.pending)
	rest := o.pending[n:]
	if o.pending = o.pending[:0]; cap(o.pending) > lineKeeps && len(rest) <= streamBuffer {
		o.pending = nil
	}
	o.pending = append(o.pending, rest...)
	return nil, err
}

func (o *streamOutput) close() error { return nil }

// discardOutput confirms everything and keeps nothing.
type discardOutput struct{}

func (discardOutput) take(context.Context, *forward.Chunk) error { return nil }
func (discardOutput) flush(bool) ([]byte, error)                 { return nil, nil }
func (discardOutput) close() error                               { return nil }
