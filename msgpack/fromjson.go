// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// AppendFromJSON reads one JSON value from dec and appends it as MessagePack. Keys keep their
// order, and a repeated key is written again. With dec.UseNumber, which the caller has set,
// integers are exact as far as int64 and uint64 reach; any other number becomes a float64, and one
// that is beyond that, like 1e999, a str with its text. "-0" is the float -0.
//
// The error is io.EOF if there is no value, ErrDepth, wrapped, if arrays and objects nest deeper
// than DefaultDepth, and otherwise that of dec. Then out is dst. An error other than io.EOF leaves
// dec somewhere inside the value.
func AppendFromJSON(dst []byte, dec *json.Decoder) (out []byte, err error) {
	tok, err := dec.Token()
	if err != nil {
		return dst, err
	}
	out, err = appendToken(dst, dec, tok, 0)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return dst, err
	}
	return out, nil
}

func appendToken(b []byte, dec *json.Decoder, tok json.Token, depth int) ([]byte, error) {
	switch v := tok.(type) {
	case nil:
		return AppendNil(b), nil
	case bool:
		return AppendBool(b, v), nil
	case string:
		return AppendString(b, v), nil
	case json.Number:
		return appendNumber(b, string(v)), nil
	case float64:
		return AppendFloat64(b, v), nil
	case json.Delim:
		return appendContainer(b, dec, v, depth)
	}
	return b, fmt.Errorf("%w: JSON token %v", ErrKind, tok)
}

// appendContainer writes the shortest header only once it knows the count, and moves what it wrote
// for that. Content moves once a level at most, and only if the container has more than 15
// elements.
func appendContainer(b []byte, dec *json.Decoder, open json.Delim, depth int) ([]byte, error) {
	if depth == DefaultDepth {
		return b, errDepth()
	}
	start := len(b)
	b = append(b, 0)
	values := 0
	for {
		tok, err := dec.Token()
		if err != nil {
			return b, err
		}
		if d, ok := tok.(json.Delim); ok && (d == ']' || d == '}') {
			break
		}
		if b, err = appendToken(b, dec, tok, depth+1); err != nil {
			return b, err
		}
		values++
	}
	var h [5]byte
	if open == '{' {
		return prefixed(b, start, 1, AppendMapHeader(h[:0], values/2)), nil
	}
	return prefixed(b, start, 1, AppendArrayHeader(h[:0], values)), nil
}

func appendNumber(b []byte, s string) []byte {
	if s != "-0" {
		if v, err := strconv.ParseInt(s, 10, 64); err == nil {
			return AppendInt(b, v)
		}
		if v, err := strconv.ParseUint(s, 10, 64); err == nil {
			return AppendUint(b, v)
		}
	}
	return appendDecimal(b, s)
}

func appendDecimal(b []byte, s string) []byte {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return AppendString(b, s)
	}
	return AppendFloat64(b, f)
}

// prefixed writes a header at start, where there is room of some bytes for it, and moves what
// follows if that is not enough, or too much.
func prefixed(b []byte, start, room int, header []byte) []byte {
	if more := len(header) - room; more > 0 {
		b = append(b, header[:more]...) // any bytes
		copy(b[start+len(header):], b[start+room:])
	} else if more < 0 {
		copy(b[start+len(header):], b[start+room:])
		b = b[:len(b)+more]
	}
	copy(b[start:], header)
	return b
}
