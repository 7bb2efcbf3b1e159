// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"context"

	"github.com/spillwaylog/spillway/ring"
)

// A Mover takes events and carries them to the destination. All methods may be called by many goroutines.
type Mover struct {
	cfg Config
}

// Open opens a ring, starts the mover's goroutine and looks for what dead processes left.
func Open(c *Config) (*Mover, error) {
	cfg, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Mover{cfg: cfg}, nil
}

// AppendPayload appends what stands before the record in an event's payload: the tag.
func AppendPayload(dst []byte, tag string) []byte { return append(dst, tag...) }

// Append takes an event. payload is what AppendPayload wrote, and a record: one MessagePack map. It is copied. t is in Unix nanoseconds, or ring.Now. keep says to
// wait for room, up to Config.MaxWait, whatever the policy.
func (m *Mover) Append(ctx context.Context, h *ring.Hint, t int64, keep bool, payload []byte) error {
	return nil
}

// Drop counts events that the caller left out itself, to be told by the next summary event.
func (m *Mover) Drop(r Reason, n uint64) {}

// Flush returns when all that was accepted before the call is delivered, handed over or dropped, or when ctx ends.
func (m *Mover) Flush(ctx context.Context) error { return nil }

// Close stops accepting, flushes until ctx ends, and lets go of everything. When it could not deliver all, its error wraps a *LeftError.
func (m *Mover) Close(ctx context.Context) error { return nil }

// Stats returns a picture of the Mover.
func (m *Mover) Stats() Stats { return Stats{} }
