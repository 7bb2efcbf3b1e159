// SPDX-License-Identifier: Apache-2.0

package journal

import "fmt"

// Position is the end of a record: the segment's sequence number in the upper 32 bits, the offset
// in its file in the lower. Positions grow with every record and are never used twice in a
// directory. The zero Position is before everything.
type Position uint64

func at(seq uint32, off int64) Position { return Position(seq)<<32 | Position(uint32(off)) }

func (p Position) seq() uint32 { return uint32(p >> 32) }
func (p Position) off() int64  { return int64(uint32(p)) }

// String is the form people compare: segment/offset in hexadecimal.
func (p Position) String() string { return fmt.Sprintf("%08x/%08x", p.seq(), uint32(p)) }
