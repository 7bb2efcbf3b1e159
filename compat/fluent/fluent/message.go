// SPDX-License-Identifier: Apache-2.0

package fluent

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/tinylib/msgp/msgp"

	"github.com/spillwaylog/spillway/msgpack"
)

// Each type below has the five methods that msgp generates, so that code which calls them compiles.
// They are written by hand, in pairs: bytes appended and bytes read; reader and writer go through
// them. Claimed lengths allocate nothing.

// Entry is one event without its tag: [time, record].
type Entry struct {
	Time   int64       `msg:"time"`
	Record interface{} `msg:"record"`
}

// Forward is a message of many events: [tag, [entries], option].
type Forward struct {
	Tag     string  `msg:"tag"`
	Entries []Entry `msg:"entries"`
	Option  map[string]string
}

// Message is a message of one event: [tag, time, record, option].
type Message struct {
	Tag    string      `msg:"tag"`
	Time   int64       `msg:"time"`
	Record interface{} `msg:"record"`
	Option map[string]string
}

// MessageExt is a Message whose time has nanoseconds.
type MessageExt struct {
	Tag    string      `msg:"tag"`
	Time   EventTime   `msg:"time,extension"`
	Record interface{} `msg:"record"`
	Option map[string]string
}

// AckResp is a server's answer to a message whose option has a chunk id.
type AckResp struct {
	Ack string `json:"ack" msg:"ack"`
}

// TestMessage is a record that the original's tests use.
type TestMessage struct {
	Foo  string `msg:"foo" json:"foo,omitempty"`
	Hoge string `msg:"hoge" json:"hoge,omitempty"`
}

// MessageChunk is a message in JSON.
type MessageChunk struct {
	message Message
}

// MarshalJSON returns the message as an array: ["tag",time,{record},{option}].
func (chunk *MessageChunk) MarshalJSON() ([]byte, error) {
	m := &chunk.message
	record, err := json.Marshal(m.Record)
	if err != nil {
		return nil, err
	}
	option, err := json.Marshal(m.Option)
	if err != nil {
		return nil, err
	}
	return appendJSONMessage(nil, m.Tag, m.Time, record, option), nil
}

func appendJSONMessage(dst []byte, tag string, sec int64, record, option []byte) []byte {
	dst = append(dst, '[')
	dst = msgpack.AppendJSONString(dst, []byte(tag))
	dst = append(dst, ',')
	dst = strconv.AppendInt(dst, sec, 10)
	dst = append(dst, ',')
	dst = append(dst, record...)
	dst = append(dst, ',')
	dst = append(dst, option...)
	return append(dst, ']')
}

// MarshalMsg implements msgp.Marshaler.
func (z Entry) MarshalMsg(b []byte) ([]byte, error) {
	b = msgpack.AppendArrayHeader(b, 2)
	b = msgpack.AppendInt(b, z.Time)
	return appendAny(b, z.Record, 0)
}

// UnmarshalMsg implements msgp.Unmarshaler.
func (z *Entry) UnmarshalMsg(b []byte) (rest []byte, err error) {
	if b, err = readArray(b, 2); err != nil {
		return b, err
	}
	if z.Time, b, err = msgp.ReadInt64Bytes(b); err != nil {
		return b, err
	}
	z.Record, b, err = readValue(b)
	return b, err
}

// MarshalMsg implements msgp.Marshaler.
func (z *Forward) MarshalMsg(b []byte) (out []byte, err error) {
	b = msgpack.AppendArrayHeader(b, 3)
	b = msgpack.AppendString(b, z.Tag)
	b = msgpack.AppendArrayHeader(b, len(z.Entries))
	for _, e := range z.Entries {
		if b, err = e.MarshalMsg(b); err != nil {
			return b, err
		}
	}
	return appendOption(b, z.Option), nil
}

// UnmarshalMsg implements msgp.Unmarshaler.
func (z *Forward) UnmarshalMsg(b []byte) (rest []byte, err error) {
	if b, err = readArray(b, 3); err != nil {
		return b, err
	}
	if z.Tag, b, err = msgp.ReadStringBytes(b); err != nil {
		return b, err
	}
	n, b, err := msgp.ReadArrayHeaderBytes(b)
	if err != nil {
		return b, err
	}
	z.Entries = z.Entries[:0]
	for range n {
		var e Entry
		if b, err = e.UnmarshalMsg(b); err != nil {
			return b, err
		}
		z.Entries = append(z.Entries, e)
	}
	z.Option, b, err = readOption(b)
	return b, err
}

// MarshalMsg implements msgp.Marshaler.
func (z *Message) MarshalMsg(b []byte) (out []byte, err error) {
	b = msgpack.AppendArrayHeader(b, 4)
	b = msgpack.AppendString(b, z.Tag)
	b = msgpack.AppendInt(b, z.Time)
	if b, err = appendAny(b, z.Record, 0); err != nil {
		return b, err
	}
	return appendOption(b, z.Option), nil
}

// UnmarshalMsg implements msgp.Unmarshaler.
func (z *Message) UnmarshalMsg(b []byte) (rest []byte, err error) {
	if b, err = readArray(b, 4); err != nil {
		return b, err
	}
	if z.Tag, b, err = msgp.ReadStringBytes(b); err != nil {
		return b, err
	}
	if z.Time, b, err = msgp.ReadInt64Bytes(b); err != nil {
		return b, err
	}
	if z.Record, b, err = readValue(b); err != nil {
		return b, err
	}
	z.Option, b, err = readOption(b)
	return b, err
}

// MarshalMsg implements msgp.Marshaler.
func (z *MessageExt) MarshalMsg(b []byte) (out []byte, err error) {
	b = msgpack.AppendArrayHeader(b, 4)
	b = msgpack.AppendString(b, z.Tag)
	b = appendEventTime(b, z.Time)
	if b, err = appendAny(b, z.Record, 0); err != nil {
		return b, err
	}
	return appendOption(b, z.Option), nil
}

// UnmarshalMsg implements msgp.Unmarshaler.
func (z *MessageExt) UnmarshalMsg(b []byte) (rest []byte, err error) {
	if b, err = readArray(b, 4); err != nil {
		return b, err
	}
	if z.Tag, b, err = msgp.ReadStringBytes(b); err != nil {
		return b, err
	}
	if b, err = msgp.ReadExtensionBytes(b, &z.Time); err != nil {
		return b, err
	}
	if z.Record, b, err = readValue(b); err != nil {
		return b, err
	}
	z.Option, b, err = readOption(b)
	return b, err
}

// MarshalMsg implements msgp.Marshaler.
func (z AckResp) MarshalMsg(b []byte) ([]byte, error) {
	return appendOption(b, map[string]string{"ack": z.Ack}), nil
}

// UnmarshalMsg implements msgp.Unmarshaler. Keys other than ack are skipped.
func (z *AckResp) UnmarshalMsg(b []byte) ([]byte, error) {
	return readFields(b, func(key string) *string {
		if key == "ack" {
			return &z.Ack
		}
		return nil
	})
}

// MarshalMsg implements msgp.Marshaler.
func (z TestMessage) MarshalMsg(b []byte) ([]byte, error) {
	b = msgpack.AppendMapHeader(b, 2)
	for _, s := range [...]string{"foo", z.Foo, "hoge", z.Hoge} {
		b = msgpack.AppendString(b, s)
	}
	return b, nil
}

// UnmarshalMsg implements msgp.Unmarshaler. Keys other than foo and hoge are skipped.
func (z *TestMessage) UnmarshalMsg(b []byte) ([]byte, error) {
	return readFields(b, func(key string) *string {
		switch key {
		case "foo":
			return &z.Foo
		case "hoge":
			return &z.Hoge
		}
		return nil
	})
}

func appendOption(b []byte, option map[string]string) []byte {
	b = msgpack.AppendMapHeader(b, len(option))
	for k, v := range option {
		b = msgpack.AppendString(b, k)
		b = msgpack.AppendString(b, v)
	}
	return b
}

// readArray reads the header of an array of n.
func readArray(b []byte, n uint32) ([]byte, error) {
	got, rest, err := msgp.ReadArrayHeaderBytes(b)
	if err != nil {
		return b, err
	}
	if got != n {
		return b, msgp.ArrayError{Wanted: n, Got: got}
	}
	return rest, nil
}

// readValue reads any value. That it is all there is checked first, so its headers claim no more
// than what came.
func readValue(b []byte) (any, []byte, error) {
	if err := whole(b); err != nil {
		return nil, b, err
	}
	return msgp.ReadIntfBytes(b)
}

func whole(b []byte) error {
	_, err := msgpack.Skip(b)
	if errors.Is(err, msgpack.ErrShort) {
		return msgp.ErrShortBytes
	}
	return err
}

func readOption(b []byte) (map[string]string, []byte, error) {
	option := map[string]string{}
	n, rest, err := msgp.ReadMapHeaderBytes(b)
	if err != nil {
		return nil, b, err
	}
	for range n {
		var k, v string
		if k, rest, err = msgp.ReadStringBytes(rest); err != nil {
			return nil, b, err
		}
		if v, rest, err = msgp.ReadStringBytes(rest); err != nil {
			return nil, b, err
		}
		option[k] = v
	}
	return option, rest, nil
}

// readFields reads a map and puts the strings where field says.
func readFields(b []byte, field func(key string) *string) ([]byte, error) {
	if err := whole(b); err != nil {
		return b, err
	}
	n, rest, err := msgp.ReadMapHeaderBytes(b)
	if err != nil {
		return b, err
	}
	for range n {
		var key []byte
		if key, rest, err = msgp.ReadMapKeyZC(rest); err != nil {
			return b, err
		}
		if p := field(string(key)); p != nil {
			*p, rest, err = msgp.ReadStringBytes(rest)
		} else {
			rest, err = msgp.Skip(rest)
		}
		if err != nil {
			return b, err
		}
	}
	return rest, nil
}
