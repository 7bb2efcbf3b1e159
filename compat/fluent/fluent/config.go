// SPDX-License-Identifier: Apache-2.0

package fluent

import (
	"math"
	"time"
)

// Version is the release of the original whose API this is.
const Version = "1.10.2"

// What Config has where it is zero.
const (
	defaultPort         = 24224
	defaultHost         = "127.0.0.1"
	defaultNetwork      = "tcp"
	defaultTimeout      = 3 * time.Second
	defaultBufferLimit  = 8192
	defaultRetryWait    = 500
	defaultMaxRetry     = 13
	defaultMaxRetryWait = 60_000
)

// Config says where events go and how. The zero value sends each Post at once to 127.0.0.1:24224.
// What every field means with Async and without stands in a table in the package's documentation.
type Config struct {
	// FluentPort is the port, of tcp and tls: 24224 if 0.
	FluentPort int `json:"fluent_port"`
	// FluentHost is a name or an address, of tcp and tls, IPv6 with or without brackets: 127.0.0.1
	// if empty.
	FluentHost string `json:"fluent_host"`
	// FluentNetwork is "tcp" if empty, "tls" or "unix". Any other makes New return an
	// *ErrUnknownNetwork.
	FluentNetwork string `json:"fluent_network"`
	// FluentSocketPath is the path of the socket, of unix.
	FluentSocketPath string `json:"fluent_socket_path"`
	// Timeout bounds one attempt to connect, TLS included: 3 s if 0.
	Timeout time.Duration `json:"timeout"`
	// WriteTimeout bounds one write. 0: as long as it takes; Close ends it.
	WriteTimeout time.Duration `json:"write_timeout"`
	// BufferLimit is how many events an Async logger may hold; the size of its ring is a limit too,
	// and the only one if it is 0. The field then reads 8192.
	BufferLimit int `json:"buffer_limit"`
	// RetryWait is the pause before the first retry, in milliseconds; each next one is half as long
	// again: 500 if 0.
	RetryWait int `json:"retry_wait"`
	// MaxRetry is how many times one event is tried: 13 if 0.
	MaxRetry int `json:"max_retry"`
	// MaxRetryWait is the longest pause, in milliseconds: 60,000 if 0.
	MaxRetryWait int `json:"max_retry_wait"`
	// TagPrefix and a dot stand before the tags of Post and PostWithTime.
	TagPrefix string `json:"tag_prefix"`
	// Async makes Post return as soon as the event is in the ring.
	Async bool `json:"async"`
	// ForceStopAsyncSend makes the Close of an Async logger wait for a second at most. What is left
	// then stays in the ring for the next logger.
	ForceStopAsyncSend bool `json:"force_stop_async_send"`
	// AsyncResultCallback is told of each event of an Async logger, once, when it is delivered or
	// given up: the event as a message, the callee's to keep.
	AsyncResultCallback func(data []byte, err error)
	// AsyncConnect is Async.
	//
	// Deprecated: use Async.
	AsyncConnect bool `json:"async_connect"`
	// MarshalAsJSON makes the messages on the wire JSON, and records what encoding/json makes of
	// them.
	MarshalAsJSON bool `json:"marshal_as_json"`
	// AsyncReconnectInterval is how long an Async logger keeps a connection, in milliseconds,
	// before it looks up the host and connects anew. 0: as long as it holds.
	AsyncReconnectInterval int `json:"async_reconnect_interval"`
	// SubSecondPrecision sends times with nanoseconds. Otherwise they are whole seconds.
	SubSecondPrecision bool `json:"sub_second_precision"`
	// RequestAck asks the server to confirm: an event counts as delivered when it did.
	RequestAck bool `json:"request_ack"`
	// TlsInsecureSkipVerify lets any certificate pass.
	TlsInsecureSkipVerify bool `json:"tls_insecure_skip_verify"` //nolint:revive // var-naming: the original's name
	// ReadTimeout bounds the wait for an ack. 0: as long as it takes; Close ends it. With Async: a
	// minute.
	ReadTimeout time.Duration `json:"read_timeout"`
}

// resolve fills in the defaults.
func (c *Config) resolve() {
	orInt := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	orInt(&c.FluentPort, defaultPort)
	orInt(&c.BufferLimit, defaultBufferLimit)
	orInt(&c.RetryWait, defaultRetryWait)
	orInt(&c.MaxRetry, defaultMaxRetry)
	orInt(&c.MaxRetryWait, defaultMaxRetryWait)
	if c.FluentHost == "" {
		c.FluentHost = defaultHost
	}
	if c.FluentNetwork == "" {
		c.FluentNetwork = defaultNetwork
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	c.Async = c.Async || c.AsyncConnect
}

// attempts is MaxRetry: at least one attempt is made.
func (c *Config) attempts() int { return max(c.MaxRetry, 1) }

// pause is how long to wait before retry n, the first being 1.
func (c *Config) pause(n int) time.Duration {
	ms := float64(c.RetryWait) * math.Pow(1.5, float64(n-1))
	return time.Duration(max(min(ms, float64(c.MaxRetryWait)), 0) * float64(time.Millisecond))
}

// patience is how long one event would be tried while every attempt to connect fails at once, and
// one Timeout more; at most limit.
func (c *Config) patience(limit time.Duration) time.Duration {
	sum := c.Timeout
	for n := 1; n < c.attempts() && sum < limit; n++ {
		p := c.pause(n)
		if p == 0 { // nor will any other be longer
			break
		}
		sum += p
	}
	return min(sum, limit)
}
