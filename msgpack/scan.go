// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"fmt"
	"math"
)

// How this file is organised. A value is a tree, but to find its end one needs only, for each array
// or map that is open, how many values are still to come in it: that is the stack of frames, with
// the innermost one, rem, kept apart. walk is the fast loop over whole tokens. What is rare it
// leaves to step: a header that is split between two pieces, containers that are large or deep,
// limits so low that even short tokens can break them, and whatever is wrong. So each rule is
// written once, in open.

// inlineFrames is the nesting that needs no heap: a Forward message whose records nest four deep.
const inlineFrames = 8

// A Scanner finds the end of one value in bytes that arrive in pieces, and checks it on the way:
// nesting, lengths and counts against its Limits, and the byte that MessagePack never uses. It
// remembers to the byte where it is, so that no byte is looked at twice, and steps over the payload
// of a str, bin or ext in constant time.
//
// The zero value has the default limits. A Scanner takes about 100 bytes and allocates only for a
// value that nests deeper than 8: 4 bytes a level, up to the limit. It must not be copied while a
// value is half read.
type Scanner struct {
	err  error    // what Scan answers until Reset
	more []uint32 // frames, once inline is too small

	skip uint64 // bytes of payload still to step over
	// Frames: values still to come in each open container but the innermost, outermost first.
	inline [inlineFrames]uint32
	rem    uint32 // values still to come in the innermost one, after the one that skip or need belong to

	length, count uint32 // limits, resolved
	depth         uint16 // 0: not yet resolved
	sp            uint16 // frames in use

	busy bool   // a value is half read
	head byte   // of a header that is split: its first byte,
	need uint8  // how many bytes of its length or count are still to come,
	acc  uint32 // and what the others say
}

// Reset forgets the value that is half read, and any error, and sets limits for what comes.
func (s *Scanner) Reset(l Limits) {
	*s = Scanner{}
	s.depth, s.length, s.count = l.resolved()
}

// Partial tells whether a value has begun and not ended.
func (s *Scanner) Partial() bool { return s.busy }

// Scan goes on with the value where the last call stopped; b begins with the next byte. The first n
// bytes of b belong to the value. When done, the value ends there, and the next Scan begins another
// one. Otherwise, and without an error, n is len(b) and more is needed.
//
// After an error, which wraps ErrInvalid, ErrDepth, ErrLength or ErrCount, the Scanner stays with
// it until Reset, and n reaches to the end of the header that is wrong. How the bytes are cut into
// pieces changes neither where a value ends nor its error.
func (s *Scanner) Scan(b []byte) (n int, done bool, err error) {
	if s.busy {
		if s.skip != 0 || s.need != 0 {
			if n, err = s.resume(b); err != nil || s.skip != 0 || s.need != 0 {
				return n, false, err
			}
		}
		return s.walk(b, n)
	}
	if s.err != nil || len(b) == 0 {
		return 0, false, s.err
	}
	if s.depth == 0 {
		s.depth, s.length, s.count = Limits{}.resolved()
	}
	s.busy, s.rem = true, 1
	return s.walk(b, 0)
}

// walk goes on at a token, b[i:], or where all that is left of the value is to close its
// containers.
func (s *Scanner) walk(b []byte, i int) (n int, done bool, err error) {
	if s.length < 1<<8-1 || s.count < 1<<4-1 {
		return s.crawl(b, i)
	}
	frames := s.frames()
	rem, sp := s.rem, int(s.sp)
	for {
		if rem == 0 {
			if sp != 0 {
				sp--
				rem = frames[sp]
				continue
			}
			if i > len(b) {
				break
			}
			s.busy, s.rem, s.sp = false, 0, 0
			return i, true, nil
		}
		if i >= len(b) {
			break
		}
		c := b[i]
		if c&0xe0 == codeFixStr {
			i += int(c&0x1f) + 1
			rem--
			continue
		}
		e := steps[c]
		if e < 0x80 {
			i += int(e)
			rem--
			continue
		}
		if e < 0xc0 && sp < len(frames) {
			i++
			rem--
			if e &= 0x3f; e != 0 {
				frames[sp] = rem
				sp++
				rem = uint32(e)
			}
			continue
		}
		if e&0xf7 == 0xc1 && len(b)-i > 1 {
			i += 2 + int(b[i+1]) + int(e>>3&1)
			rem--
			continue
		}
		s.rem, s.sp = rem, uint16(sp)
		if i, err = s.step(b, i); err != nil {
			return i, false, err
		}
		if s.need != 0 || s.skip != 0 {
			return i, false, nil
		}
		frames = s.frames()
		rem, sp = s.rem, int(s.sp)
	}
	s.rem, s.sp = rem, uint16(sp)
	if i > len(b) {
		s.skip = uint64(i - len(b))
		i = len(b)
	}
	return i, false, nil
}

// crawl is walk where limits are so low that any token can break them.
func (s *Scanner) crawl(b []byte, i int) (n int, done bool, err error) {
	for err == nil && s.skip == 0 && s.need == 0 {
		for s.rem == 0 {
			if s.sp == 0 {
				s.busy = false
				return i, true, nil
			}
			s.sp--
			s.rem = s.frames()[s.sp]
		}
		if i == len(b) {
			break
		}
		i, err = s.step(b, i)
	}
	return i, false, err
}

// frames is the room for frames that there is without allocating, and not beyond the limit.
func (s *Scanner) frames() []uint32 {
	f := s.inline[:]
	if s.more != nil {
		f = s.more
	}
	return f[:min(len(f), int(s.depth))]
}

// step passes the token at b[i], or as much of it as there is.
func (s *Scanner) step(b []byte, i int) (int, error) {
	s.head = b[i]
	s.need = lengthBytes(s.head)
	s.acc = 0
	n, err := s.resume(b[i+1:])
	return i + 1 + n, err
}

// resume goes on in the middle of a header or of a payload.
func (s *Scanner) resume(b []byte) (n int, err error) {
	if s.skip == 0 {
		for s.need > 0 {
			if n == len(b) {
				return n, nil
			}
			s.acc = s.acc<<8 | uint32(b[n])
			s.need--
			n++
		}
		if err := s.open(s.head, s.acc); err != nil {
			s.err, s.busy = err, false
			return n, err
		}
	}
	k := min(s.skip, uint64(len(b)-n))
	s.skip -= k
	return n + int(k), nil
}

// open takes in a complete header: its first byte, and the length or count that followed, if one
// did.
func (s *Scanner) open(c byte, n uint32) error {
	s.rem--
	switch {
	case c < codeFixMap || c >= 0xe0: // the integer itself
		return nil
	case c < codeFixArray:
		return s.push(KindMap, uint32(c&0x0f))
	case c < codeFixStr:
		return s.push(KindArray, uint32(c&0x0f))
	case c < codeNil:
		return s.pass(KindStr, uint32(c&0x1f))
	}
	switch c {
	case codeInvalid:
		return ErrInvalid
	case codeStr8, codeStr16, codeStr32:
		return s.pass(KindStr, n)
	case codeBin8, codeBin16, codeBin32:
		return s.pass(KindBin, n)
	case codeExt8, codeExt16, codeExt32:
		return s.pass(KindExt, n)
	case codeFixExt1, codeFixExt2, codeFixExt4, codeFixExt8, codeFixExt16:
		return s.pass(KindExt, 1<<(c-codeFixExt1))
	case codeArray16, codeArray32:
		return s.push(KindArray, n)
	case codeMap16, codeMap32:
		return s.push(KindMap, n)
	}
	s.skip = uint64(steps[c] - 1) // nil, bool, number
	return nil
}

// pass has the payload of a str, bin or ext stepped over.
func (s *Scanner) pass(k Kind, n uint32) error {
	if n > s.length {
		return fmt.Errorf("%w: %v of %d bytes, limit %d", ErrLength, k, n, s.length)
	}
	s.skip = uint64(n)
	if k == KindExt {
		s.skip++ // its type
	}
	return nil
}

// push enters an array or a map.
func (s *Scanner) push(k Kind, n uint32) error {
	if n > s.count {
		return fmt.Errorf("%w: %v of %d, limit %d", ErrCount, k, n, s.count)
	}
	if s.sp >= s.depth {
		return fmt.Errorf("%w: limit %d", ErrDepth, s.depth)
	}
	if n == 0 {
		return nil
	}
	f := s.frames()
	if int(s.sp) == len(f) {
		s.more = make([]uint32, min(2*len(f), int(s.depth)))
		copy(s.more, f)
		f = s.more
	}
	f[s.sp] = s.rem
	s.sp++
	s.rem = n
	if k == KindMap {
		s.rem = 2 * n // a count is at most 1<<31 - 1
	}
	return nil
}

// lengthBytes is how many bytes of length or count follow c.
func lengthBytes(c byte) uint8 {
	switch c {
	case codeArray16, codeMap16:
		return 2
	case codeArray32, codeMap32:
		return 4
	}
	if e := steps[c]; e > 0xc0 && e < 0xe0 {
		return e & 7
	}
	return 0
}

// Skip returns the length of the value at the start of b, checked against the default limits. The
// error is one of those of Scanner.Scan, or ErrShort if b ends before the value does; n then tells
// how far it is sound.
func Skip(b []byte) (n int, err error) { return Limits{}.Skip(b) }

// Skip is the function Skip with other limits.
func (l Limits) Skip(b []byte) (n int, err error) {
	depth, length, count := l.resolved()
	if length >= math.MaxUint16 && count >= math.MaxUint16 {
		if n := skipShort(b, int(depth)); n != 0 {
			return n, nil
		}
	}
	s := Scanner{depth: depth, length: length, count: count}
	n, done, err := s.Scan(b)
	if err == nil && !done {
		err = ErrShort
	}
	return n, err
}

// skipShort returns the length of a whole value that has at most depth arrays and maps, and no
// length or count above 65,535. 0: it is another, or wrong, or cut off. It keeps no frames: how
// many values are left in all is enough to find the end, and no value nests deeper than the number
// of arrays and maps in it.
func skipShort(b []byte, depth int) (n int) {
	for left := 1; left > 0; left-- {
		if n >= len(b) {
			return 0
		}
		c := b[n]
		if c&0xe0 == codeFixStr {
			n += int(c&0x1f) + 1
			continue
		}
		e := steps[c]
		switch {
		case e < 0x80:
			n += int(e)
		case e&0xf7 == 0xc1 && len(b)-n > 1:
			n += 2 + int(b[n+1]) + int(e>>3&1)
		case e < 0xc0 && depth > 0:
			n++
			left += int(e & 0x3f)
			depth--
		case len(b)-n < 3:
			return 0
		case e&0xf7 == 0xc2:
			n += 3 + int(b[n+1])<<8 + int(b[n+2]) + int(e>>3&1)
		case c&^2 == codeArray16 && depth > 0: // or codeMap16
			left += (int(b[n+1])<<8 + int(b[n+2])) << (c >> 1 & 1)
			n += 3
			depth--
		default:
			return 0
		}
	}
	if n > len(b) {
		return 0
	}
	return n
}
