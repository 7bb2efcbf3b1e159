// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"fmt"
	"math/bits"
	"runtime"
)

const (
	defaultSize      = 16 << 20
	minSize          = 256 << 10
	maxSize          = 4 << 30
	defaultMaxRecord = 1 << 20
	minSegment       = 4 << 10
	fewSegments      = 64
	maxSegments      = 256
	maxIdentity      = 16 << 10
	maxName          = 100
)

// Options of [Open]. The zero value, and nil, are the defaults: 16 MiB of plain memory.
type Options struct {
	// Dir is the folder in which rings lie, each in a folder of its own. It should be on a file
	// system in memory, as /dev/shm is: on a disk, appends wait for write-back. Open makes it (but
	// not the folders above it) open to its owner alone; one that was open to others it shuts, and
	// reports that. It refuses one that is anybody else's, a symbolic link, or meant for everybody,
	// as /tmp and /dev/shm themselves are. Empty means plain memory: nothing outlives the process
	// then.
	Dir string
	// Name is the first part of the name of the ring's folder; Adopt looks for it. Letters, digits
	// and "_-+@" are kept, all else becomes "_" (default "ring").
	Name string
	// Identity is stored with the ring and shown to a process that might adopt it. At most 16 KiB.
	Identity []byte
	// Size is how many bytes of records the ring holds, headers and padding included (default 16
	// MiB, at least 256 KiB, at most 4 GiB, on 32 bits 256 MiB; rounded up to whole segments).
	Size int64
	// MaxRecord is the longest payload (default 1 MiB, but never more than a quarter of Size).
	MaxRecord int
	// Report is told what Open could not do but can do without. nil drops.
	Report func(error)
}

func (o *Options) withDefaults() (Options, error) {
	var r Options
	if o != nil {
		r = *o
	}
	if r.Name == "" {
		r.Name = "ring"
	}
	r.Name = cleanName(r.Name)
	if r.Size == 0 {
		r.Size = defaultSize
	}
	limit := int64(maxSize)
	if bits.UintSize == 32 {
		limit = 256 << 20
	}
	if r.Size < minSize || r.Size > limit {
		return r, fmt.Errorf("ring: Size %d is not in %d..%d", r.Size, minSize, limit)
	}
	unit := segmentSize(r.Size)
	r.Size = (r.Size + unit - 1) / unit * unit
	if r.MaxRecord < 0 {
		return r, fmt.Errorf("ring: MaxRecord %d is negative", r.MaxRecord)
	}
	if r.MaxRecord == 0 {
		r.MaxRecord = defaultMaxRecord
	}
	r.MaxRecord = min(r.MaxRecord, int(r.Size/4))
	if len(r.Identity) > maxIdentity {
		return r, fmt.Errorf("ring: Identity has %d bytes, more than %d", len(r.Identity), maxIdentity)
	}
	if r.Report == nil {
		r.Report = func(error) {}
	}
	return r, nil
}

// segmentSize is a power of two, so that there are between 64 and 256 segments, fewer in small
// rings: few, since to begin one costs as much as ten appends, but so many that those which all
// lanes have begun are a small part of the ring.
func segmentSize(size int64) int64 {
	unit := int64(minSegment)
	for unit*maxSegments < size {
		unit *= 2
	}
	for unit >= 64<<10 && 2*unit*fewSegments <= size && 2*unit*int64(16*firstLanes()) <= size {
		unit *= 2
	}
	return unit
}

// firstLanes is how many lanes a ring has before all of them are busy at once.
func firstLanes() int { return min(max(2*runtime.GOMAXPROCS(0), 4), 64) }

// cleanName makes a part of a file name of s.
func cleanName(s string) string {
	b := []byte(s)
	if len(b) > maxName {
		b = b[:maxName]
	}
	for i, c := range b {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-', c == '+', c == '@':
		default:
			b[i] = '_'
		}
	}
	return string(b)
}
