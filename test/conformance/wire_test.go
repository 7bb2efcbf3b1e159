// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	crand "crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"sync/atomic"
)

// A wire is a message in hexadecimal, with names in place of what differs from one sending to the
// next:
//
//	$t        the tag, as fixstr
//	$tag      the six bytes of the tag alone
//	$1 … $9   chunk ids, as the strs of 24 bytes that most clients have
//	$chunk    the option's key "chunk" and the id $1
//	$ack      the ack of $1;  $ack2 that of $2
//	$time     the EventTime of the vectors;  $e1, $e2 two entries that have it
//	$rec      {"m":"b"}
//	$good     a packed message with both entries and the id $2, to follow another message
const (
	vectorTime = "d7 00 55ece6f8 075bcd15"
	vector1    = "92 " + vectorTime + " 81 a1 6d a1 31"
	vector2    = "92 " + vectorTime + " 81 a1 6d a1 32"
	at         = "1441588984.123456789 "
	m1, m2     = at + `{"m":"1"}`, at + `{"m":"2"}`
	mb         = at + `{"m":"b"}`
	keyChunk   = "a5 6368756e6b "
	ackOf      = "81 a3 61636b "
)

// A naming is what the names stand for in one sending.
type naming struct {
	tag string
	ids [10]string
}

var tags atomic.Uint32

// tagStart differs between runs, so that a server's output may hold those of others.
var tagStart = func() string {
	var b [2]byte
	_, _ = crand.Read(b[:]) // never fails
	return fmt.Sprintf("%c%c", 'a'+b[0]%26, 'a'+b[1]%26)
}()

func newNaming() *naming {
	n := &naming{tag: fmt.Sprintf("%s%04d", tagStart, tags.Add(1))}
	for i := range n.ids {
		n.ids[i] = newID()
	}
	return n
}

// newID is base64 of 128 random bits.
func newID() string {
	var b [16]byte
	_, _ = crand.Read(b[:]) // never fails
	return base64.StdEncoding.EncodeToString(b[:])
}

// hex fills in the names.
func (n *naming) hex(text string) string {
	good := "93 $t c4 20 $e1 $e2 81 " + keyChunk + "$2"
	var pairs []string
	pairs = append(pairs, "$good", good, "$chunk", keyChunk+"$1", "$ack2", ackOf+"$2", "$ack", ackOf+"$1")
	text = strings.NewReplacer(pairs...).Replace(text)
	pairs = []string{
		"$time", vectorTime, "$tag", fmt.Sprintf("%x", n.tag), "$t", fmt.Sprintf("a6 %x", n.tag), "$e1",
		vector1, "$e2", vector2, "$rec", "81 a1 6d a1 62",
	}
	for i := range n.ids {
		pairs = append(pairs, fmt.Sprint("$", i), fmt.Sprintf("b8 %x", n.ids[i]))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// bytes is a message as it travels.
func (n *naming) bytes(text string) []byte { return unhex(n.hex(text)) }

// unhex reads hexadecimal with spaces.
func unhex(text string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		panic(fmt.Sprintf("%v: %.200s", err, text))
	}
	return b
}

// str and bin are MessagePack in hexadecimal, in their shortest forms.
func str(s string) string { return sized(s, 0xa0, 0xd9, 0xda, 0xdb) }

func bin(s string) string { return sized(s, -1, 0xc4, 0xc5, 0xc6) }

func sized(s string, fix, b8, b16, b32 int) string {
	switch n := len(s); {
	case fix >= 0 && n < 32:
		return fmt.Sprintf("%02x %x ", fix|n, s)
	case n < 1<<8:
		return fmt.Sprintf("%02x%02x %x ", b8, n, s)
	case n < 1<<16:
		return fmt.Sprintf("%02x%04x %x ", b16, n, s)
	default:
		return fmt.Sprintf("%02x%08x %x ", b32, n, s)
	}
}
