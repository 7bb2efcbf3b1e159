// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"context"
	"log/slog"
)

type slogged struct {
	lossless
	closers
	log *slog.Logger
}

func openSlog(path string) (Local, error) {
	w, err := target(path)
	if err != nil {
		return nil, err
	}
	return &slogged{closers: closers{w.Close}, log: slog.New(slog.NewJSONHandler(w, nil))}, nil
}

func (s *slogged) Ten(r *Request) {
	s.log.LogAttrs(context.Background(), slog.LevelInfo, TheMessage, slog.String("method", r.Method),
		slog.String("path", r.Path), slog.Int("status", r.Status),
		slog.Int64("bytes", r.Bytes), slog.Duration("took", r.Took), slog.String("remote", r.Remote),
		slog.String("agent", r.Agent), slog.String("id", r.ID),
		slog.Int64("user", r.User), slog.Bool("cached", r.Cached))
}

func (s *slogged) One(n int) {
	s.log.LogAttrs(context.Background(), slog.LevelInfo, OneMessage, slog.Int("id", n))
}

func (s *slogged) Line(text string) { s.log.LogAttrs(context.Background(), slog.LevelInfo, text) }
