// SPDX-License-Identifier: Apache-2.0

package fluent

import (
	"github.com/tinylib/msgp/msgp"

	"github.com/spillwaylog/spillway/msgpack"
)

// encode writes a value to a msgp.Writer.
func encode(en *msgp.Writer, m msgp.Marshaler) error {
	b, err := m.MarshalMsg(nil)
	if err != nil {
		return err
	}
	return en.Append(b...)
}

// decode reads one value from a msgp.Reader: as much as arrives, whatever its headers claim.
func decode(dc *msgp.Reader, u msgp.Unmarshaler) error {
	var scan msgpack.Scanner
	var value []byte
	for done := false; !done; {
		if _, err := dc.R.Peek(1); err != nil { // waits for something
			return err
		}
		part, err := dc.R.Peek(dc.R.Buffered())
		if err != nil {
			return err
		}
		n := 0
		if n, done, err = scan.Scan(part); err != nil {
			return err
		}
		value = append(value, part[:n]...)
		if _, err := dc.R.Skip(n); err != nil {
			return err
		}
	}
	_, err := u.UnmarshalMsg(value)
	return err
}

// size is a bound of what a value takes.
func size(m msgp.Marshaler) int {
	b, err := m.MarshalMsg(nil)
	if err != nil {
		return msgp.ArrayHeaderSize
	}
	return len(b)
}

// EncodeMsg implements msgp.Encodable.
func (z Entry) EncodeMsg(en *msgp.Writer) error { return encode(en, z) }

// DecodeMsg implements msgp.Decodable.
func (z *Entry) DecodeMsg(dc *msgp.Reader) error { return decode(dc, z) }

// Msgsize implements msgp.Sizer. It costs as much as MarshalMsg.
func (z Entry) Msgsize() int { return size(z) }

// EncodeMsg implements msgp.Encodable.
func (z *Forward) EncodeMsg(en *msgp.Writer) error { return encode(en, z) }

// DecodeMsg implements msgp.Decodable.
func (z *Forward) DecodeMsg(dc *msgp.Reader) error { return decode(dc, z) }

// Msgsize implements msgp.Sizer. It costs as much as MarshalMsg.
func (z *Forward) Msgsize() int { return size(z) }

// EncodeMsg implements msgp.Encodable.
func (z *Message) EncodeMsg(en *msgp.Writer) error { return encode(en, z) }

// DecodeMsg implements msgp.Decodable.
func (z *Message) DecodeMsg(dc *msgp.Reader) error { return decode(dc, z) }

// Msgsize implements msgp.Sizer. It costs as much as MarshalMsg.
func (z *Message) Msgsize() int { return size(z) }

// EncodeMsg implements msgp.Encodable.
func (z *MessageExt) EncodeMsg(en *msgp.Writer) error { return encode(en, z) }

// DecodeMsg implements msgp.Decodable.
func (z *MessageExt) DecodeMsg(dc *msgp.Reader) error { return decode(dc, z) }

// Msgsize implements msgp.Sizer. It costs as much as MarshalMsg.
func (z *MessageExt) Msgsize() int { return size(z) }

// EncodeMsg implements msgp.Encodable.
func (z AckResp) EncodeMsg(en *msgp.Writer) error { return encode(en, z) }

// DecodeMsg implements msgp.Decodable.
func (z *AckResp) DecodeMsg(dc *msgp.Reader) error { return decode(dc, z) }

// Msgsize implements msgp.Sizer.
func (z AckResp) Msgsize() int { return size(z) }

// EncodeMsg implements msgp.Encodable.
func (z TestMessage) EncodeMsg(en *msgp.Writer) error { return encode(en, z) }

// DecodeMsg implements msgp.Decodable.
func (z *TestMessage) DecodeMsg(dc *msgp.Reader) error { return decode(dc, z) }

// Msgsize implements msgp.Sizer.
func (z TestMessage) Msgsize() int { return size(z) }
