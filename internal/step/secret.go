// SPDX-License-Identifier: Apache-2.0

package step

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"

	"github.com/spillwaylog/spillway/msgpack"
)

// A Hash makes of values what tells equal ones from others, and nothing else of them.
type Hash struct {
	Fields []string `help:"Fields whose values are hashed." required:"true"`
	Key    string   `help:"A secret: without it anybody could try values." required:"true" secret:"true"`
}

// shortestKey is how long a key has to be: what is shorter is tried out.
const shortestKey = 16

// A hasher is the step: the first 128 bits of HMAC-SHA-256 of the text of a value, as 32
// hexadecimal digits.
type hasher struct {
	mac  hash.Hash
	sum  []byte
	text []byte
}

func newHash(s *Hash, wrong func(error, ...any)) func(*event) error {
	if len(s.Fields) == 0 {
		wrong(errors.New("hash has no fields"))
	}
	if len(s.Key) < shortestKey {
		wrong(errors.New("the key of hash has at least 16 characters"), "key")
	}
	h := &hasher{mac: hmac.New(sha256.New, []byte(s.Key))}
	return all(s.Fields, inner(wrong, "fields"), h.hash)
}

// inner puts a key before those of mistakes.
func inner(wrong func(error, ...any), key any) func(error, ...any) {
	return func(err error, more ...any) { wrong(err, append([]any{key}, more...)...) }
}

// hash is a doer. A number and its text have one hash; nil has none.
func (h *hasher) hash(e *event, value []byte) ([]byte, change) {
	t, _, err := msgpack.ReadToken(value)
	if err != nil || t.Kind == msgpack.KindNil {
		return nil, kept
	}
	text, ok := textOf(value)
	if !ok {
		if h.text, _, err = msgpack.AppendJSON(h.text[:0], value, nil); err != nil {
			return masked, changed // it cannot be said, and is not to be seen
		}
		text = h.text
	}
	h.mac.Reset()
	h.mac.Write(text)
	h.sum = h.mac.Sum(h.sum[:0])
	e.scratch = msgpack.AppendStringHeader(e.scratch[:0], 32)
	e.scratch = hex.AppendEncode(e.scratch, h.sum[:16])
	return e.scratch, changed
}
