// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"bytes"
	"context"
	"io"
	"log"
	"log/slog"

	"github.com/spillwaylog/spillway/ring"
)

// StdLogger returns a log.Logger each message of which is logged at level, for code that prints. It
// has no flags: date and time are the event's own, and the source is there when Options.Source asks
// for it.
func (l *Logger) StdLogger(level slog.Level) *log.Logger {
	if l.off() {
		return log.New(io.Discard, "", 0)
	}
	return log.New(stdWriter{l, level}, "", 0)
}

// A stdWriter takes messages of package log, one a Write.
type stdWriter struct {
	l     *Logger
	level slog.Level
}

func (w stdWriter) Write(p []byte) (int, error) {
	if !w.l.Enabled(w.level) {
		return len(p), nil
	}
	var pc uintptr
	if w.l.c.source != NoSource {
		pc = caller(3) // Write is called by (*log.Logger).output, that by Print, that by the one that is wanted
	}
	msg := string(bytes.TrimSuffix(p, []byte{'\n'}))
	return len(p), w.l.emit(context.Background(), w.level, ring.Now, pc, msg, nil, nil)
}
