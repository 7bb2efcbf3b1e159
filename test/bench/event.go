// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/gzip"
)

// The messages are written from the protocol's bytes, not with the package
// that is measured.

// shape is how events travel.
type shape struct {
	name   string
	events int // in a message
	build  func(n int) (message []byte, id int)
}

const tag = "app.web"

var (
	packed  = shape{"packed x1000", 1000, func(n int) ([]byte, int) { return packedMessage(entries(n), n, "") }}
	gzipped = shape{"gzip x1000", 1000, func(n int) ([]byte,
		int,
	) {
		return packedMessage(gzipBytes(entries(n)), n, "gzip")
	}}
	forwardArray = shape{"forward x100", 100, forwardMessage}
	message      = shape{"message", 1, messages}
)

// appendRecord appends time and record of one event, about 140 bytes.
func appendRecord(b []byte, i int) []byte {
	b = append(b, 0xd7, 0)
	b = binary.BigEndian.AppendUint32(b, 1441588984)
	b = binary.BigEndian.AppendUint32(b, uint32(i%1000)*1_000_000)
	b = append(b, 0x84)
	b = str(str(b, "method"), "GET")
	r := uint32(i) * 2654435761 % 1_000_000 // what differs from line to line
	b = str(str(b, "path"), fmt.Sprintf("/api/v1/orders/%04d/items/", r%10000))
	b = append(str(b, "status"), 0xcd, 0, 200)
	return str(str(b, "message"), fmt.Sprintf("user %05d fetched the items of order %04d in %02d ms, cached", r%99991,
		r%10000, r%97))
}

func str(b []byte, s string) []byte {
	if len(s) < 32 {
		b = append(b, 0xa0|byte(len(s)))
	} else {
		b = append(b, 0xd9, byte(len(s)))
	}
	return append(b, s...)
}

func entries(n int) []byte {
	var b []byte
	for i := range n {
		b = appendRecord(append(b, 0x92), i)
	}
	return b
}

// id is a place holder of the length that ids have; each message gets its own.
const id = "AAAAAAAAAAAAAAAAAAAAAAAA"

// option appends the option map and returns where the id begins.
func option(b []byte, n int, compressed string) ([]byte, int) {
	if compressed == "" {
		b = append(b, 0x82)
	} else {
		b = append(b, 0x83)
		b = str(str(b, "compressed"), compressed)
	}
	b = append(str(b, "size"), 0xcd, byte(n>>8), byte(n))
	b = str(str(b, "chunk"), id)
	return b, len(b) - len(id)
}

func packedMessage(e []byte, n int, compressed string) ([]byte, int) {
	b := str([]byte{0x93}, tag)
	b = append(b, 0xc6)
	b = binary.BigEndian.AppendUint32(b, uint32(len(e)))
	return option(append(b, e...), n, compressed)
}

func forwardMessage(n int) ([]byte, int) {
	b := str([]byte{0x93}, tag)
	b = append(b, 0xdc, byte(n>>8), byte(n))
	return option(append(b, entries(n)...), n, "")
}

// messages is Message mode without acks.
func messages(int) ([]byte, int) {
	b := str([]byte{0x93}, tag)
	return appendRecord(b, 1), -1
}

// ackedMessage is Message mode with an ack for the event.
func ackedMessage() ([]byte, int) {
	b := str([]byte{0x94}, tag)
	return option(appendRecord(b, 1), 1, "")
}

func gzipBytes(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}
