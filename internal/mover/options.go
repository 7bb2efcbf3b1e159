// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// Overflow says what Append does when ring and spill are full.
type Overflow uint8

const (
	// DropNewest refuses the event that does not fit.
	DropNewest Overflow = iota
	// DropOldest drops the oldest events that are not on their way, and accepts the new one.
	DropOldest
	// Block waits for room, as long as Config.MaxWait and the caller's context allow.
	Block
)

// Defaults and bounds.
const (
	DefaultRingSize = 16 << 20
	DefaultMaxEvent = 1 << 20 // or a quarter of the ring
	MinMaxDisk      = 1 << 20
	// MaxWindow is the largest Config.Window: the table of marks has 64 places, and a window of
	// the ring may have many tags.
	MaxWindow = 40

	defaultMaxDisk    = 1 << 30
	defaultMaxWait    = time.Second
	defaultFlush      = 100 * time.Millisecond
	defaultBatchBytes = 1 << 20
	defaultWindow     = 8
)

const (
	// quietFor: adopted rings are moved to the own spill when the destination has taken nothing for
	// so long.
	quietFor = 5 * time.Second
	// diskPatience is how long what is younger waits for a disk that hangs, or fails to read: a
	// slow one must not change the order.
	diskPatience = 30 * time.Second
	// makeRoom is how long an Append with DropOldest waits for the mover to drop something, which
	// is work in memory only.
	makeRoom = 100 * time.Millisecond
	// promptFor is how long an Append with Prompt waits.
	promptFor = 10 * time.Millisecond
	// adoptEvery: so often a running process looks for rings of others that died.
	adoptEvery = 30 * time.Second
)

// Config is what a Mover needs. Destination is required; every other zero value has a default.
type Config struct {
	// Name is the first part of the names of ring and spill (default "spillway").
	Name string
	// Shm is the folder of rings. Empty: the ring is in plain memory.
	Shm string
	// Dir is the folder of spills. Empty: nothing spills.
	Dir string
	// Identity must be equal for one process to adopt what another one left. Dir belongs to it
	// without being named.
	Identity string
	// RingSize is the size of the ring in bytes (default 16 MiB).
	RingSize int64
	// MaxDisk is how many bytes all spills in Dir may take together (default 1 GiB, at least 1
	// MiB). A spill that grows beside others may exceed it by two segments: see package spill.
	MaxDisk int64
	// MaxEvent is the longest payload (default 1 MiB).
	MaxEvent int
	// Overflow is what happens when ring and spill are full.
	Overflow Overflow
	// MaxWait is how long an Append waits, for room with Block or keep and for its delivery with
	// WaitDelivered together (default 1 s).
	MaxWait time.Duration
	// FlushInterval is how long an event may wait for others (default 100 ms).
	FlushInterval time.Duration
	// BatchBytes is how many bytes are cut from the ring at once (default 1 MiB).
	BatchBytes int
	// Ordered is for a destination that writes what it is given in the order of Submit: the lines
	// of a window keep their order, whatever their tags are. The chunks are then runs of one tag,
	// which may be as short as one event. Otherwise a chunk has all that a window has of its tag.
	Ordered bool
	// Window is how many chunks the destination may have at once (default 8); with Ordered,
	// the most windows of which it may have chunks. A window of several tags may exceed it.
	Window int
	// WaitDelivered makes Append return when its event is delivered or handed over, or MaxWait is
	// over.
	WaitDelivered bool
	// Prompt makes Append return when its event is delivered, or after 10 ms. Once that was in
	// vain, it does not wait until the destination has caught up.
	Prompt bool
	// Destination takes the chunks. Close closes it.
	Destination output.Output
	// Summary appends the payload of an event that tells of missed events to dst. nil: they are
	// counted only.
	Summary func(dst []byte, missed Missed) []byte
	// Delivered is told each chunk that was delivered, not those that an error handler took. The
	// chunk is valid during the call.
	Delivered func(c *forward.Chunk)
	// Diagnostics is told what went wrong. It must not block for long and not call the Mover.
	// nil: it is told nowhere.
	Diagnostics func(error)

	quiet        time.Duration // quietFor; these five are the constants, and shorter in tests
	diskPatience time.Duration
	makeRoom     time.Duration
	promptFor    time.Duration
	adoptEvery   time.Duration
	fs           journal.FS   // nil is the operating system
	fault        func(string) // called between the steps of spilling and of completing, by tests
}

func (c *Config) identity() []byte {
	return []byte(c.Identity + "\x00" + c.Dir)
}

func (c *Config) report(err error) {
	if err != nil {
		c.Diagnostics(err)
	}
}

func (c *Config) withDefaults() (Config, error) {
	r := *c
	if r.Destination == nil {
		return r, errors.New("mover: no destination")
	}
	set(&r.Name, "spillway")
	set(&r.RingSize, DefaultRingSize)
	set(&r.MaxDisk, defaultMaxDisk)
	set(&r.MaxEvent, DefaultMaxEvent)
	set(&r.MaxWait, defaultMaxWait)
	set(&r.FlushInterval, defaultFlush)
	set(&r.BatchBytes, defaultBatchBytes)
	set(&r.Window, defaultWindow)
	set(&r.quiet, quietFor)
	set(&r.diskPatience, diskPatience)
	set(&r.makeRoom, makeRoom)
	set(&r.promptFor, promptFor)
	set(&r.adoptEvery, adoptEvery)
	for _, n := range []struct {
		name string
		is   int64
		min  int64
	}{
		{"RingSize", r.RingSize, 1},
		{"MaxDisk", r.MaxDisk, MinMaxDisk},
		{"MaxEvent", int64(r.MaxEvent), 1},
		{"MaxWait", int64(r.MaxWait), 0},
		{"FlushInterval", int64(r.FlushInterval), 0},
		{"BatchBytes", int64(r.BatchBytes), 1},
		{"Window", int64(r.Window), 1},
	} {
		if n.is < n.min {
			return r, fmt.Errorf("mover: %s %d is less than %d", n.name, n.is, n.min)
		}
	}
	if r.Overflow > Block {
		return r, fmt.Errorf("mover: unknown overflow policy %d", r.Overflow)
	}
	r.Window = min(r.Window, MaxWindow)
	if r.Dir != "" {
		dir, err := filepath.Abs(r.Dir)
		if err != nil {
			return r, fmt.Errorf("mover: %w", err)
		}
		r.Dir = dir
	}
	if r.Diagnostics == nil {
		r.Diagnostics = func(error) {}
	}
	if r.fault == nil {
		r.fault = func(string) {}
	}
	return r, nil
}

// set gives *p a default.
func set[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}
