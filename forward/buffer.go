// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"math/bits"
	"sync"
)

// Sizes of buffers. Every size up to maxPooled is a power of two, so that buffers find new users; larger ones go to the garbage collector,
// and so does in time, for that is how sync.Pool works, what nobody takes again.
const (
	parkedBuffer = 4 << 10   // of a connection that has sent the beginning of a message and then nothing
	baseBuffer   = 128 << 10 // of a connection that sends: room for a read behind what the last one left over
	readSize     = 64 << 10  // of one read, where it is not known how much will come
	keptBuffer   = 1 << 20   // up to this size a connection begins with the size that its last messages needed
	maxPooled    = 1 << (poolClasses - 1)
	poolClasses  = 24
)

// A buffer is bytes from a pool.
type buffer struct{ b []byte }

var pools [poolClasses]sync.Pool

// takeBuffer returns a buffer of n bytes. bufferSize(n) == n.
func takeBuffer(n int) *buffer {
	if n <= maxPooled {
		if b, _ := pools[bits.Len(uint(n))-1].Get().(*buffer); b != nil {
			return b
		}
	}
	return &buffer{make([]byte, n)}
}

// put gives a buffer back.
func (b *buffer) put() {
	if n := len(b.b); n <= maxPooled {
		pools[bits.Len(uint(n))-1].Put(b)
	}
}

func (b *buffer) size() int64 { return int64(len(b.b)) }

// bufferSize returns the size of the buffer that holds n bytes: a power of two, and not more than most, which is at least n.
func bufferSize(n, most int64) int {
	if n <= parkedBuffer {
		return parkedBuffer
	}
	size := int64(1) << bits.Len64(uint64(n-1))
	if size > maxPooled {
		size = min(size, max(most, maxPooled))
	}
	return int(size)
}
