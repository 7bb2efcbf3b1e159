// SPDX-License-Identifier: Apache-2.0

// Package syslog is inputs of the collector for syslog, over UDP, TCP, TLS and unix sockets.
//
//	syslog+udp://0.0.0.0:514    syslog+tcp://0.0.0.0:514    syslog+tls://0.0.0.0:6514?cert=PEM&key=PEM
//	syslog+unix:///dev/log      syslog+unix:///run/log.sock?type=stream
//
//	socket ──► framer: messages ──► parse: RFC 5424, RFC 3164, text ──► a chunk a tag ──► sink
//
// # Promises
//
// Every message becomes an event, whatever its bytes: what is not understood is its text. Of a
// stream, what was read is stored before more is read; so a sender is held up while there is no
// room. Lengths are bounded, and what is longer is cut and marked.
//
// Not promised: that nothing is lost. Syslog has no acks. What lay in a socket's buffer when the
// collector was killed is gone, and so are datagrams that the kernel had no room for; these are
// counted, where the kernel tells.
package syslog

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/internal/credentials"
)

// Kinds are the inputs of this package, by the schemes of their URLs.
var Kinds = map[string]collector.InputKind{
	"syslog+udp": kind, "syslog+tcp": kind, "syslog+tls": kind, "syslog+unix": kind,
}

// settings are what a URL says.
type settings struct {
	network        string // udp, tcp, unix, unixgram
	address        string
	tag            tagTemplate
	zone           *time.Location
	maxMessage     int                 // bytes of a message
	addressKey     string              // of a record, for its sender's address; empty: it has none
	maxConnections int                 // connections at the same time
	receive        int64               // bytes that the kernel may keep of datagrams
	security       *credentials.Server // of TLS; nil: there is none
}

const (
	maxMessage       = 64 << 20
	connectionsLimit = 100_000
)

func kind(u *collector.URL, p *collector.Params) (func(*collector.InputEnv) (collector.Input, error), error) {
	s := &settings{address: strings.TrimPrefix(u.Path, "//")}
	dgram := true
	switch u.Scheme {
	case "syslog+udp":
		s.network = "udp"
	case "syslog+unix":
		if dgram = p.Choice("type", "dgram", "stream") == "dgram"; dgram {
			s.network = "unixgram"
		} else {
			s.network = "unix"
		}
		if !strings.HasPrefix(s.address, "/") {
			return nil, u.Errorf("write syslog+unix:///path")
		}
	default:
		s.network, dgram = "tcp", false
	}
	var err error
	if s.tag, err = parseTag(p.String("tag", "syslog.{facility}.{app}")); err != nil {
		return nil, u.Errorf("tag: %v", err)
	}
	if s.zone, err = time.LoadLocation(p.String("zone", "Local")); err != nil {
		return nil, u.Errorf("zone: %v", err)
	}
	longest := p.Size("max_message", 64<<10)
	s.addressKey = p.String("address_key", "")
	if dgram {
		s.receive = p.Size("receive_buffer", 32<<20)
	} else {
		s.maxConnections = int(p.Int("max_connections", 1000, 1, connectionsLimit))
	}
	if u.Scheme == "syslog+tls" {
		s.security, err = credentials.ReadTLS(u, p)
	}
	switch _, port, splitErr := net.SplitHostPort(s.address); {
	case p.Err() != nil:
		return nil, p.Err()
	case longest < 480 || longest > maxMessage:
		return nil, u.Errorf("max_message is 480 bytes to %d MiB", maxMessage>>20)
	case s.receive < 0 || s.receive > 1<<30:
		return nil, u.Errorf("receive_buffer is at most 1 GiB")
	case !strings.HasPrefix(s.network, "unix") && (splitErr != nil || port == ""):
		return nil, u.Errorf("write %s://host:port", u.Scheme)
	case slices.Contains(recordKeys, s.addressKey):
		return nil, u.Errorf("address_key=%s is a key that a record has of its message; name another one", s.addressKey)
	case err != nil:
		return nil, err
	}
	s.maxMessage = int(longest)
	return func(env *collector.InputEnv) (collector.Input, error) { return open(s, env) }, nil
}

// input listens on one address.
type input struct {
	*settings
	env      *collector.InputEnv
	listener net.Listener // of streams
	packets  packetSocket
	warned   limiter

	mu    sync.Mutex
	conns map[net.Conn]*atomic.Int64       // since when each is silent, in nanoseconds since 1970
	shown map[net.Conn][]*x509.Certificate // by those of TLS that have shown any
	ended bool

	memory  memory    // of streams
	batches sync.Pool // of *batch

	bytes, open, dropped, cut, unparsed atomic.Int64
}

// maxHeld is how many bytes the connections of an input hold together of messages that are not
// there whole, beyond the first ones of each. There is room for two of the largest in any case.
const maxHeld = 64 << 20

func open(s *settings, env *collector.InputEnv) (collector.Input, error) {
	in := &input{
		settings: s, env: env, conns: map[net.Conn]*atomic.Int64{}, shown: map[net.Conn][]*x509.Certificate{},
		warned: limiter{kinds: map[codes.Code]*allowance{}},
	}
	in.memory.limit = max(maxHeld, 4*int64(s.maxMessage))
	err := in.openFiles()
	if err == nil {
		err = in.listen()
	}
	if err != nil {
		return nil, fmt.Errorf("syslog: %w", err)
	}
	return in, nil
}

func (in *input) listen() (err error) {
	if strings.HasPrefix(in.network, "unix") {
		removeStale(in.network, in.address)
	}
	if in.network == "udp" || in.network == "unixgram" {
		in.packets, err = in.listenPackets()
		return err
	}
	if in.listener, err = net.Listen(in.network, in.address); err == nil && in.security != nil {
		in.listener = tls.NewListener(in.listener, in.security.TLS())
	}
	return err
}

// removeStale removes a socket on which no process listens any more.
func removeStale(network, path string) {
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != os.ModeSocket {
		return
	}
	c, err := net.Dial(network, path)
	if err == nil {
		c.Close()
		return
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		_ = os.Remove(path) // listening says what is wrong
	}
}

// Addr says where the input listens.
func (in *input) Addr() net.Addr {
	if in.packets != nil {
		return in.packets.LocalAddr()
	}
	return in.listener.Addr()
}

// Close lets go of the socket.
func (in *input) Close() (err error) {
	if in.packets != nil {
		err = in.packets.Close()
	}
	if in.listener != nil {
		err = in.listener.Close()
	}
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Stats implements collector.Input. Refused are datagrams that the kernel dropped.
func (in *input) Stats() collector.Received {
	return collector.Received{
		Bytes: in.bytes.Load(), Connections: in.open.Load(), Refused: in.dropped.Load(),
		Cut: in.cut.Load(), Unparsed: in.unparsed.Load(),
	}
}

// Run implements collector.Input.
func (in *input) Run(ctx context.Context, sink collector.Sink) error {
	codes.Listening.Info(in.env.Log, "listening", "address", in.Addr().String())
	// What was read is stored also when ctx has ended; the sink says when it takes no more.
	storing := context.WithoutCancel(ctx)
	stop := context.AfterFunc(ctx, in.end)
	defer stop()
	if in.packets != nil {
		return in.receiveAll(storing, sink)
	}
	return in.serve(ctx, storing, sink)
}

// end has all that waits for bytes return.
func (in *input) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.ended = true
	if in.packets != nil {
		_ = in.packets.SetReadDeadline(time.Unix(1, 0)) // it is open
		return
	}
	_ = in.listener.Close() // nothing more comes
	for c := range in.conns {
		// For writing too: package tls answers in the middle of a read, and a peer may not read.
		_ = c.SetDeadline(time.Unix(1, 0)) // it is open
	}
}

// hasEnded says whether end was called.
func (in *input) hasEnded() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.ended
}

// An ending is how one socket is read when its input was told to end: until it is silent for
// endSilence, and for maxEndTime at most. What lies in a socket has no other copy.
type ending struct{ until time.Time }

const (
	endSilence = 200 * time.Millisecond
	maxEndTime = 5 * time.Second
)

// goesOn says whether the socket is read again after a read with that error.
func (e *ending) goesOn(in *input, socket interface{ SetReadDeadline(time.Time) error }, err error) bool {
	now := time.Now()
	switch {
	case e.until.IsZero() && errors.Is(err, os.ErrDeadlineExceeded) && in.hasEnded():
		e.until = now.Add(maxEndTime)
	case err != nil || e.until.IsZero():
		return err == nil
	}
	_ = socket.SetReadDeadline(now.Add(min(endSilence, e.until.Sub(now)))) // it is open
	return now.Before(e.until)
}

// warn logs, now and then.
func (in *input) warn(code codes.Code, text string, args ...any) {
	if out, ok := in.warned.take(code); ok {
		code.Warn(in.env.Log, text, withLeftOut(out, args...)...)
	}
}

// bad tells what is wrong with a message.
func (in *input) bad(code codes.Code, fate string, err error, from origin) {
	if out, ok := in.warned.take(code); ok {
		code.Warn(in.env.Log, "bad input", withLeftOut(out, "peer", from.shown(), "fate", fate, "error", err)...)
	}
}

// An origin is where a message came from: an address, or the name of one.
type origin struct {
	addr netip.AddrPort
	name string
}

func (o origin) String() string {
	if o.addr.IsValid() {
		return o.addr.String()
	}
	return o.name
}

// host is the origin without its port, which with datagrams changes at will.
func (o origin) host() string {
	if o.addr.IsValid() {
		return o.addr.Addr().Unmap().String()
	}
	return o.name
}

// shown is the origin as messages name it: most senders by unix sockets have no name.
func (o origin) shown() string {
	if name := o.String(); name != "" && name != "@" {
		return name
	}
	return "unix"
}
