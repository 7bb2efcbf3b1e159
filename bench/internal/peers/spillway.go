// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/spillwaylog/spillway"
)

type spill struct {
	log *spillway.Logger
	ctx context.Context
}

// openSpillway has the ring in shared memory, as a user would, and waits when it is full, so that
// nothing is dropped.
func openSpillway(path string) (Local, error) {
	return OpenSpillway(fileURL(path), &spillway.Options{Overflow: spillway.OverflowBlock, MaxWait: time.Minute})
}

// openSpillwayMemory has the ring in plain memory.
func openSpillwayMemory(path string) (Local, error) {
	return OpenSpillway(fileURL(path),
		&spillway.Options{Overflow: spillway.OverflowBlock, MaxWait: time.Minute, Shm: "none"})
}

// OpenSpillway is a Spillway logger with settings of one's own.
func OpenSpillway(destination string, o *spillway.Options) (Local, error) {
	s := &spill{ctx: context.Background()}
	if o.Name == "" {
		o.Name = "bench"
	}
	if o.Tag == "" {
		o.Tag = "bench"
	}
	o.Diagnostics = func(err error) { fmt.Fprintln(os.Stderr, "spillway:", err) }
	var err error
	s.log, err = spillway.Open(destination, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func fileURL(path string) string {
	if path == "" {
		return "discard:"
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		abs = path
	}
	return (&url.URL{Scheme: "file", Path: abs}).String()
}

func (s *spill) Ten(r *Request) {
	s.log.Info(TheMessage, slog.String("method", r.Method), slog.String("path", r.Path), slog.Int("status", r.Status),
		slog.Int64("bytes", r.Bytes), slog.Duration("took", r.Took), slog.String("remote", r.Remote),
		slog.String("agent", r.Agent), slog.String("id", r.ID),
		slog.Int64("user", r.User), slog.Bool("cached", r.Cached))
}

func (s *spill) One(n int) { s.log.Info(OneMessage, slog.Int("id", n)) }

func (s *spill) Line(text string) { s.log.Info(text) }

func (s *spill) Close() error {
	ctx, cancel := context.WithTimeoutCause(s.ctx, time.Minute, errors.New("closing takes more than a minute"))
	defer cancel()
	return s.log.Close(ctx)
}

func (s *spill) Dropped() uint64 {
	stats := s.log.Stats()
	return stats.Refused + stats.Dropped + stats.Lost
}

// Flush returns when all is delivered.
func (s *spill) Flush() error { return s.log.Flush(s.ctx) }
