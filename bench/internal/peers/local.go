// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"errors"
	"io"
	"os"
	"time"
)

// A Local is a logger of lines.
type Local interface {
	// Ten logs a message with ten fields.
	Ten(r *Request)
	// One logs a message with one field.
	One(n int)
	// Line logs a message and nothing else.
	Line(text string)
	// Dropped is how many events were refused or dropped so far.
	Dropped() uint64
	// Close returns when all is written.
	Close() error
}

// A LocalKind makes Locals.
type LocalKind struct {
	Name string
	// Async says that a call returns before its line is written.
	Async bool
	// Open makes one that writes to a file, or into nothing when path is empty.
	Open func(path string) (Local, error)
}

// Locals are all of them, Spillway first.
var Locals = []LocalKind{
	{"spillway", true, openSpillway},
	{"spillway-memory", true, openSpillwayMemory},
	{"phuslu", false, openPhuslu},
	{"phuslu-async", true, openPhusluAsync},
	{"zerolog", false, openZerolog},
	{"zerolog-diode", true, openZerologDiode},
	{"zap", false, openZap},
	{"zap-buffered", true, openZapBuffered},
	{"slog", false, openSlog},
	{"logrus", false, openLogrus},
}

// A Request has the ten fields: about 320 bytes as JSON.
type Request struct {
	Method, Path, Remote, Agent, ID string
	Status                          int
	Bytes, User                     int64
	Took                            time.Duration
	Cached                          bool
}

// TheRequest is the one that the benchmarks log.
var TheRequest = Request{
	Method: "GET",
	Path:   "/api/v1/orders/12345/items",
	Remote: "192.168.12.17:51234",
	Agent:  "Mozilla/5.0 (X11; Linux x86_64; rv:140.0)",
	ID:     "3f2b1c9e-7a64-4e0b-9d5a-1c2d3e4f5a6b",
	Status: 200,
	Bytes:  51234,
	User:   9876543210,
	Took:   12_345_678,
	Cached: true,
}

// TheMessage and OneMessage are the messages of Ten and One.
const (
	TheMessage = "request served"
	OneMessage = "order placed"
)

// target opens what a synchronous writer writes to.
func target(path string) (io.WriteCloser, error) {
	if path == "" {
		return nothing{}, nil
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

// nothing discards. It hides the other methods of io.Discard, which some writers look for.
type nothing struct{}

func (nothing) Write(p []byte) (int, error) { return len(p), nil }
func (nothing) Close() error                { return nil }

// closers closes one after another.
type closers []func() error

func (c closers) Close() error {
	var errs []error
	for _, f := range c {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// lossless is embedded by those that drop nothing.
type lossless struct{}

func (lossless) Dropped() uint64 { return 0 }
