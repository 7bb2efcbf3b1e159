// SPDX-License-Identifier: Apache-2.0

// Package spillwayzerolog brings rs/zerolog to Spillway: a zerolog.LevelWriter that turns its lines
// of JSON into records and hands these to a spillway.Logger, so that they outlive the process and
// reach a collector.
//
//	log, err := spillway.Open("forward://127.0.0.1:24224", nil)
//	…
//	logger := zerolog.New(spillwayzerolog.NewWriter(log))
//
// # What it keeps
//
//	level     TRACE, DEBUG, INFO, WARN, ERROR; panic is ERROR+2, fatal FATAL; without a level INFO
//	time      the event's own, if it is in zerolog.TimeFieldFormat, with the precision that that has; without Timestamp it is that
//	          of the call, to the nanosecond, and costs less
//	message   msg
//	caller    source, file.go:12 (the whole path with LongSource)
//	others    as they stand, in their order: error, stack, dictionaries and arrays, too
//
// A time or a caller that looks different stays a field. The names are those that zerolog's
// variables have when NewWriter is called. A name that stands twice is written twice, but of
// messages, times and callers the last one counts.
//
// A line that is no JSON (RawJSON can make it so) becomes a message as a whole. What the logger
// does not take is counted and told by the logger; the writer returns no error. Fatal and panic
// wait up to 5 s for the delivery, and so does Close, which leaves the logger open.
package spillwayzerolog
