// SPDX-License-Identifier: Apache-2.0

package window

const (
	maxPooled = 8 << 20 // bytes of buffers kept
	newBuffer = 4 << 10
)

// Buffers is memory of entries to be used again.
type Buffers struct {
	all   [][]byte
	bytes int
}

// buffer is an empty one. A new one has room for so many bytes.
func (b *Buffers) buffer(room int) []byte {
	if n := len(b.all); n > 0 {
		e := b.all[n-1]
		b.all = b.all[:n-1]
		b.bytes -= cap(e)
		return e
	}
	return make([]byte, 0, max(room, newBuffer))
}

func (b *Buffers) give(e []byte) {
	if b.bytes+cap(e) <= maxPooled {
		b.bytes += cap(e)
		b.all = append(b.all, e[:0])
	}
}

// grow returns e with room for n bytes more: four times as much, but no more than limit unless n
// does not fit into that. append would take a dozen steps to a window of a megabyte, and copy four.
func grow(e []byte, n, limit int) []byte {
	return append(make([]byte, 0, max(min(4*cap(e), limit), len(e)+n)), e...)
}
