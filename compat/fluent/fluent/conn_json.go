// SPDX-License-Identifier: Apache-2.0

package fluent

import (
	"encoding/json"
	"net"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// jsonConn makes a connection speak JSON with the server while a spillway.Logger speaks MessagePack
// over it: each chunk that is written goes out as messages of one event, the last of which has the
// chunk's id; acks that come back are turned round.
type jsonConn struct {
	net.Conn

	// Of Write:
	scan    msgpack.Scanner
	pending []byte // a message that is not whole
	seen    int
	out     []byte

	// Of Read:
	decoder *json.Decoder
	acks    []byte
}

func newJSONConn(nc net.Conn) *jsonConn {
	return &jsonConn{Conn: nc, decoder: json.NewDecoder(nc)}
}

// Write takes all of p, and writes what is whole. After an error the connection is of no use.
func (c *jsonConn) Write(p []byte) (int, error) {
	c.pending, c.out = append(c.pending, p...), c.out[:0]
	start := 0
	for c.seen < len(c.pending) {
		n, done, err := c.scan.Scan(c.pending[c.seen:])
		if err != nil {
			return 0, err
		}
		if c.seen += n; !done {
			break
		}
		if c.out, err = appendJSONChunk(c.out, c.pending[start:c.seen]); err != nil {
			return 0, err
		}
		start = c.seen
	}
	c.pending = c.pending[:copy(c.pending, c.pending[start:])]
	c.seen -= start
	if len(c.out) > 0 {
		if _, err := c.Conn.Write(c.out); err != nil {
			return 0, err
		}
	}
	if cap(c.out) > maxPooled && len(c.pending) == 0 {
		c.out, c.pending = nil, nil
	}
	return len(p), nil
}

// Read returns acks as MessagePack.
func (c *jsonConn) Read(p []byte) (int, error) {
	if len(c.acks) == 0 {
		var a AckResp
		if err := c.decoder.Decode(&a); err != nil {
			return 0, err
		}
		var err error
		if c.acks, err = a.MarshalMsg(c.acks); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.acks)
	c.acks = c.acks[:copy(c.acks, c.acks[n:])]
	return n, nil
}

// appendJSONChunk appends the messages of a chunk.
func appendJSONChunk(out, message []byte) ([]byte, error) {
	c, err := forward.ParseChunk(message)
	if err != nil {
		return out, err
	}
	r := forward.ReadEntries(c.Entries)
	for e, ok := r.Next(); ok; {
		next, more := r.Next()
		var id []byte
		if !more {
			id = c.ID
		}
		out = appendJSONEntry(out, c.Tag, &e, id)
		e, ok = next, more
	}
	return out, r.Err()
}

// appendJSONEntry appends the message of an entry.
func appendJSONEntry(out []byte, tag string, e *forward.Entry, id []byte) []byte {
	option := []byte("{}")
	if id != nil {
		option = append(msgpack.AppendJSONString([]byte(`{"chunk":`), id), '}')
	}
	record, _, err := msgpack.AppendJSON(nil, e.Record, forward.AppendExtJSON)
	if err != nil { // it has been read as an entry before
		record = []byte("null")
	}
	return appendJSONMessage(out, tag, e.Sec, record, option)
}
