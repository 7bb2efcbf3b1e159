// SPDX-License-Identifier: Apache-2.0

package inflate

import "math/bits"

// How a table is organised. It is looked into by the bits that come next. Codes that are longer
// than those have tables of their own behind it, to which a link leads.
//
//	31       30-16                15       14    13       11-8               5-0
//	literal  the byte                                                        bits of the code
//	         base of the length                           bits of the code   bits of code and extra
//	         where a table begins  special  link                             bits that it is looked into by
//	                               special        the end                    bits of the code
//	                               special                                   no code, or none that may come
const (
	isLiteral = 1 << 31
	isSpecial = 1 << 15
	isLink    = 1 << 14
	isEnd     = 1 << 13
)

// Bits that tables are indexed by, and room for the tables behind them: complete codes of so many
// symbols and at most 15 bits need 2,342 entries, 402 and 128.
const (
	litBits, litSize   = 11, 4096
	distBits, distSize = 8, 512
	preBits, preSize   = 7, 128
	maxLit, maxDist    = 288, 32
	maxBits            = 15
)

// What the entry of a symbol has but for the bits of its code: its base, and extra bits in the low
// byte.
var (
	litSymbols  [maxLit]uint32
	distSymbols [maxDist]uint32
	preSymbols  [19]uint32
)

func init() {
	for i := range 256 {
		litSymbols[i] = isLiteral | uint32(i)<<16
	}
	litSymbols[256] = isSpecial | isEnd
	base := uint32(3)
	for i := range 28 {
		extra := uint32(max(0, i/4-1))
		litSymbols[257+i] = base<<16 | extra
		base += 1 << extra
	}
	litSymbols[285] = 258 << 16
	litSymbols[286], litSymbols[287] = isSpecial, isSpecial // have codes, which never come
	base = 1
	for i := range 30 {
		extra := uint32(max(0, i/2-1))
		distSymbols[i] = base<<16 | extra
		base += 1 << extra
	}
	distSymbols[30], distSymbols[31] = isSpecial, isSpecial
	for i := range preSymbols {
		preSymbols[i] = uint32(i) << 16
	}
}

// fill makes a table, which is looked into by so many bits, of codes with these lengths. It reports
// false where they make no complete code, but for one or no distance, which some blocks have.
func fill(entries []uint32, lens []uint8, width int, symbols []uint32) bool {
	var count, next [maxBits + 1]int
	for _, n := range lens {
		count[n&maxBits]++
	}
	used := len(lens) - count[0]
	main := entries[:1<<width]
	if used <= 1 && len(symbols) == maxDist {
		return fillOne(main, lens, symbols)
	}
	left := 1
	for n := 1; n <= maxBits; n++ {
		if left = 2*left - count[n]; left < 0 {
			return false
		}
		if n < maxBits {
			next[n+1] = next[n] + count[n]
		}
	}
	if left != 0 {
		return false
	}
	var sorted [maxLit]uint16 // symbols by the lengths of their codes
	for s, n := range lens {
		if n > 0 {
			sorted[next[n&maxBits]] = uint16(s)
			next[n&maxBits]++
		}
	}
	clear(main)
	end, code, last := len(main), uint32(0), 0
	for _, s := range sorted[:used] {
		n := int(lens[s])
		code <<= n - last
		last = n
		at := int(bits.Reverse32(code) >> (32 - n))
		code++
		if n <= width {
			e := entryOf(symbols[s], uint32(n))
			for i := at; i < len(main); i += 1 << n {
				main[i] = e
			}
			count[n]--
			continue
		}
		link := &main[at&(len(main)-1)]
		if *link == 0 {
			// As many bits as the longest code with this prefix has behind it: codes with one
			// prefix follow one another.
			sub := n - width
			for have := count[n]; have < 1<<sub && width+sub < maxBits; {
				sub++
				have = 2*have + count[width+sub]
			}
			*link = isSpecial | isLink | uint32(end)<<16 | uint32(sub)
			if end += 1 << sub; end > len(entries) {
				return false
			}
		}
		count[n]--
		behind := entries[*link>>16:][:1<<(*link&63)]
		e := entryOf(symbols[s], uint32(n-width))
		for i := at >> width; i < len(behind); i += 1 << (n - width) {
			behind[i] = e
		}
	}
	return true
}

// fillOne makes the table of one distance, whose code is a bit of 0, or of none.
func fillOne(main []uint32, lens []uint8, symbols []uint32) bool {
	for i := range main {
		main[i] = isSpecial
	}
	for s, n := range lens {
		if n > 1 {
			return false
		}
		for i := 0; n == 1 && i < len(main); i += 2 {
			main[i] = entryOf(symbols[s], 1)
		}
	}
	return true
}

// entryOf is the entry of a symbol whose code has n bits, or n that are still to be taken.
func entryOf(symbol, n uint32) uint32 {
	if symbol&(isLiteral|isSpecial) != 0 {
		return symbol | n
	}
	return symbol + (n<<8 | n)
}
