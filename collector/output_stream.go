// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"io"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/lines"
)

// streamOutput writes JSON lines to a stream such as standard output: at least
// once, since a stream cannot be asked what it has.
type streamOutput struct {
	pump    *pump
	w       io.Writer
	encoder *lines.Encoder
	pending []byte
}

func openStreamOutput(p *pump, envelope *lines.Options, w io.Writer) (output, error) {
	encoder, err := lines.NewEncoder(envelope)
	if err != nil {
		return nil, err
	}
	return &streamOutput{pump: p, w: w, encoder: encoder}, nil
}

// streamBuffer is how much is written at once.
const streamBuffer = 64 << 10

func (o *streamOutput) take(ctx context.Context, c *forward.Chunk) (bytes int64, err error) {
	entries := forward.ReadEntries(c.Entries)
	for {
		e, ok := entries.Next()
		if !ok {
			return bytes, nil
		}
		before := len(o.pending)
		o.pending = o.encoder.AppendLine(o.pending, c.Tag, e)
		bytes += int64(len(o.pending) - before)
		for len(o.pending) >= streamBuffer {
			_, err := o.flush(false)
			if err == nil {
				break
			}
			o.pump.fail(err, retryPause)
			if err := pause(ctx, retryPause); err != nil {
				return bytes, err
			}
		}
	}
}

func (o *streamOutput) flush(bool) ([]byte, error) {
	if len(o.pending) == 0 {
		return nil, nil // a stream that is cut is no failure before there is something to write
	}
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

func (discardOutput) take(context.Context, *forward.Chunk) (int64, error) { return 0, nil }
func (discardOutput) flush(bool) ([]byte, error)                          { return nil, nil }
func (discardOutput) close() error                                        { return nil }
