// SPDX-License-Identifier: Apache-2.0

package fluent

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// msgToSend is an event, encoded: a message as it goes over the wire, and what it was made of.
//
//	┌────┬─────┬──────┬────────┬────────┐
//	│ 94 │ tag │ time │ record │ option │   or the same as a JSON array
//	└────┴─────┴──────┴────────┴────────┘
//	                   at       end
type msgToSend struct {
	data    []byte
	at, end int // where the record stands in data
	ack     string
	tag     string
	time    time.Time
	json    bool
}

func (m *msgToSend) record() []byte { return m.data[m.at:m.end] }

// A pooled message is put back only if its buffer is not larger than this.
const maxPooled = 64 << 10

var messages = sync.Pool{New: func() any { return new(msgToSend) }}

func (m *msgToSend) free() {
	if cap(m.data) <= maxPooled {
		*m = msgToSend{data: m.data[:0]}
		messages.Put(m)
	}
}

// encode makes the message of an event.
func (c *Config) encode(m *msgToSend, tag string, tm time.Time, message any) (err error) {
	m.tag, m.time, m.json, m.ack = tag, tm, c.MarshalAsJSON, ""
	if c.RequestAck {
		m.ack = string(forward.NewID())
	}
	if c.MarshalAsJSON {
		record, err := marshalJSON(message)
		if err != nil {
			return err
		}
		option := []byte("{}")
		if m.ack != "" {
			option = fmt.Appendf(nil, `{"chunk":%q}`, m.ack) // base64: needs no escapes
		}
		m.data = appendJSONMessage(m.data[:0], tag, tm.Unix(), record, option)
		m.end = len(m.data) - len(`,]`) - len(option)
		m.at = m.end - len(record)
		return nil
	}
	b := msgpack.AppendArrayHeader(m.data[:0], 4)
	b = msgpack.AppendString(b, tag)
	if c.SubSecondPrecision {
		b = appendEventTime(b, EventTime(tm))
	} else {
		b = msgpack.AppendInt(b, tm.Unix())
	}
	m.at = len(b)
	if b, err = appendAny(b, message, 0); err != nil {
		return msgp.WrapError(err, "Record")
	}
	m.end = len(b)
	if m.ack == "" {
		b = msgpack.AppendMapHeader(b, 0)
	} else {
		b = msgpack.AppendMapHeader(b, 1)
		b = msgpack.AppendString(b, "chunk")
		b = msgpack.AppendString(b, m.ack)
	}
	m.data = b
	return nil
}

// encodeRecord makes only the record, as MessagePack: it is all that an Async logger takes.
func (c *Config) encodeRecord(m *msgToSend, tag string, tm time.Time, message any) (err error) {
	m.tag, m.time, m.json, m.ack = tag, tm, false, ""
	b := m.data[:0]
	if c.MarshalAsJSON {
		record, err := marshalJSON(message)
		if err != nil {
			return err
		}
		b, err = appendJSONRecord(b, record)
		if err != nil {
			return err
		}
	} else if b, err = appendAny(b, message, 0); err != nil {
		return msgp.WrapError(err, "Record")
	}
	m.data, m.at, m.end = b, 0, len(b)
	return nil
}

// marshalJSON survives methods that panic.
func marshalJSON(v any) (b []byte, err error) {
	defer caught(&err, nil, &b)
	return json.Marshal(v)
}

// appendJSONRecord appends a record in JSON as MessagePack.
func appendJSONRecord(b, record []byte) ([]byte, error) {
	out, _, err := msgpack.AppendFromJSONText(b, record)
	return out, err
}

// isRecord reports whether a value, in MessagePack or JSON, is a map.
func (m *msgToSend) isRecord() bool {
	if m.at >= m.end || m.end > len(m.data) {
		return false
	}
	first := m.data[m.at]
	if m.json {
		return first == '{'
	}
	return first&0xf0 == 0x80 || first == 0xde || first == 0xdf // fixmap, map16, map32
}

// asRecord turns what was posted into something that is encoded as a map, or says why that cannot
// be. As a rule that is what was posted.
func (c *Config) asRecord(message any) (any, error) {
	switch m := message.(type) {
	case nil:
		return nil, errNoMap
	case map[string]string, map[string]any:
		return m, nil
	}
	v := reflect.ValueOf(message)
	for {
		pointer := v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface
		if pointer && v.IsNil() {
			return nil, errNoMap
		}
		if planOf(v.Type()).how == asMarshaler {
			return message, nil
		}
		if !pointer {
			break
		}
		v = v.Elem()
	}
	p := planOf(v.Type())
	switch v.Kind() {
	case reflect.Struct:
		if c.MarshalAsJSON {
			return p.asMap(v), nil
		}
		if p.how != asStruct {
			return bare{v}, nil
		}
		return message, nil
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			return nil, errNoKeys
		}
		if p.how != byKind {
			return bare{v}, nil
		}
		return message, nil
	}
	return nil, errNoMap
}

// bare is a struct or map without its methods, which would make something else of it than a record.
type bare struct{ v reflect.Value }

// MarshalMsg appends the fields or the pairs.
func (r bare) MarshalMsg(b []byte) ([]byte, error) {
	p := planOf(r.v.Type())
	if r.v.Kind() == reflect.Map {
		return p.appendMap(b, r.v, 0)
	}
	return p.appendStruct(b, r.v, 0)
}

// MarshalJSON is for maps: structs have been turned into one.
func (r bare) MarshalJSON() ([]byte, error) {
	pairs := map[string]any{}
	for it := r.v.MapRange(); it.Next(); {
		pairs[it.Key().String()] = it.Value().Interface()
	}
	return json.Marshal(pairs)
}

// asMap returns the fields of a struct under their names.
func (p *typePlan) asMap(v reflect.Value) map[string]any {
	pairs := make(map[string]any, len(p.fields))
	for i := range p.fields {
		if fv, ok := p.fields[i].of(v); ok {
			pairs[p.fields[i].name] = fv.Interface()
		}
	}
	return pairs
}

var _ msgp.Marshaler = bare{}
