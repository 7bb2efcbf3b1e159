// SPDX-License-Identifier: Apache-2.0

package spillwayzap

import (
	"encoding/binary"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/msgpack"
)

// An encoder writes fields as one MessagePack map. Headers are written with a count of 16 bits,
// which is filled in when the map or array ends:
//
//	┌──────────┬───────────────┬──────────────────────────┬─────
//	│ de 00 00 │ key value …   │ key de 00 00 key value … │ …
//	└──────────┴───────────────┴──────────────────────────┴─────
//	  open[0]                      open[1], a namespace
type encoder struct {
	buf  []byte
	open []frame // from outside in

	event spillway.Event
	name  [1]slog.Attr
}

// A frame is a map or an array that has not ended.
type frame struct {
	at int // its header
	n  int // what it has so far: pairs or elements
}

var (
	encoders = sync.Pool{New: func() any { return &encoder{buf: make([]byte, 0, 1024)} }}

	_ zapcore.ObjectEncoder = (*encoder)(nil)
	_ zapcore.ArrayEncoder  = (*encoder)(nil)
)

// maxPooled is the largest buffer that goes back to the pool.
const maxPooled = 64 << 10

func (e *encoder) free() {
	e.event, e.name[0] = spillway.Event{}, slog.Attr{}
	if cap(e.buf) <= maxPooled {
		encoders.Put(e)
	}
}

const (
	map16   = 0xde
	array16 = 0xdc
)

// start makes e begin with all that prefix has, or with an empty map.
func (e *encoder) start(prefix *encoder) {
	if prefix == nil {
		e.buf, e.open = append(e.buf[:0], map16, 0, 0), append(e.open[:0], frame{})
		return
	}
	e.buf, e.open = append(e.buf[:0], prefix.buf...), append(e.open[:0], prefix.open...)
}

func (e *encoder) addFields(fields []zapcore.Field) {
	for i := range fields {
		fields[i].AddTo(e)
	}
}

// begin opens a map or an array.
func (e *encoder) begin(header byte) (depth int) {
	e.open = append(e.open, frame{at: len(e.buf)})
	e.buf = append(e.buf, header, 0, 0)
	return len(e.open) - 1
}

// close ends all but the outer ones.
func (e *encoder) close(depth int) {
	for _, f := range slices.Backward(e.open[depth:]) {
		if f.n <= math.MaxUint16 {
			binary.BigEndian.PutUint16(e.buf[f.at+1:], uint16(f.n))
			continue
		}
		e.buf[f.at]++ // the form with 32 bits; what stands behind it has ended
		e.buf = slices.Insert(e.buf, f.at+1, 0, 0)
		binary.BigEndian.PutUint32(e.buf[f.at+1:], uint32(f.n))
	}
	e.open = e.open[:depth]
}

// one counts a pair or an element that is about to be written.
func (e *encoder) one() { e.open[len(e.open)-1].n++ }

func (e *encoder) key(key string) {
	e.one()
	e.buf = msgpack.AppendString(e.buf, key)
}

// OpenNamespace puts all later fields into a map.
func (e *encoder) OpenNamespace(key string) {
	e.key(key)
	e.begin(map16)
}

// AddObject adds a map.
func (e *encoder) AddObject(key string, v zapcore.ObjectMarshaler) error {
	e.key(key)
	return e.object(v)
}

// AppendObject appends a map.
func (e *encoder) AppendObject(v zapcore.ObjectMarshaler) error {
	e.one()
	return e.object(v)
}

func (e *encoder) object(v zapcore.ObjectMarshaler) error {
	depth := e.begin(map16)
	err := v.MarshalLogObject(e)
	e.close(depth) // with the namespaces in it
	return err
}

// AddArray adds an array.
func (e *encoder) AddArray(key string, v zapcore.ArrayMarshaler) error {
	e.key(key)
	return e.array(v)
}

// AppendArray appends an array.
func (e *encoder) AppendArray(v zapcore.ArrayMarshaler) error {
	e.one()
	return e.array(v)
}

func (e *encoder) array(v zapcore.ArrayMarshaler) error {
	depth := e.begin(array16)
	err := v.MarshalLogArray(e)
	e.close(depth)
	return err
}

func (e *encoder) time(t time.Time) {
	var text [40]byte
	s := t.AppendFormat(text[:0], time.RFC3339Nano)
	e.buf = append(msgpack.AppendStringHeader(e.buf, len(s)), s...)
}

func (e *encoder) bytes(s []byte) {
	e.buf = append(msgpack.AppendStringHeader(e.buf, len(s)), s...)
}

func (e *encoder) complex(v complex128, bits int) {
	var text [64]byte
	s := strconv.AppendFloat(text[:0], real(v), 'f', -1, bits)
	if imag(v) >= 0 {
		s = append(s, '+')
	}
	e.bytes(append(strconv.AppendFloat(s, imag(v), 'f', -1, bits), 'i'))
}
