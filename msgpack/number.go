// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
)

// These functions write at buf[j:], which has room for the longest number, 24 bytes, and return
// where it ends.

// putUint writes v in decimal.
func putUint(buf []byte, j int, v uint64) int {
	if v < 10 {
		buf[j] = '0' + byte(v)
		return j + 1
	}
	end := j + digits(v)
	for k := end; ; {
		k -= 2
		if v < 100 {
			if v < 10 {
				buf[k+1] = '0' + byte(v)
			} else {
				binary.LittleEndian.PutUint16(buf[k:], pairs[v])
			}
			return end
		}
		q := v / 100
		binary.LittleEndian.PutUint16(buf[k:], pairs[v-q*100])
		v = q
	}
}

// putInt writes v in decimal.
func putInt(buf []byte, j int, v int64) int {
	if v < 0 {
		buf[j] = '-'
		return putUint(buf, j+1, -uint64(v))
	}
	return putUint(buf, j, uint64(v))
}

// digits returns how many decimal digits v has.
func digits(v uint64) int {
	n := bits.Len64(v|1) * 1233 >> 12 // log10(2) is 1233/4096, and a little less
	if v >= powers[n] {
		n++
	}
	return n
}

var powers = func() (t [20]uint64) {
	t[0] = 1
	for i := 1; i < len(t); i++ {
		t[i] = t[i-1] * 10
	}
	return t
}()

// pairs holds the two digits of 0 to 99, as a word that is stored little-endian.
var pairs = func() (t [100]uint16) {
	for i := range t {
		t[i] = uint16('0'+i/10) | uint16('0'+i%10)<<8
	}
	return t
}()

// maxShort bounds what putFloat writes by itself: decimals of 15 digits are so far apart that no
// two of them are the same float64. So if one of them reads back as f, it is the shortest that
// does, and the one that strconv would find.
const maxShort = 1e15

// maxDecimals is how many decimals putFloat tries before it leaves f to strconv.
const maxDecimals = 9

// putFloat writes f as encoding/json does, with the fewest digits that read back as f; NaN and
// infinities, which JSON has not, as null.
func putFloat(buf []byte, j int, f float64) int {
	a := math.Abs(f)
	if !(a <= math.MaxFloat64) {
		return j + copy(buf[j:], "null")
	}
	if math.Signbit(f) {
		buf[j] = '-'
		j++
	}
	if a < maxShort && (a >= 1e-6 || a == 0) {
		if m := uint64(a); float64(m) == a {
			return putUint(buf, j, m)
		}
		for k := 1; k <= maxDecimals; k++ {
			p := float64(powers[k])
			t := a * p
			if t >= maxShort {
				break
			}
			m := uint64(int64(t + 0.5))
			// If a is m/p rounded, t is m but for two roundings. The division, which is slow, then
			// decides.
			if math.Abs(t-float64(m)) <= t*0x1p-51 && float64(m)/p == a {
				q := m / powers[k]
				j = putUint(buf, j, q)
				buf[j] = '.'
				m -= q * powers[k]
				for d := j + k; d > j; d-- {
					q := m / 10
					buf[d] = '0' + byte(m-q*10)
					m = q
				}
				return j + 1 + k
			}
		}
	}
	return len(appendFloat(buf[:j], a, 64, a < 1e-6 || a >= 1e21))
}

// putFloat32 is putFloat with the fewest digits that read back as the same float32.
func putFloat32(buf []byte, j int, f float32) int {
	a := math.Abs(float64(f))
	if !(a <= math.MaxFloat32) {
		return j + copy(buf[j:], "null")
	}
	if math.Signbit(float64(f)) {
		buf[j] = '-'
		j++
	}
	return len(appendFloat(buf[:j], a, 32, a != 0 && float32(a) < 1e-6 || float32(a) >= 1e21))
}

func appendFloat(b []byte, a float64, size int, exponent bool) []byte {
	if !exponent {
		return strconv.AppendFloat(b, a, 'f', -1, size)
	}
	b = strconv.AppendFloat(b, a, 'e', -1, size)
	if n := len(b); b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' { // e-09 is e-9
		b[n-2] = b[n-1]
		b = b[:n-1]
	}
	return b
}
