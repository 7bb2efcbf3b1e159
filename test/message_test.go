// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	crand "crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
)

// The messages of the Forward protocol, written by hand: nothing here comes from the packages under
// test.

func appendStr(b []byte, s string) []byte {
	switch n := len(s); {
	case n < 32:
		b = append(b, 0xa0|byte(n))
	case n < 1<<8:
		b = append(b, 0xd9, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0xda), uint16(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, 0xdb), uint32(n))
	}
	return append(b, s...)
}

func appendBin(b, p []byte) []byte {
	b = binary.BigEndian.AppendUint32(append(b, 0xc6), uint32(len(p)))
	return append(b, p...)
}

// An event is what the tests send: its name is different from all others'.
type event struct {
	sec, nsec uint32
	name      string
	pad       string
}

// append appends the event as an entry: [EventTime, {"name": name, "pad": pad}].
func (e event) append(b []byte) []byte {
	b = append(b, 0x92, 0xd7, 0x00)
	b = binary.BigEndian.AppendUint32(b, e.sec)
	b = binary.BigEndian.AppendUint32(b, e.nsec)
	b = append(b, 0x82)
	b = appendStr(appendStr(b, "name"), e.name)
	return appendStr(appendStr(b, "pad"), e.pad)
}

func appendEntries(b []byte, events ...event) []byte {
	for _, e := range events {
		b = e.append(b)
	}
	return b
}

// named is an event that has nothing but a name.
func named(name string) event { return event{sec: 1441588984, nsec: 123456789, name: name} }

// newID is a chunk id as clients make them: base64 of 128 random bits.
func newID() string {
	var b [16]byte
	crand.Read(b[:])
	return base64.StdEncoding.EncodeToString(b[:])
}

// packed is a PackedForward message; with no id it asks for no ack.
func packed(tag, id string, entries []byte) []byte {
	return packedOptions(tag, entries, "chunk", id)
}

// packedOptions is a PackedForward message with options as pairs of texts; an option with an empty
// value is left out.
func packedOptions(tag string, entries []byte, options ...string) []byte {
	b := appendBin(appendStr([]byte{0x93}, tag), entries)
	n := 0
	var option []byte
	for i := 0; i < len(options); i += 2 {
		if options[i+1] != "" {
			option = appendStr(appendStr(option, options[i]), options[i+1])
			n++
		}
	}
	return append(append(b, 0x80|byte(n)), option...)
}

// forwardMode is a Forward message: its entries are an array.
func forwardMode(tag, id string, events ...event) []byte {
	b := appendStr([]byte{0x93}, tag)
	b = binary.BigEndian.AppendUint16(append(b, 0xdc), uint16(len(events)))
	b = append(appendEntries(b, events...), 0x81)
	return appendStr(appendStr(b, "chunk"), id)
}

// messageMode is a Message: one event.
func messageMode(tag, id string, e event) []byte {
	b := appendStr([]byte{0x94}, tag)
	b = append(b, e.append(nil)[1:]...) // the entry without its array header
	return appendStr(appendStr(append(b, 0x81), "chunk"), id)
}

// readAck reads {"ack": id}, the id being a str of fewer than 256 bytes.
func readAck(r *bufio.Reader) (string, error) {
	const start = "\x81\xa3ack"
	head := make([]byte, len(start)+1)
	if _, err := io.ReadFull(r, head); err != nil {
		return "", err
	}
	if string(head[:len(start)]) != start {
		return "", fmt.Errorf("no ack: % x", head)
	}
	n := 0
	switch c := head[len(start)]; {
	case c&0xe0 == 0xa0:
		n = int(c & 0x1f)
	case c == 0xd9:
		b, err := r.ReadByte()
		if err != nil {
			return "", err
		}
		n = int(b)
	default:
		return "", fmt.Errorf("no str in the ack: %#x", c)
	}
	id := make([]byte, n)
	_, err := io.ReadFull(r, id)
	return string(id), err
}

func gzipped(b []byte) []byte {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	w.Write(b) //nolint:errcheck // a bytes.Buffer takes everything
	w.Close()
	return buf.Bytes()
}
