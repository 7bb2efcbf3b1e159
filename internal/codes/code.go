// SPDX-License-Identifier: Apache-2.0

// Package codes has the codes of the collector's messages: words that stay when a text is put
// better, for people who search for them and for alerts that count them.
//
// A code is its subject and what is the matter with it, such as output-broken. It is a word and no
// number, so that a reader at night knows what it is about before looking it up. No code ever means
// something else. docs/messages.md says of each what happened and what to do; a test compares it
// with the table, and another one finds what is logged without a code.
package codes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"time"
)

// A Code is what a message is known by.
type Code string

// Peer is the code of what peers do wrong, by its kind: a forward.PeerErrorKind.
func Peer(kind fmt.Stringer) Code {
	return Code("peer-" + strings.ReplaceAll(kind.String(), " ", "-"))
}

// Debug logs a message under the code.
func (c Code) Debug(log *slog.Logger, text string, args ...any) {
	c.log(log, slog.LevelDebug, text, args)
}

// Info logs a message under the code.
func (c Code) Info(log *slog.Logger, text string, args ...any) {
	c.log(log, slog.LevelInfo, text, args)
}

// Warn logs a message under the code.
func (c Code) Warn(log *slog.Logger, text string, args ...any) {
	c.log(log, slog.LevelWarn, text, args)
}

// Error logs a message under the code.
func (c Code) Error(log *slog.Logger, text string, args ...any) {
	c.log(log, slog.LevelError, text, args)
}

func (c Code) log(log *slog.Logger, level slog.Level, text string, args []any) {
	ctx := context.Background()
	if !log.Enabled(ctx, level) {
		return
	}
	var callers [1]uintptr
	runtime.Callers(3, callers[:]) // the line that says it is the caller's
	r := slog.NewRecord(time.Now(), level, text, callers[0])
	r.AddAttrs(slog.String("code", string(c)))
	r.Add(args...)
	_ = log.Handler().Handle(ctx, r) // as slog.Logger does
}

// Errorf makes an error that is told under the code, wherever it is logged in the end.
func (c Code) Errorf(format string, args ...any) error {
	return &coded{c, fmt.Errorf(format, args...)}
}

// Of is the code of an error, or the other one if it has none.
func Of(err error, otherwise Code) Code {
	var e *coded
	if errors.As(err, &e) {
		return e.code
	}
	return otherwise
}

type coded struct {
	code Code
	err  error
}

func (e *coded) Error() string { return e.err.Error() }
func (e *coded) Unwrap() error { return e.err }
