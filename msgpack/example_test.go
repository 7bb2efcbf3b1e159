// SPDX-License-Identifier: Apache-2.0

package msgpack_test

import (
	"fmt"

	"github.com/spillwaylog/spillway/msgpack"
)

func Example() {
	b := msgpack.AppendMapHeader(nil, 2)
	b = msgpack.AppendString(b, "message")
	b = msgpack.AppendString(b, "order placed")
	b = msgpack.AppendString(b, "id")
	b = msgpack.AppendInt(b, 42)

	out, n, err := msgpack.AppendJSON(nil, b, nil)
	fmt.Printf("%d bytes: %s, %v\n", n, out, err)
	// Output: 26 bytes: {"message":"order placed","id":42}, <nil>
}

// Bytes arrive in pieces that end anywhere; the values in them are found without looking at a byte
// twice.
func ExampleScanner() {
	pieces := [][]byte{{0x93, 0x01}, {0xa5, 'h', 'e'}, {'l', 'l', 'o', 0xc3, 0x90}}
	var s msgpack.Scanner
	for _, piece := range pieces {
		for len(piece) > 0 {
			n, done, err := s.Scan(piece)
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Printf("%x done: %v\n", piece[:n], done)
			piece = piece[n:]
		}
	}
	// Output:
	// 9301 done: false
	// a56865 done: false
	// 6c6c6fc3 done: true
	// 90 done: true
}

// A line has a time and a tag of its own; the record's time stays, under another name.
func ExampleAppendJSONPairs() {
	record := msgpack.AppendMapHeader(nil, 2)
	record = msgpack.AppendString(msgpack.AppendString(record, "time"), "noon")
	record = msgpack.AppendFloat64(msgpack.AppendString(record, "load"), 0.25)

	line := []byte(`{"time":"2026-11-21T02:03:04Z","tag":"app"`)
	head := len(line)
	line, _, err := msgpack.AppendJSONPairs(append(line, ','), record, []string{"time", "tag"}, nil)
	if err != nil || len(line) == head+1 { // no members, no comma
		line = line[:head]
	}
	fmt.Printf("%s}\n", line)
	// Output: {"time":"2026-11-21T02:03:04Z","tag":"app","time_":"noon","load":0.25}
}
