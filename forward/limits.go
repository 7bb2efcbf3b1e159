// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"time"

	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// What a Server has where a field is zero, and limits that no field moves. What a Client has where
// a field is zero stands in Client.init.
const (
	DefaultMaxInFlight     = 256
	DefaultMaxChunk        = 64 << 20
	DefaultMaxDecompressed = 256 << 20
	DefaultMemory          = 64 << 20
	DefaultWriteTimeout    = 30 * time.Second
	DefaultStallTimeout    = 10 * time.Second
	DefaultHandshake       = 10 * time.Second // HandshakeTimeout
	MaxTag                 = wire.MaxTag      // 1 KiB: bytes of a tag
	MaxID                  = wire.MaxID       // 64 KiB: bytes of a chunk id

	minMaxEvent = 64 << 10
	// maxLater is what a chunk may become before it is no longer kept decompressed; twice the
	// largest event if that is more.
	maxLater  = 16 << 20
	frameSize = MaxTag + MaxID + 64<<10
)

// limits are what Server's fields say, resolved.
type limits struct {
	maxInFlight     int
	maxChunk        int64
	maxMessage      int64 // maxChunk and its frame
	maxDecompressed int64
	maxEvent        int64 // 0: any
	later           int64 // what a chunk may become before it is no longer kept decompressed
	refuseInvalid   bool
	writeTimeout    time.Duration
	loginTimeout    time.Duration
}
