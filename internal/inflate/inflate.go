// SPDX-License-Identifier: Apache-2.0

package inflate

import (
	"encoding/binary"
	"hash/crc32"
)

// Slack is how much longer than what becomes of it the room for a member must be: the last match is
// copied a word at a time.
const Slack = 16

// A Decoder has the tables of the block in progress. The zero value works. It is not for several
// goroutines at once.
type Decoder struct {
	lit  [litSize]uint32 // of lengths and literals; see fill
	dist [distSize]uint32
	pre  [preSize]uint32 // of the lengths of codes
	lens [maxLit + maxDist]uint8
}

const (
	headSize = 10
	tailSize = 8
)

// Claimed is how long src says that it will be, if it may be what Gunzip takes: one member with no
// more in its header than most write.
func Claimed(src []byte) (n int, ok bool) {
	if len(src) < headSize+tailSize || src[0] != 0x1f || src[1] != 0x8b || src[2] != 8 || src[3] != 0 {
		return 0, false
	}
	n = int(binary.LittleEndian.Uint32(src[len(src)-4:]))
	return n, n >= 0 // where an int has 32 bits it may be too large
}

// Gunzip decompresses src, which Claimed takes, into dst, whose length is what src claims and
// Slack. It reports false if src is anything but one whole member of that length with the right
// checksum; what dst holds then is of no use.
func (d *Decoder) Gunzip(dst, src []byte) bool {
	if len(dst) < Slack || len(src) < headSize+tailSize {
		return false
	}
	r := reader{src: src, pos: headSize, end: len(src) - tailSize}
	n := 0
	for last := false; !last; {
		r.refill()
		last = r.take(1) == 1
		ok := false
		switch r.take(2) {
		case 0:
			n, ok = r.stored(dst, n)
		case 1:
			if ok = d.fixed(); ok {
				n, ok = d.block(dst, n, &r)
			}
		case 2:
			if ok = d.dynamic(&r); ok {
				n, ok = d.block(dst, n, &r)
			}
		}
		if !ok || r.n < 0 {
			return false
		}
	}
	return n == len(dst)-Slack && r.pos-r.n>>3 == r.end &&
		crc32.ChecksumIEEE(dst[:n]) == binary.LittleEndian.Uint32(src[r.end:])
}

// A reader takes bits from src up to end, the lowest of each byte first. Behind end stands the tail
// of the member, so that eight bytes can be read wherever there is one. What is taken from behind
// end is some bits or other: Gunzip finds out in the end, since then n does not fit, or below zero
// if there were none at all.
type reader struct {
	src      []byte
	pos, end int
	buf      uint64 // the bits that come next
	n        int    // how many of them count; above may be some of the byte at pos
}

// refill makes at least 56 bits there, or those up to end.
func (r *reader) refill() {
	if r.pos <= r.end {
		r.buf |= binary.LittleEndian.Uint64(r.src[r.pos:]) << (r.n & 63)
		r.pos += (63 - r.n) >> 3
		r.n |= 56
	}
}

func (r *reader) take(n int) int {
	v := r.buf & (1<<n - 1)
	r.buf >>= n
	r.n -= n
	return int(v)
}

// stored copies a block that is not compressed.
func (r *reader) stored(dst []byte, n int) (int, bool) {
	if r.n < 0 {
		return n, false
	}
	r.pos -= r.n >> 3
	r.buf, r.n = 0, 0
	if r.pos > r.end-4 {
		return n, false
	}
	size := int(binary.LittleEndian.Uint16(r.src[r.pos:]))
	if size^int(binary.LittleEndian.Uint16(r.src[r.pos+2:])) != 0xffff {
		return n, false
	}
	r.pos += 4
	if size > r.end-r.pos || size > len(dst)-Slack-n {
		return n, false
	}
	copy(dst[n:], r.src[r.pos:r.pos+size])
	r.pos += size
	return n + size, true
}

// block decompresses what stands up to the end of a block. What the reader has is in variables
// here, which stay in registers.
func (d *Decoder) block(dst []byte, n int, r *reader) (int, bool) {
	src, pos, buf, left := r.src, r.pos, r.buf, r.n
	end := len(dst) - Slack
	for {
		if pos <= r.end {
			buf |= binary.LittleEndian.Uint64(src[pos:]) << (left & 63)
			pos += (63 - left) >> 3
			left |= 56
		}
		// 56 bits are enough for two literals and what a third code is looked up by, or for one
		// match: 15 and 5, 15 and 13.
		e := d.lit[buf&(1<<litBits-1)]
		for range 2 {
			if e&isLiteral == 0 {
				break
			}
			if n >= end {
				return n, false
			}
			dst[n] = byte(e >> 16)
			n++
			buf >>= e & 63
			left -= int(e & 63)
			e = d.lit[buf&(1<<litBits-1)]
		}
		if e&isLiteral != 0 {
			continue
		}
		if pos <= r.end {
			buf |= binary.LittleEndian.Uint64(src[pos:]) << (left & 63)
			pos += (63 - left) >> 3
			left |= 56
		}
		if e&isLink != 0 {
			buf >>= litBits
			left -= litBits
			e = d.lit[(uint64(e>>16)+buf&(1<<(e&63)-1))%litSize]
		}
		length := int(e>>16) + int(buf&(1<<(e&63)-1)>>(e>>8&15))
		buf >>= e & 63
		left -= int(e & 63)
		if e&(isLiteral|isSpecial) != 0 {
			if e&isLiteral == 0 { // the end, or no code at all
				r.pos, r.buf, r.n = pos, buf, left
				return n, e&isEnd != 0
			}
			if n >= end {
				return n, false
			}
			dst[n] = byte(e >> 16)
			n++
			continue
		}
		e = d.dist[buf&(1<<distBits-1)]
		if e&isLink != 0 {
			buf >>= distBits
			left -= distBits
			e = d.dist[(uint64(e>>16)+buf&(1<<(e&63)-1))%distSize]
		}
		back := int(e>>16) + int(buf&(1<<(e&63)-1)>>(e>>8&15))
		buf >>= e & 63
		left -= int(e & 63)
		if e&isSpecial != 0 || back > n || length > end-n || left < 0 {
			return n, false
		}
		if length <= Slack && back >= Slack {
			from, to := dst[n-back:][:Slack], dst[n:][:Slack]
			v, w := binary.LittleEndian.Uint64(from), binary.LittleEndian.Uint64(from[8:])
			binary.LittleEndian.PutUint64(to, v)
			binary.LittleEndian.PutUint64(to[8:], w)
		} else {
			repeat(dst[n-back:n+length], back)
		}
		n += length
	}
}

// repeat writes b[back:], of which each byte is the one that stands back bytes before it.
func repeat(b []byte, back int) {
	if back == 1 {
		for i := range b {
			b[i] = b[0]
		}
		return
	}
	for have := back; have < len(b); {
		have += copy(b[have:], b[:have])
	}
}

// fixed makes the tables of a block with the codes that are always the same.
func (d *Decoder) fixed() bool {
	for i := range maxLit {
		switch {
		case i < 144, i >= 280:
			d.lens[i] = 8
		case i < 256:
			d.lens[i] = 9
		default:
			d.lens[i] = 7
		}
	}
	for i := range maxDist {
		d.lens[maxLit+i] = 5
	}
	return d.build(maxLit, maxDist)
}

// order is in which the lengths of the codes for lengths stand.
var order = [...]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// dynamic reads the codes of a block.
func (d *Decoder) dynamic(r *reader) bool {
	r.refill()
	lits, dists, pres := r.take(5)+257, r.take(5)+1, r.take(4)+4
	if lits > 286 || dists > 30 {
		return false
	}
	var pre [len(order)]uint8
	for i := range pres {
		r.refill()
		pre[order[i]] = uint8(r.take(3))
	}
	if !fill(d.pre[:], pre[:], preBits, preSymbols[:]) {
		return false
	}
	for i := 0; i < lits+dists; {
		r.refill()
		e := d.pre[r.buf&(1<<preBits-1)]
		if r.take(int(e & 63)); e&isSpecial != 0 || r.n < 0 {
			return false
		}
		symbol, times, length := uint8(e>>16), 0, uint8(0)
		switch symbol {
		default:
			d.lens[i] = symbol
			i++
			continue
		case 16:
			if i == 0 {
				return false
			}
			times, length = 3+r.take(2), d.lens[i-1]
		case 17:
			times = 3 + r.take(3)
		case 18:
			times = 11 + r.take(7)
		}
		if times > lits+dists-i {
			return false
		}
		for range times {
			d.lens[i] = length
			i++
		}
	}
	return d.lens[256] > 0 && d.build(lits, dists)
}

// build makes the tables of a block from the lengths of its codes.
func (d *Decoder) build(lits, dists int) bool {
	return fill(d.lit[:], d.lens[:lits], litBits, litSymbols[:]) &&
		fill(d.dist[:], d.lens[lits:lits+dists], distBits, distSymbols[:])
}
