// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/files"
	"github.com/spillwaylog/spillway/internal/lines"
)

// fileOutput writes JSON lines into files.
type fileOutput struct {
	pump    *pump
	set     *files.Set
	encoder *lines.Encoder
	line    []byte
}

// lineKeeps is the largest buffer that an output keeps for its next line: one
// event may take hundreds of megabytes as JSON, and seldom does.
const lineKeeps = 1 << 20

// openFileOutput continues where the state that p last committed says.
func openFileOutput(p *pump, envelope *lines.Options, pattern string) (output, error) {
	encoder, err := lines.NewEncoder(envelope)
	if err != nil {
		return nil, err
	}
	_, state := p.reader.Committed()
	set, err := files.Open(pattern, state, &files.Options{
		Record: p.record,
		Report: func(err error) { p.reporter.trouble("output", fmt.Errorf("%s: %w", p.name, err)) },
	})
	if err != nil {
		return nil, err
	}
	return &fileOutput{pump: p, set: set, encoder: encoder}, nil
}

func (o *fileOutput) take(ctx context.Context, c *forward.Chunk) (bytes int64, err error) {
	entries := forward.ReadEntries(c.Entries)
	for {
		e, ok := entries.Next()
		if !ok {
			break
		}
		o.line = o.encoder.AppendLine(o.line[:0], c.Tag, e)
		for {
			err := o.set.Append(c.Tag, e.Sec, o.line)
			if err == nil {
				break
			}
			if errors.Is(err, files.ErrSync) {
				return bytes, err
			}
			o.pump.fail(err, retryPause)
			if err := pause(ctx, retryPause); err != nil {
				return bytes, err
			}
		}
		bytes += int64(len(o.line))
		if cap(o.line) > lineKeeps {
			o.line = nil
		}
	}
	return bytes, nil
}

// reopen marks the errors after which the set stays failed.
func (o *fileOutput) reopen(err error) error {
	if errors.Is(err, files.ErrSync) {
		return fmt.Errorf("%w; %w", err, errReopen)
	}
	return err
}

func (o *fileOutput) flush(durable bool) ([]byte, error) {
	if durable {
		state, err := o.set.Sync()
		return state, o.reopen(err)
	}
	err := o.set.Write()
	o.pump.soon = o.set.WantSync()
	return nil, o.reopen(err)
}

func (o *fileOutput) close() error { return o.set.Close() }
