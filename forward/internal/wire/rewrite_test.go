// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward/internal/vectors"
	"github.com/spillwaylog/spillway/msgpack"
)

// FuzzRewrite: entries that are written anew by the list that Check made of them are those that a
// second walk makes.
func FuzzRewrite(f *testing.F) {
	for _, s := range []string{
		vectors.Entry1 + vectors.Entry2, "92 00 80", "92 92 00 80 80", "92 05 c0 c0",
		"92 05 05 91 92 05 80", "92 ca 00000000 80", "92 d7 01 0000000000000000 80",
	} {
		f.Add(vectors.Unhex(s))
	}
	now := time.Unix(946684800, 5)
	f.Fuzz(func(t *testing.T, b []byte) {
		var ck Check
		var scan msgpack.Scanner
		defer ck.Drop()
		if err := ck.Run(b, NoLimit, &scan, int64(len(b))); err != nil || ck.Pos != int64(len(b)) || ck.Clean() {
			return
		}
		if out, each := ck.Rewrite(nil, b, now, nil), rewriteEach(nil, b, now, nil, 0); !bytes.Equal(out, each) {
			t.Fatalf("rewritten by the list %x, by a second walk %x", out, each)
		}
	})
}
