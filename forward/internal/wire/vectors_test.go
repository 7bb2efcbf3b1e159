// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/hex"
	"io"
	"strings"
)

// The vectors of docs/forward.md that several tests begin with.
const (
	hexTime   = "d7 00 55ece6f8 075bcd15"
	hexEntry1 = "92 " + hexTime + " 81 a1 6d a1 31"
	hexEntry2 = "92 " + hexTime + " 81 a1 6d a1 32"
	hexID     = "b8 70386e39676d78545156 43382f6e6832776c4b4b65513d3d"
	hexChunk  = "a5 6368756e6b " + hexID
	hexAck    = "81 a3 61636b " + hexID
	hexPacked = "93 a1 74 c4 20 " + hexEntry1 + hexEntry2 + "82 a4 73697a65 02" + hexChunk
)

// unhex reads hexadecimal with spaces.
func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "\n", "", "\t", "").Replace(s))
	if err != nil {
		panic(err)
	}
	return b
}

// script is a stream that comes in pieces, one a Read.
type script struct{ pieces [][]byte }

func (s *script) Read(p []byte) (int, error) {
	for len(s.pieces) > 0 && len(s.pieces[0]) == 0 {
		s.pieces = s.pieces[1:]
	}
	if len(s.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.pieces[0])
	s.pieces[0] = s.pieces[0][n:]
	return n, nil
}

// cut splits b into pieces whose lengths how says.
func cut(b, how []byte) [][]byte {
	var pieces [][]byte
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
