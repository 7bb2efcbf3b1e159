// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"context"
	"log/slog"
	"time"
)

// Options says how a logger works. The zero value works, and so does nil. What belongs to the destination stands in its
// URL instead.
type Options struct {
	Tag  string // of leveled calls, lines and the logger's own events; default Name
	Name string // of the application; default the base name of the executable
	Dir  string // folder of the spill on disk; empty: none
	Shm  string // memory-backed folder for the ring; default /dev/shm on Linux; "none": plain memory

	RingSize      int64         // default 16 MiB
	MaxDisk       int64         // most bytes in Dir, default 1 GiB
	MaxEvent      int           // most bytes of one event, default 1 MiB
	FlushInterval time.Duration // default 100 ms
	MaxWait       time.Duration // longest wait of Block and Keep, default 1 s
	Overflow      Overflow      // when ring and spill are full; default DropNewest
	Keep          slog.Leveler  // events at or above it wait rather than drop; nil: none
	WaitDelivered bool          // each call returns when its event is written or acked

	Level   slog.Leveler // default slog.LevelInfo
	Source  Source       // default NoSource
	Attrs   []slog.Attr  // default fields
	Host    bool         // adds the field host
	PID     bool         // adds the field pid
	Service string       // adds the field service

	ReplaceAttr  func(groups []string, a slog.Attr) slog.Attr
	ContextAttrs func(ctx context.Context, attrs []slog.Attr) []slog.Attr
	Sample       map[slog.Level]Sampling

	ErrorHandler ErrorHandler
	Diagnostics  func(error)
}

// Overflow is what happens to events when ring and spill are full.
type Overflow uint8

// The ways to overflow.
const (
	DropNewest Overflow = iota // the new event is refused
	DropOldest                 // the oldest events make room
	Block                      // the call waits, at most MaxWait
)

// Source is how the place of a call stands in its record.
type Source uint8

// The ways to name a source.
const (
	NoSource    Source = iota
	ShortSource        // file.go:12
	LongSource         // /home/me/app/file.go:12
)

// Sampling lets the first First events of a message pass in each interval Every, then each Thereafter-th.
type Sampling struct {
	First      int
	Thereafter int
	Every      time.Duration
}
