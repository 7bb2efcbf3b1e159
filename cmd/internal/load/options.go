// SPDX-License-Identifier: Apache-2.0

package load

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"time"
)

// Mode is how events travel.
type Mode string

// The modes.
const (
	ModeMessage Mode = "message" // one event a message
	ModeForward Mode = "forward" // an array of entries
	ModePacked  Mode = "packed"  // entries in a bin; the only mode that can be compressed
)

// What Options have where a field is zero.
const (
	DefaultSize     = 140
	DefaultDepth    = 16
	DefaultDuration = 10 * time.Second
	DefaultDrain    = 10 * time.Second
	DefaultTag      = "bench"
)

// Limits of Options.
const (
	MinSize         = 40
	maxMessage      = 64 << 20 // bytes
	maxConnections  = 10_000
	maxDepth        = 1 << 16
	maxRate         = 1e9
	warmestDuration = 24 * time.Hour
)

// Options are one run. Dial is all that is needed.
type Options struct {
	// Dial makes a connection on which messages can be sent: with the handshakes behind it.
	Dial func(context.Context) (net.Conn, error)
	// Rate is how many events a second are offered on all connections together; 0: as many as the
	// server takes.
	Rate float64
	// Connections is how many share the rate: 1 if 0.
	Connections int
	// Mode is Packed if empty.
	Mode Mode
	// Compress is how packed entries are compressed: "" or "none", "gzip", "zstd".
	Compress string
	// Fresh compresses every message anew; otherwise some are compressed beforehand and sent again
	// and again.
	Fresh bool
	// Batch is how many events a message has: 1,000 packed, 100 in Forward mode if 0; always 1 in
	// Message mode.
	Batch int
	// Size is how many bytes of MessagePack the time and the record of an event are: 140 if 0.
	Size int
	// Records are sent in place of made ones, one after another: a MessagePack map each. Size means
	// nothing then.
	Records [][]byte
	// Tag is that of all events: "bench" if empty.
	Tag string
	// Ack asks for an ack for each message.
	Ack bool
	// Depth is how many messages of a connection may wait for their acks: 16 if 0.
	Depth int
	// Warmup comes before Duration, and is not measured.
	Warmup time.Duration
	// Duration is how long is measured: 10 s if 0.
	Duration time.Duration
	// Drain is how long the server may take at the end, for the acks that are missing or for
	// reading what it was sent: 10 s if 0.
	Drain time.Duration
	// Processes are the server's: their CPU and memory are measured.
	Processes []int
	// Progress is told each second how it goes. It must not block.
	Progress func(Progress)
}

// Check says what is wrong with the options.
func (o Options) Check() error {
	_, err := o.resolve()
	return err
}

// resolve returns the options with what the zero values mean, or an error.
func (o Options) resolve() (Options, error) {
	o.Connections = cmp.Or(o.Connections, 1)
	o.Size = cmp.Or(o.Size, DefaultSize)
	o.Depth = cmp.Or(o.Depth, DefaultDepth)
	o.Mode = cmp.Or(o.Mode, ModePacked)
	if o.Compress == "none" {
		o.Compress = ""
	}
	o.Tag = cmp.Or(o.Tag, DefaultTag)
	o.Duration = cmp.Or(o.Duration, DefaultDuration)
	o.Drain = cmp.Or(o.Drain, DefaultDrain)
	batch := 0
	switch o.Mode {
	case ModeMessage:
		batch = 1
		if o.Batch > 1 {
			return o, fmt.Errorf("%d events a message: mode message has one", o.Batch)
		}
	case ModeForward:
		batch = 100
	case ModePacked:
		batch = 1000
	default:
		return o, fmt.Errorf("no mode %q: message, forward or packed", o.Mode)
	}
	o.Batch = cmp.Or(o.Batch, batch)
	switch {
	case o.Dial == nil:
		return o, fmt.Errorf("nothing to dial with")
	case o.Compress != "" && o.Compress != "gzip" && o.Compress != "zstd":
		return o, fmt.Errorf("no compression %q: none, gzip or zstd", o.Compress)
	case o.Compress != "" && o.Mode != ModePacked:
		return o, fmt.Errorf("mode %s cannot be compressed, packed can", o.Mode)
	case !(o.Rate >= 0 && o.Rate <= maxRate): // NaN too
		return o, fmt.Errorf("a rate of %v events a second: 0 to %.0f", o.Rate, maxRate)
	case o.Connections < 1 || o.Connections > maxConnections:
		return o, fmt.Errorf("%d connections: 1 to %d", o.Connections, maxConnections)
	case o.Depth < 1 || o.Depth > maxDepth:
		return o, fmt.Errorf("a depth of %d: 1 to %d", o.Depth, maxDepth)
	case o.Batch < 1:
		return o, fmt.Errorf("%d events a message", o.Batch)
	case len(o.Records) == 0 && o.Size < MinSize:
		return o, fmt.Errorf("events of %d bytes: at least %d", o.Size, MinSize)
	case len(o.Records) == 0 && o.Batch > maxMessage/o.Size:
		return o, fmt.Errorf("a message of %d events of %d bytes is larger than %d bytes", o.Batch, o.Size, maxMessage)
	case o.Warmup < 0 || o.Duration <= 0 || o.Drain <= 0 || max(o.Warmup, o.Duration, o.Drain) > warmestDuration:
		return o, fmt.Errorf("warm-up, duration and drain are positive and at most %v", warmestDuration)
	}
	if o.Rate > 0 { // each connection has messages of its own
		if every := float64(o.Batch) * float64(o.Connections) / o.Rate; every > o.Duration.Seconds() {
			return o, fmt.Errorf("%g events a second on %d connections, %d events a message: each connection has one to send every %.3g s, and %v are measured; take more time, smaller messages or fewer connections",
				o.Rate, o.Connections, o.Batch, every, o.Duration)
		}
	}
	return o, nil
}
