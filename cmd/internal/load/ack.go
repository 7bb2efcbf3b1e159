// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/spillwaylog/spillway/msgpack"
)

// ackHead is how most servers write the ack of an id of 24 characters.
var ackHead = []byte("\x81\xa3ack\xb8")

// maxAck is the longest ack that is read.
const maxAck = 1 << 10

var errNoAck = errors.New("what the server answered is no ack")

// readAcks reads until the end of r, and calls take with the ids of the acks that each read
// completed. They may be split over reads, and many may come in one (docs/forward.md rule 29).
func readAcks(r io.Reader, take func(ids [][]byte) error) error {
	buf := make([]byte, 32<<10)
	var ids [][]byte
	have := 0
	for {
		n, readErr := r.Read(buf[have:])
		have += n
		at := 0
		ids = ids[:0]
		var err error
		for at < have {
			id, n, ackErr := nextAck(buf[at:have])
			if errors.Is(ackErr, io.ErrUnexpectedEOF) {
				break
			}
			if err = ackErr; err != nil {
				break
			}
			ids = append(ids, id)
			at += n
		}
		if len(ids) > 0 {
			if takeErr := take(ids); takeErr != nil {
				return takeErr
			}
		}
		if err != nil {
			return err
		}
		have = copy(buf, buf[at:have])
		if readErr != nil {
			return readErr
		}
	}
}

// nextAck returns the id of the ack at the beginning of b, and how long the ack is;
// io.ErrUnexpectedEOF if it is not all there.
func nextAck(b []byte) (id []byte, n int, err error) {
	if whole := len(ackHead) + idChars; len(b) >= whole && bytes.HasPrefix(b, ackHead) {
		return b[len(ackHead):whole], whole, nil
	}
	var scan msgpack.Scanner
	scan.Reset(msgpack.Limits{Depth: 4, Length: maxAck, Count: maxAck})
	n, done, err := scan.Scan(b[:min(len(b), maxAck)])
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", errNoAck, err)
	}
	if !done {
		if len(b) >= maxAck {
			return nil, 0, fmt.Errorf("%w: longer than %d bytes", errNoAck, maxAck)
		}
		return nil, 0, io.ErrUnexpectedEOF
	}
	id, err = ackID(b[:n])
	return id, n, err
}

// ackID returns the id in a complete value.
func ackID(b []byte) ([]byte, error) {
	t, at, err := msgpack.ReadToken(b)
	if err != nil || t.Kind != msgpack.KindMap {
		return nil, fmt.Errorf("%w: no map", errNoAck)
	}
	for range t.Len {
		key, _, _, keyErr := msgpack.ReadBytes(b[at:])
		n, err := msgpack.Skip(b[at:])
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errNoAck, err)
		}
		at += n
		if keyErr == nil && string(key) == "ack" {
			if id, _, _, err := msgpack.ReadBytes(b[at:]); err == nil {
				return id, nil
			}
			return nil, fmt.Errorf("%w: not a string", errNoAck)
		}
		if n, err = msgpack.Skip(b[at:]); err != nil {
			return nil, fmt.Errorf("%w: %w", errNoAck, err)
		}
		at += n
	}
	return nil, fmt.Errorf("%w: a map without it", errNoAck)
}
