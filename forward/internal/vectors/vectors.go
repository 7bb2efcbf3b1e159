// SPDX-License-Identifier: Apache-2.0

// Package vectors is what the tests of forward and of forward/internal/wire begin with: messages of
// docs/forward.md in hexadecimal, and ways to hand them over.
package vectors

import (
	"encoding/hex"
	"io"
	"strings"
)

// Messages of docs/forward.md and parts of them; see Unhex.
const (
	Time   = "d7 00 55ece6f8 075bcd15"
	Entry1 = "92 " + Time + " 81 a1 6d a1 31"
	Entry2 = "92 " + Time + " 81 a1 6d a1 32"
	ID     = "b8 70386e39676d78545156 43382f6e6832776c4b4b65513d3d"
	Chunk  = "a5 6368756e6b " + ID
	Ack    = "81 a3 61636b " + ID
	Packed = "93 a1 74 c4 20 " + Entry1 + Entry2 + "82 a4 73697a65 02" + Chunk
)

// Record is a record of all that a walk steps into.
const Record = "84 a1 6d a1 62 a1 6e 93 01 02 d9 03 616263 a1 6f 82 05 c4 02 0102 06 c7 02 05 0102 a1 70 de 0001 a1 71 cb 0000000000000000"

// Times are the times that an entry may have, by what is usual or not about each.
var Times = map[string]string{
	"usual": Time, "uint32": "ce 55ece6f8", "ext8": "c7 08 00 55ece6f8 075bcd15", "float": "cb 41d57b39be07e6b7",
	"zero":           "00",
	"empty metadata": "92 " + Time + " 80", "metadata": "92 " + Time + " 82 a1 6d 92 a1 78 05 a1 6e d9 02 6161",
	"zero and metadata": "92 00 81 a1 6d 91 05",
}

// Unhex reads hexadecimal with spaces.
func Unhex(s string) []byte {
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "\n", "", "\t", "").Replace(s))
	if err != nil {
		panic(err)
	}
	return b
}

// Poison is the byte that MessagePack never uses.
const Poison = 0xc1

// Spoil overwrites bytes that were walked over: a second walk over them fails.
func Spoil(b []byte) {
	for i := range b {
		b[i] = Poison
	}
}

// Pieces is a stream that comes in pieces, one a Read.
type Pieces [][]byte

// Cut cuts b into pieces whose lengths how says.
func Cut(b, how []byte) Pieces {
	var pieces Pieces
	for i := 0; len(b) > 0; i++ {
		n := len(b)
		if len(how) > 0 {
			n = min(n, 1+int(how[i%len(how)]))
		}
		pieces = append(pieces, b[:n])
		b = b[n:]
	}
	return pieces
}

// Read implements io.Reader.
func (s *Pieces) Read(p []byte) (int, error) {
	for len(*s) > 0 && len((*s)[0]) == 0 {
		*s = (*s)[1:]
	}
	if len(*s) == 0 {
		return 0, io.EOF
	}
	n := copy(p, (*s)[0])
	(*s)[0] = (*s)[0][n:]
	return n, nil
}
