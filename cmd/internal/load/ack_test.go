// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/spillwaylog/spillway/msgpack"
)

const anID = "p8n9gmxTQVC8/nh2wlKKeQ=="

func collect(r io.Reader) (ids []string, err error) {
	err = readAcks(r, func(some [][]byte) error {
		for _, id := range some {
			ids = append(ids, string(id))
		}
		return nil
	})
	return ids, err
}

// TestAcks reads what docs/forward.md rules 24, 25 and 29 allow, whole and byte by byte.
func TestAcks(t *testing.T) {
	plain := "\x81\xa3ack\xb8" + anID
	for _, tt := range []struct {
		name, in string
		want     []string
		err      error
	}{
		{"one", plain, []string{anID}, io.EOF},
		{"three in a row", plain + plain + plain, []string{anID, anID, anID}, io.EOF},
		{"bin", "\x81\xa3ack\xc4\x18" + anID, []string{anID}, io.EOF},
		{"other keys", "\x82\xa1x\x91\x01\xa3ack\xb8" + anID, []string{anID}, io.EOF},
		{"longer", "\x81\xa3ack\xb9" + anID + "\n", []string{anID + "\n"}, io.EOF},
		{"map16", "\xde\x00\x01\xa3ack\xb8" + anID, []string{anID}, io.EOF},
		{"half", plain + plain[:10], []string{anID}, io.EOF},
		{"nack", plain + "\x80" + plain, []string{anID}, errNoAck},
		{"nil", "\xc0", nil, errNoAck},
		{"number for an id", "\x81\xa3ack\x01", nil, errNoAck},
		{"text", "HTTP/1.1 400", nil, errNoAck},
		{"never used", "\xc1", nil, errNoAck},
		{"endless", "\x81\xa3ack\xdb\xff\xff\xff\xff", nil, errNoAck},
		{"a map of four billion", "\xdf\xff\xff\xff\xff", nil, errNoAck},
		{"deep", "\x81\xa3ack\x91\x91\x91\x91\x91\x91", nil, errNoAck},
		{"too long in small pieces", "\xdc\x03\xff" + string(make([]byte, 2000)), nil, errNoAck},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, r := range []io.Reader{
				bytes.NewReader([]byte(tt.in)),
				iotest.OneByteReader(bytes.NewReader([]byte(tt.in))),
			} {
				ids, err := collect(r)
				if !slices.Equal(ids, tt.want) || !errors.Is(err, tt.err) {
					t.Errorf("%q, %v; want %q, %v", ids, err, tt.want, tt.err)
				}
			}
		})
	}
}

// FuzzAcks feeds what a server could answer: however it is cut, the same acks and the same end come
// out, and the fast way reads nothing else than the slow one.
func FuzzAcks(f *testing.F) {
	plain := "\x81\xa3ack\xb8" + anID
	for _, s := range []string{
		"", plain, plain + plain[:7], "\x80", "\xc1", "\x81\xa3ack\xb9" + anID + "\n",
		"\x82\xa1x\xc0\xa3ack\xa0", "\x81\xa3ack\xdb\xff\xff\xff\xff",
	} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, in []byte, cut uint8) {
		whole, err := collect(bytes.NewReader(in))
		pieces, pieceErr := collect(&cutter{in, int(cut%64) + 1})
		if !slices.Equal(whole, pieces) || errors.Is(err, errNoAck) != errors.Is(pieceErr, errNoAck) {
			t.Fatalf("whole: %q, %v; in pieces: %q, %v", whole, err, pieces, pieceErr)
		}
		if id, n, err := nextAck(in); err == nil {
			var a any = id
			if slow, slowErr := ackID(in[:n]); slowErr != nil || !bytes.Equal(slow, id) {
				t.Fatalf("%q and %q, %v", a, slow, slowErr)
			}
			if k, err := msgpack.Skip(in); err != nil || k != n {
				t.Fatalf("an ack of %d bytes, and the value has %d: %v", n, k, err)
			}
		}
	})
}

// A cutter reads at most size bytes at a time.
type cutter struct {
	in   []byte
	size int
}

func (c *cutter) Read(p []byte) (int, error) {
	if len(c.in) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.size)], c.in)
	c.in = c.in[n:]
	return n, nil
}
