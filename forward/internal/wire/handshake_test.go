// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/spillwaylog/spillway/forward/internal/vectors"
)

const hexHelo = "92 a4 48454c4f 83 a5 6e6f6e6365 c4 10 000102030405060708090a0b0c0d0e0f a4 61757468 c4 10 101112131415161718191a1b1c1d1e1f a9 6b656570616c697665 c3"

// FuzzLetters: what is parsed reads back as the same when it is written again.
func FuzzLetters(f *testing.F) {
	f.Add(vectors.Unhex(hexHelo))
	f.Add((&Ping{
		Host: []byte("client.example"), Salt: []byte("salt"), Digest: Digest([]byte("a")),
		User: []byte("sender"), Password: Digest([]byte("b")),
	}).Append(nil))
	f.Add((&Pong{OK: true, Host: []byte("server.example"), Digest: Digest([]byte("c"))}).Append(nil))
	f.Add(vectors.Unhex("94 a4 504f4e47 c2 05 c0"))
	f.Fuzz(func(t *testing.T, b []byte) {
		in := LetterReader{buf: slices.Clone(b), have: len(b)}
		letter, err := in.Read(bytes.NewReader(nil), MaxAnswer)
		if err != nil {
			return
		}
		var h, h2 Helo
		if h.Parse(letter) == nil {
			if err := h2.Parse(h.Append(nil)); err != nil || !bytes.Equal(h.Nonce, h2.Nonce) ||
				!bytes.Equal(h.Auth, h2.Auth) || h.Keepalive != h2.Keepalive {
				t.Errorf("%+v, then %+v: %v", h, h2, err)
			}
		}
		var p, p2 Ping
		if p.Parse(letter) == nil {
			if err := p2.Parse(p.Append(nil)); err != nil || !bytes.Equal(p.Append(nil), p2.Append(nil)) {
				t.Errorf("%+v, then %+v: %v", p, p2, err)
			}
		}
		var a, a2 Pong
		if a.Parse(letter) == nil {
			if err := a2.Parse(a.Append(nil)); err != nil || !bytes.Equal(a.Append(nil), a2.Append(nil)) ||
				a.OK != a2.OK {
				t.Errorf("%+v, then %+v: %v", a, a2, err)
			}
		}
	})
}

// TestLetterInPieces: a letter is the same however it is cut, and so is what is wrong with it.
func TestLetterInPieces(t *testing.T) {
	for _, b := range [][]byte{
		vectors.Unhex(hexHelo),
		(&Pong{OK: true, Host: []byte("s"), Digest: Digest(nil)}).Append(nil), vectors.Unhex("dc ff"),
		vectors.Unhex("c0"), vectors.Unhex("91 c1"), append(vectors.Unhex("91 da 1388"), make([]byte, 5000)...), nil,
	} {
		for _, behind := range []string{"", "rest"} {
			read := func(r io.Reader) string {
				var in LetterReader
				letter, err := in.Read(r, 4096)
				return fmt.Sprintf("%x %v", letter, err)
			}
			stream := append(slices.Clone(b), behind...)
			whole := read(bytes.NewReader(stream))
			if got := read(iotest.OneByteReader(bytes.NewReader(stream))); got != whole {
				t.Errorf("%.100s, in pieces %.100s", whole, got)
			}
			if got := read(iotest.DataErrReader(bytes.NewReader(stream))); got != whole {
				t.Errorf("%.100s, with its error %.100s", whole, got)
			}
		}
	}
}
