// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"io"

	"github.com/spillwaylog/spillway/msgpack"
)

var (
	errNack = errors.New("the server answered without an ack")
	errHelo = errors.New("the server wants a shared key, and none is given: " +
		"shared_key_file= or shared_key_env= in the URL, or a Login in a program")
)

// maxAck is the largest ack that is read.
const maxAck = MaxID + 256

// ReadAcks calls take for every ack that r has. Its error is that of r or of take, or says that
// something is no ack.
func ReadAcks(r io.Reader, take func(id []byte) error) error {
	buf := make([]byte, 512)
	var scan msgpack.Scanner
	limits := msgpack.Limits{Depth: 8, Length: maxAck, Count: maxAck}
	scan.Reset(limits)
	start, seen, end := 0, 0, 0
	for {
		if end == len(buf) {
			if start > 0 {
				end = copy(buf, buf[start:end])
				seen, start = seen-start, 0
			} else if len(buf) >= 2*maxAck {
				return fmt.Errorf("an ack of more than %d bytes", maxAck)
			} else {
				buf = append(buf, make([]byte, len(buf))...)
			}
		}
		n, err := r.Read(buf[end:])
		end += n
		for seen < end {
			k, done, err := scan.Scan(buf[seen:end])
			seen += k
			if err != nil {
				return fmt.Errorf("no ack: %w", err)
			}
			if !done {
				break
			}
			id, err := parseAck(buf[start:seen])
			if err != nil {
				return err
			}
			if err := take(id); err != nil {
				return err
			}
			start = seen
			scan.Reset(limits)
		}
		if start == end {
			start, seen, end = 0, 0, 0
		}
		if err != nil {
			return err
		}
	}
}

// parseAck returns the id that a complete value acks.
func parseAck(b []byte) ([]byte, error) {
	t, at, err := msgpack.ReadToken(b)
	if err != nil || t.Kind != msgpack.KindMap {
		if _, _, err := Opens(b, "HELO"); err == nil {
			return nil, errHelo
		}
		return nil, fmt.Errorf("%w: no map", errNack)
	}
	for range t.Len {
		key, _, _, err := msgpack.ReadBytes(b[at:])
		if err != nil {
			key = nil
		}
		n, err := msgpack.Skip(b[at:])
		if err != nil {
			return nil, err
		}
		at += n
		if string(key) == "ack" {
			if id, _, _, err := msgpack.ReadBytes(b[at:]); err == nil {
				return id, nil
			}
			return nil, fmt.Errorf("%w: not a string", errNack)
		}
		if n, err = msgpack.Skip(b[at:]); err != nil {
			return nil, err
		}
		at += n
	}
	return nil, fmt.Errorf("%w: a map without it", errNack)
}

// AppendAck appends the ack of an id, in the way the connection speaks.
func AppendAck(dst, id []byte, bin, json bool) []byte {
	if json {
		dst = append(dst, `{"ack":`...)
		dst = msgpack.AppendJSONString(dst, id)
		return append(dst, "}\n"...)
	}
	dst = append(dst, CodeMap0|1, 0xa3, 'a', 'c', 'k')
	return appendID(dst, id, bin)
}
