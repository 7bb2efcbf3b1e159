// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/bits"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/mover"
	"github.com/spillwaylog/spillway/internal/record"
)

// Options says how a logger works. The zero value works, and so does nil. What belongs to the
// destination (hosts, acks, compression, format, rotation) stands in its URL instead, see [Open].
type Options struct {
	// Tag is under what leveled calls, lines and the logger's own events are filed. Default Name;
	// at most 1 KiB.
	Tag string
	// Name of the application, of at most 128 bytes. Default the base name of the executable. Ring
	// and spill carry it: what a dead process left is taken over by the next one of the same Name,
	// Dir and destination.
	Name string
	// Dir is the folder on disk into which flows what the destination cannot take and the ring
	// cannot hold. Empty: none.
	Dir string
	// Shm is the memory-backed folder for the ring, in which spillway-<uid> is made. Default
	// /dev/shm on Linux; "none", and the default elsewhere, is plain memory, which does not outlive
	// the process.
	Shm string

	// RingSize is the bytes of the ring: 256 KiB to 4 GiB (256 MiB on 32 bits). Default 16 MiB.
	// Where Shm has less room the ring is smaller, and Diagnostics says so once that is met.
	RingSize int64
	// MaxDisk is how many bytes all spills in Dir may take together: at least 1 MiB. Default 1
	// GiB. A spill that grows beside others may exceed it by two segments, each of 4 MiB or an
	// eighth of MaxDisk, whichever is less.
	MaxDisk int64
	// MaxEvent is how many bytes one event may have: at most a quarter of the ring. Default 1 MiB,
	// or that.
	MaxEvent int
	// FlushInterval is how long an event waits for others to travel with. Default 100 ms.
	FlushInterval time.Duration

	// Overflow is what happens to a new event when ring and spill are full. Default
	// OverflowDropNewest.
	Overflow Overflow
	// MaxWait is the longest that a call waits: for room with Block and Keep, and for its delivery
	// with WaitDelivered. Default 1 s.
	MaxWait time.Duration
	// Keep lets events at or above a level wait for room, whatever Overflow says. nil: none. Not
	// with OverflowDropOldest.
	Keep slog.Leveler
	// WaitDelivered makes each call return only when its event is written or acked, or handed over,
	// or when MaxWait is over: ErrTimeout. A destination that takes its time for an ack wants more.
	WaitDelivered bool

	// Level is the least that leveled calls log; default slog.LevelInfo. A *slog.LevelVar is used
	// as it is: setting it is SetLevel. Of any other Leveler the level is read once.
	Level slog.Leveler
	// Source adds the place of the call to leveled events.
	Source Source
	// Attrs are default fields: they stand in every event, but for those of PostRaw, and for events
	// that have a field of the same name from With, ContextAttrs or their own call.
	Attrs []slog.Attr
	// LastWins leaves of several fields of one name in one record or group only the last. Without
	// it they are written as they come, as slog's handlers do. It costs about 0.2 µs for ten
	// fields.
	LastWins bool
	Host     bool   // adds the field host, the machine's name
	PID      bool   // adds the field pid
	Service  string // adds the field service

	// ReplaceAttr may change or remove (by returning the zero Attr) each attribute before it is
	// written, as that of slog.HandlerOptions: it sees those of calls, of With, of ContextAttrs and
	// the default fields, with the groups they lie in, and the level, msg and source of the record
	// itself (as slog.Level, string and *slog.Source, without groups). It does not see groups
	// themselves, the time, which is no part of the record, nor what Post is given. Default fields
	// and those of With pass through it once, in Open and in With. If it panics the attribute's
	// value becomes a text that says so.
	ReplaceAttr func(groups []string, a slog.Attr) slog.Attr
	// ContextAttrs appends to attrs what belongs into each leveled event of a call with this
	// context: a trace id. They stand in the record itself, whatever groups are open. Calls without
	// a context have context.Background().
	ContextAttrs func(ctx context.Context, attrs []slog.Attr) []slog.Attr
	// Sample thins out levels: exactly those in the map.
	Sample map[slog.Level]Sampling

	// ErrorHandler is offered chunks that cannot be delivered. It must not wait for this logger's
	// deliveries, by Flush or by logging with WaitDelivered.
	ErrorHandler ErrorHandler
	// Diagnostics is told what goes wrong in the logger itself. It is called on a goroutine of its
	// own, one call at a time, so it may use any logger, this one too, but not wait for its Flush
	// or Close, which wait for it. Default: a line on standard error, at most ten at once and one a
	// second.
	Diagnostics func(error)
	// TLS is how connections of a forward+tls:// destination are made TLS 1.2 or newer. nil: as the
	// URL says (ca, cert, key, server_name), or with the authorities of the system. It is cloned;
	// the name of the server is the host's, unless ServerName says another one.
	TLS *tls.Config
	// Login is how connections log in at Forward servers that ask for it. nil: as the URL says, by
	// files and variables (shared_key_file, shared_key_env, username, password_file, password_env)
	// that are read again when they change; it is an error to give both. It is copied, and no part
	// of what a ring or spill is found again by.
	Login *forward.Login

	// Dial makes the connections to Forward servers, on which TLS and login then take place. nil: a
	// net.Dialer, which asks the DNS each time.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Delivered is told each chunk that the destination took for good, not those that ErrorHandler
	// took. The chunk is valid only during the call. Flush and Close return after it did, so it
	// must not call them; nor must it log here if that waits: nothing is delivered until it
	// returns.
	Delivered func(c *forward.Chunk)
	// Exit is what Fatal ends the process with. Default os.Exit.
	Exit func(code int)
}

// Overflow is what happens to events when ring and spill are full.
type Overflow = mover.Overflow

const (
	// OverflowDropNewest refuses the new event.
	OverflowDropNewest = mover.DropNewest
	// OverflowDropOldest makes room by dropping the oldest events that are not on their way. Calls
	// wait for that, for at most 100 ms.
	OverflowDropOldest = mover.DropOldest
	// OverflowBlock lets the call wait for room, at most Options.MaxWait; then the event is
	// refused.
	OverflowBlock = mover.Block
)

// Source is how the place of a call stands in its event.
type Source uint8

const (
	// NoSource leaves it out.
	NoSource Source = iota
	// ShortSource is file.go:12.
	ShortSource
	// LongSource is /home/me/app/file.go:12.
	LongSource
)

// Sampling lets through, of the events of one message, the first First in each interval Every, and
// then each Thereafter-th (0: none). What it leaves out is counted in Stats and told by the summary
// event. Messages are told apart by a hash of 12 bits, so that now and then two of them count as
// one.
type Sampling struct {
	First      int
	Thereafter int
	Every      time.Duration // default 1 s
}

// noShm as Options.Shm is plain memory.
const noShm = "none"

// resolved checks the options and sets the defaults that the root package needs itself; the mover
// knows those of ring and spill.
func (o *Options) resolved() (Options, error) {
	var r Options
	if o != nil {
		r = *o
	}
	if r.Name == "" {
		r.Name = executable()
	}
	if len(r.Name) > maxName {
		return r, fmt.Errorf("spillway: Options.Name has %d bytes, more than %d", len(r.Name), maxName)
	}
	if r.Name != filepath.Base(r.Name) || strings.ContainsAny(r.Name, `/\`+"\x00") || r.Name == "." || r.Name == ".." {
		return r, fmt.Errorf("spillway: Options.Name %q is not the name of a file", r.Name)
	}
	if r.Tag == "" {
		r.Tag = r.Name
	}
	if len(r.Tag) > forward.MaxTag {
		return r, fmt.Errorf("Options.Tag: %w", tagError(r.Tag))
	}
	if r.Dir != "" { // wherever the process goes until it is needed, and the next one begins
		r.Dir = absolute(r.Dir)
	}
	switch {
	case r.Shm == "" && runtime.GOOS == "linux":
		r.Shm = "/dev/shm"
	case r.Shm == "":
		r.Shm = noShm
	case r.Shm != noShm:
		r.Shm = absolute(r.Shm)
	}
	if err := r.inBounds(); err != nil {
		return r, err
	}
	if r.MaxEvent == 0 {
		r.MaxEvent = mover.DefaultMaxEvent
		if r.RingSize > 0 {
			r.MaxEvent = int(min(mover.DefaultMaxEvent, r.RingSize/4))
		}
	}
	if r.Overflow == OverflowDropOldest && r.Keep != nil {
		return r, errors.New("spillway: Options.Keep cannot be kept with OverflowDropOldest, which drops events that were accepted, whatever their level")
	}
	if r.Exit == nil {
		r.Exit = os.Exit //nolint:forbidigo // what Fatal is for
	}
	if r.ReplaceAttr != nil {
		r.ReplaceAttr = guarded(r.ReplaceAttr)
	}
	return r, nil
}

const (
	minRing = 256 << 10
	maxName = 128 // ring and spill put numbers behind it, and a file's name has at most 255 bytes
)

// inBounds refuses numbers that are out of bounds. 0 is the default of each.
func (o *Options) inBounds() error {
	maxRing := int64(4 << 30)
	if bits.UintSize == 32 {
		maxRing = 256 << 20
	}
	ring := cmp.Or(o.RingSize, mover.DefaultRingSize)
	err := cmp.Or(
		within("RingSize", ring, minRing, maxRing),
		within("MaxDisk", cmp.Or(o.MaxDisk, mover.MinMaxDisk), mover.MinMaxDisk, math.MaxInt64),
		within("MaxEvent, at most a quarter of the ring,", int64(o.MaxEvent), 0, ring/4),
		within("FlushInterval", o.FlushInterval, 0, math.MaxInt64),
		within("MaxWait", o.MaxWait, 0, math.MaxInt64),
		within("Overflow", int64(o.Overflow), 0, int64(OverflowBlock)),
		within("Source", int64(o.Source), 0, int64(LongSource)),
	)
	for level, s := range o.Sample {
		name := "Sample[" + levelText(level) + "]."
		err = cmp.Or(err, within(name+"First", int64(s.First), 0, math.MaxInt64),
			within(name+"Thereafter", int64(s.Thereafter), 0, math.MaxInt64),
			within(name+"Every", s.Every, 0, math.MaxInt64))
	}
	return err
}

// within returns an error if n is not from minimum to maximum.
func within[T int64 | time.Duration](option string, n, minimum, maximum T) error {
	switch {
	case n >= minimum && n <= maximum:
		return nil
	case maximum == math.MaxInt64:
		return fmt.Errorf("spillway: Options.%s is %v, less than %v", option, n, minimum)
	}
	return fmt.Errorf("spillway: Options.%s is %v, not %v to %v", option, n, minimum, maximum)
}

// executable is the base name of the running program.
func executable() string {
	path, err := os.Executable()
	if err != nil || path == "" {
		return "spillway"
	}
	return strings.TrimSuffix(filepath.Base(path), ".exe")
}

// rings is the folder in which rings lie; empty for plain memory.
func (o *Options) rings() string {
	if o.Shm == noShm {
		return ""
	}
	return filepath.Join(o.Shm, "spillway-"+strconv.Itoa(os.Geteuid()))
}

// fields are all default fields.
func (o *Options) fields() []slog.Attr {
	var attrs []slog.Attr
	if o.Host {
		name, err := os.Hostname()
		if err != nil {
			name = "unknown"
		}
		attrs = append(attrs, slog.String("host", name))
	}
	if o.Service != "" {
		attrs = append(attrs, slog.String("service", o.Service))
	}
	if o.PID {
		attrs = append(attrs, slog.Int("pid", os.Getpid()))
	}
	return append(attrs, o.Attrs...)
}

// levelVar is the variable that says what a Leveler says.
func levelVar(l slog.Leveler, otherwise slog.Level) *slog.LevelVar {
	v, ok := l.(*slog.LevelVar)
	if ok && v != nil {
		return v
	}
	v = new(slog.LevelVar)
	v.Set(otherwise)
	if l != nil && !ok {
		v.Set(l.Level())
	}
	return v
}

// never is above all levels.
const never = slog.Level(math.MaxInt)

// absolute returns path from the root where it can.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// guarded keeps a panic of ReplaceAttr from the caller, and the value that was to be replaced from
// the log.
func guarded(replace func([]string, slog.Attr) slog.Attr) func([]string, slog.Attr) slog.Attr {
	return func(groups []string, a slog.Attr) (out slog.Attr) {
		defer func() {
			if v := recover(); v != nil {
				out = slog.String(a.Key, record.PanicText(v))
			}
		}()
		return replace(groups, a)
	}
}
