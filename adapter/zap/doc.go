// SPDX-License-Identifier: Apache-2.0

// Package spillwayzap brings uber-go/zap to Spillway: a zapcore.Core that hands entries to a
// spillway.Logger, so that they outlive the process and reach a collector.
//
//	log, err := spillway.Open("forward://127.0.0.1:24224", nil)
//	…
//	logger := zap.New(spillwayzap.NewCore(log), zap.AddCaller())
//
// # What it keeps
//
//	Level        DEBUG, INFO, WARN, ERROR; dpanic is ERROR+1, panic ERROR+2, fatal FATAL
//	Time         the event's own
//	LoggerName   logger
//	Caller       source, file.go:12 (the whole path with LongSource)
//	Stack        stacktrace
//	fields       with the same names as in zap's JSON, namespaces and objects as maps, arrays as arrays
//
// Durations are nanoseconds, times texts of RFC 3339, Binary is bytes, NaN stays NaN. A value of
// Reflect is written as spillway.Logger.Post writes it: field names as for encoding/json, but
// errors and Stringers are their texts.
//
// What the logger does not take is counted and told by the logger; Write returns nil. An entry
// above the level error waits up to 5 s for its delivery, since the process may end with it; so
// does Sync.
package spillwayzap
