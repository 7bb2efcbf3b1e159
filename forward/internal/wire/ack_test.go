// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"testing"

	"github.com/spillwaylog/spillway/forward/internal/vectors"
)

// FuzzClientAcks: acks are the same however they are cut.
func FuzzClientAcks(f *testing.F) {
	for _, s := range []string{
		vectors.Ack, vectors.Ack + vectors.Ack, "80", "c0", "82 a1 78 05 a3 61636b c4 01 61",
		"81 a3 61636b c0", "c1", "81 a3 61636b db ffffffff",
	} {
		f.Add(vectors.Unhex(s), []byte{0})
	}
	f.Fuzz(func(t *testing.T, b, how []byte) {
		read := func(pieces ...[]byte) string {
			var out []byte
			stream := vectors.Pieces(pieces)
			err := ReadAcks(&stream, func(id []byte) error {
				out = fmt.Appendf(out, "%q ", id)
				return nil
			})
			return fmt.Sprintf("%s%v", out, err)
		}
		if whole, pieces := read(b), read(vectors.Cut(b, how)...); whole != pieces {
			t.Errorf("%s, in pieces %s", whole, pieces)
		}
	})
}
