// SPDX-License-Identifier: Apache-2.0

package rig

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

// AppendStr appends a str.
func AppendStr(b []byte, s string) []byte {
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

// AppendBin appends a bin.
func AppendBin(b, p []byte) []byte {
	b = binary.BigEndian.AppendUint32(append(b, 0xc6), uint32(len(p)))
	return append(b, p...)
}

// An Event is what the tests send: its name is different from all others'.
type Event struct {
	Sec, Nsec uint32 // its time
	Name      string // its key name
	Pad       string // its key pad, of any length
}

// Append appends the event as an entry: [EventTime, {"name": name, "pad": pad}].
func (e Event) Append(b []byte) []byte {
	b = append(b, 0x92, 0xd7, 0x00)
	b = binary.BigEndian.AppendUint32(b, e.Sec)
	b = binary.BigEndian.AppendUint32(b, e.Nsec)
	b = append(b, 0x82)
	b = AppendStr(AppendStr(b, "name"), e.Name)
	return AppendStr(AppendStr(b, "pad"), e.Pad)
}

// AppendEntries appends each event as an entry.
func AppendEntries(b []byte, events ...Event) []byte {
	for _, e := range events {
		b = e.Append(b)
	}
	return b
}

// Named is an event that has nothing but a name.
func Named(name string) Event { return Event{Sec: 1441588984, Nsec: 123456789, Name: name} }

// NewID is a chunk id as clients make them: base64 of 128 random bits.
func NewID() string {
	var b [16]byte
	crand.Read(b[:])
	return base64.StdEncoding.EncodeToString(b[:])
}

// Packed is a PackedForward message; with no id it asks for no ack.
func Packed(tag, id string, entries []byte) []byte {
	return PackedOptions(tag, entries, "chunk", id)
}

// PackedOptions is a PackedForward message with options as pairs of texts; an option with an empty
// value is left out.
func PackedOptions(tag string, entries []byte, options ...string) []byte {
	b := AppendBin(AppendStr([]byte{0x93}, tag), entries)
	n := 0
	var option []byte
	for i := 0; i < len(options); i += 2 {
		if options[i+1] != "" {
			option = AppendStr(AppendStr(option, options[i]), options[i+1])
			n++
		}
	}
	return append(append(b, 0x80|byte(n)), option...)
}

// ForwardMode is a Forward message: its entries are an array.
func ForwardMode(tag, id string, events ...Event) []byte {
	b := AppendStr([]byte{0x93}, tag)
	b = binary.BigEndian.AppendUint16(append(b, 0xdc), uint16(len(events)))
	b = append(AppendEntries(b, events...), 0x81)
	return AppendStr(AppendStr(b, "chunk"), id)
}

// messageMode is a Message: one event.
func messageMode(tag, id string, e Event) []byte {
	b := AppendStr([]byte{0x94}, tag)
	b = append(b, e.Append(nil)[1:]...) // the entry without its array header
	return AppendStr(AppendStr(append(b, 0x81), "chunk"), id)
}

// ReadAck reads {"ack": id}, the id being a str of fewer than 256 bytes.
func ReadAck(r *bufio.Reader) (string, error) {
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

// Gzipped is b, compressed.
func Gzipped(b []byte) []byte {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	w.Write(b) //nolint:errcheck // a bytes.Buffer takes everything
	w.Close()
	return buf.Bytes()
}
