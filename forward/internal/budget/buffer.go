// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math/bits"
	"sync/atomic"
)

// Sizes of buffers.
const (
	Parked = 4 << 10   // of a connection that has sent the beginning of a message and then nothing
	Base   = 128 << 10 // of a connection that sends: room for a read behind what the last one left over
)

// A Buffer is bytes from a pool. The taker owns it; others may share it.
type Buffer struct {
	B     []byte
	owned atomic.Int32 // by its owner and those that share it; at 0 it goes back
	since uint32       // the tick of the pool at which it came back
}

// Size is how many bytes it has.
func (b *Buffer) Size() int64 { return int64(len(b.B)) }

// Shared tells its owner whether others look at it: then its bytes stay where they are.
func (b *Buffer) Shared() bool { return b.owned.Load() > 1 }

// Share lets somebody else hold it too, until Holder.GiveBack.
func (b *Buffer) Share() { b.owned.Add(1) }

// Classes of sizes: powers of two from Parked to Base, then eight to a doubling, so
// that a buffer is at most an eighth larger than asked for, and one of a message that all but fits
// into a power of two is not twice that.
const (
	parkedBits  = 12
	baseBits    = 17
	fineSteps   = 8
	fineBits    = 3
	fineClass   = baseBits - parkedBits + 1 // the first beyond Base
	poolClasses = fineClass + (largestBits-baseBits)*fineSteps
	largestBits = 31
)

// classOf returns the class of the smallest buffer that holds n bytes, and its size.
func classOf(n int64) (class int, size int64) {
	if n <= Parked {
		return 0, Parked
	}
	k := bits.Len64(uint64(n - 1)) // 2^(k-1) < n <= 2^k
	if k <= baseBits {
		return k - parkedBits, 1 << k
	}
	step := int64(1) << (k - 1 - fineBits)
	steps := (n - int64(1)<<(k-1) + step - 1) / step
	return fineClass + (k-1-baseBits)*fineSteps + int(steps) - 1, int64(1)<<(k-1) + steps*step
}

// SizeOf returns the size of the buffer that holds n bytes.
func SizeOf(n int64) int {
	_, size := classOf(n)
	return int(size)
}
