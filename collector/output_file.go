// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"fmt"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/files"
	"github.com/spillwaylog/spillway/internal/lines"
)

// fileOutput writes JSON lines into files.
type fileOutput struct {
	name     string
	set      *files.Set
	encoder  lines.Encoder
	line     []byte
	reporter *reporter
}

func (o *fileOutput) take(ctx context.Context, c *forward.Chunk) error {
	entries := forward.ReadEntries(c.Entries)
	for {
		e, ok := entries.Next()
		if !ok {
			return nil
		}
		o.line = o.encoder.AppendLine(o.line[:0], c.Tag, e)
		for {
			err := o.set.Append(c.Tag, e.Sec, o.line)
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

func (o *fileOutput) flush(durable bool) ([]byte, error) {
	if durable {
		return o.set.Sync()
	}
	return nil, o.set.Write()
}

func (o *fileOutput) close() error { return o.set.Close() }
