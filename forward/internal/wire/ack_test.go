// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"testing"
)

// FuzzClientAcks: acks are the same however they are cut.
func FuzzClientAcks(f *testing.F) {
	for _, s := range []string{hexAck, hexAck + hexAck, "80", "c0", "82 a1 78 05 a3 61636b c4 01 61", "81 a3 61636b c0", "c1", "81 a3 61636b db ffffffff"} {
		f.Add(unhex(s), []byte{0})
	}
	f.Fuzz(func(t *testing.T, b, how []byte) {
		read := func(pieces ...[]byte) string {
			var out []byte
			err := ReadAcks(&script{pieces}, func(id []byte) error {
				out = fmt.Appendf(out, "%q ", id)
				return nil
			})
			return fmt.Sprintf("%s%v", out, err)
		}
		if whole, pieces := read(b), read(cut(b, how)...); whole != pieces {
			t.Errorf("%s, in pieces %s", whole, pieces)
		}
	})
}
