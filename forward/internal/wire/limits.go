// SPDX-License-Identifier: Apache-2.0

package wire

import "github.com/spillwaylog/spillway/msgpack"

// What no message may exceed, whatever a Server is told.
const (
	MaxTag       = 1 << 10  // bytes of a tag
	MaxID        = 64 << 10 // bytes of a chunk id
	LargestChunk = 1 << 30  // bytes of a chunk, compressed or not
)

// readLeast is the smallest buffer of a connection that reads. What fits into it is never too long,
// only too large, however it was cut into reads.
const readLeast = 128 << 10

// MaxDepth is how deep a record may nest. An entry has one level more.
const MaxDepth = msgpack.DefaultDepth

// Claims is what the lengths and counts in a message of at most size bytes may say.
func Claims(depth int, size int64) msgpack.Limits {
	size = max(size, readLeast)
	return msgpack.Limits{Depth: depth, Length: size, Count: size}
}
