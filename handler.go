// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"context"
	"log/slog"

	"github.com/spillwaylog/spillway/internal/record"
)

// A handler is a logger as slog.Handler.
type handler struct{ l *Logger }

// Handler returns the logger as a slog.Handler, with what With and WithGroup have added. It keeps
// the time of records; one without a time is stored with the time 0. Its errors are those of Post,
// which slog drops.
//
// After slog.SetDefault(slog.New(l.Handler())) package log writes here, too.
func (l *Logger) Handler() slog.Handler { return handler{l} }

func (h handler) Enabled(_ context.Context, level slog.Level) bool { return h.l.Enabled(level) }

func (h handler) Handle(ctx context.Context, r slog.Record) error { //nolint:gocritic // slog's signature
	if h.l.off() {
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	attrs, more := record.AttrsOf(&r)
	return h.l.emit(ctx, r.Level, nanos(r.Time), r.PC, r.Message, attrs, more)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler { return handler{h.l.With(attrs...)} }

func (h handler) WithGroup(name string) slog.Handler { return handler{h.l.WithGroup(name)} }
