// SPDX-License-Identifier: Apache-2.0

package spillwayzap

import (
	"time"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/msgpack"
)

// The many methods that zap's encoders have: each type as a field of a map, and as an element of an
// array.

// AddBinary adds bytes.
func (e *encoder) AddBinary(key string, v []byte) {
	e.key(key)
	e.buf = msgpack.AppendBin(e.buf, v)
}

// AddReflected adds any value.
func (e *encoder) AddReflected(key string, v any) error {
	e.key(key)
	e.buf = spillway.AppendValue(e.buf, v)
	return nil
}

// AppendReflected appends any value.
func (e *encoder) AppendReflected(v any) error {
	e.one()
	e.buf = spillway.AppendValue(e.buf, v)
	return nil
}

// AddBool adds a bool.
func (e *encoder) AddBool(key string, v bool) {
	e.key(key)
	e.buf = msgpack.AppendBool(e.buf, v)
}

// AppendBool appends a bool.
func (e *encoder) AppendBool(v bool) {
	e.one()
	e.buf = msgpack.AppendBool(e.buf, v)
}

// AddByteString adds a text.
func (e *encoder) AddByteString(key string, v []byte) {
	e.key(key)
	e.bytes(v)
}

// AppendByteString appends a text.
func (e *encoder) AppendByteString(v []byte) {
	e.one()
	e.bytes(v)
}

// AddComplex128 adds a text like 1+2i.
func (e *encoder) AddComplex128(key string, v complex128) {
	e.key(key)
	e.complex(v, 64)
}

// AppendComplex128 appends a text like 1+2i.
func (e *encoder) AppendComplex128(v complex128) {
	e.one()
	e.complex(v, 64)
}

// AddComplex64 adds a text like 1+2i.
func (e *encoder) AddComplex64(key string, v complex64) {
	e.key(key)
	e.complex(complex128(v), 32)
}

// AppendComplex64 appends a text like 1+2i.
func (e *encoder) AppendComplex64(v complex64) {
	e.one()
	e.complex(complex128(v), 32)
}

// AddDuration adds nanoseconds.
func (e *encoder) AddDuration(key string, v time.Duration) {
	e.key(key)
	e.buf = msgpack.AppendInt(e.buf, int64(v))
}

// AppendDuration appends nanoseconds.
func (e *encoder) AppendDuration(v time.Duration) {
	e.one()
	e.buf = msgpack.AppendInt(e.buf, int64(v))
}

// AddFloat64 adds a float.
func (e *encoder) AddFloat64(key string, v float64) {
	e.key(key)
	e.buf = msgpack.AppendFloat64(e.buf, v)
}

// AppendFloat64 appends a float.
func (e *encoder) AppendFloat64(v float64) {
	e.one()
	e.buf = msgpack.AppendFloat64(e.buf, v)
}

// AddFloat32 adds a float.
func (e *encoder) AddFloat32(key string, v float32) {
	e.key(key)
	e.buf = msgpack.AppendFloat32(e.buf, v)
}

// AppendFloat32 appends a float.
func (e *encoder) AppendFloat32(v float32) {
	e.one()
	e.buf = msgpack.AppendFloat32(e.buf, v)
}

// AddInt adds an integer.
func (e *encoder) AddInt(key string, v int) {
	e.key(key)
	e.buf = msgpack.AppendInt(e.buf, int64(v))
}

// AppendInt appends an integer.
func (e *encoder) AppendInt(v int) {
	e.one()
	e.buf = msgpack.AppendInt(e.buf, int64(v))
}

// AddInt64 adds an integer.
func (e *encoder) AddInt64(key string, v int64) {
	e.key(key)
	e.buf = msgpack.AppendInt(e.buf, v)
}

// AppendInt64 appends an integer.
func (e *encoder) AppendInt64(v int64) {
	e.one()
	e.buf = msgpack.AppendInt(e.buf, v)
}

// AddInt32 adds an integer.
func (e *encoder) AddInt32(key string, v int32) {
	e.key(key)
	e.buf = msgpack.AppendInt(e.buf, int64(v))
}

// AppendInt32 appends an integer.
func (e *encoder) AppendInt32(v int32) {
	e.one()
	e.buf = msgpack.AppendInt(e.buf, int64(v))
}

// AddInt16 adds an integer.
func (e *encoder) AddInt16(key string, v int16) {
	e.key(key)
	e.buf = msgpack.AppendInt(e.buf, int64(v))
}

// AppendInt16 appends an integer.
func (e *encoder) AppendInt16(v int16) {
	e.one()
	e.buf = msgpack.AppendInt(e.buf, int64(v))
}

// AddInt8 adds an integer.
func (e *encoder) AddInt8(key string, v int8) {
	e.key(key)
	e.buf = msgpack.AppendInt(e.buf, int64(v))
}

// AppendInt8 appends an integer.
func (e *encoder) AppendInt8(v int8) {
	e.one()
	e.buf = msgpack.AppendInt(e.buf, int64(v))
}

// AddString adds a text.
func (e *encoder) AddString(key string, v string) {
	e.key(key)
	e.buf = msgpack.AppendString(e.buf, v)
}

// AppendString appends a text.
func (e *encoder) AppendString(v string) {
	e.one()
	e.buf = msgpack.AppendString(e.buf, v)
}

// AddTime adds a time, as text.
func (e *encoder) AddTime(key string, v time.Time) {
	e.key(key)
	e.time(v)
}

// AppendTime appends a time, as text.
func (e *encoder) AppendTime(v time.Time) {
	e.one()
	e.time(v)
}

// AddUint adds an integer.
func (e *encoder) AddUint(key string, v uint) {
	e.key(key)
	e.buf = msgpack.AppendUint(e.buf, uint64(v))
}

// AppendUint appends an integer.
func (e *encoder) AppendUint(v uint) {
	e.one()
	e.buf = msgpack.AppendUint(e.buf, uint64(v))
}

// AddUint64 adds an integer.
func (e *encoder) AddUint64(key string, v uint64) {
	e.key(key)
	e.buf = msgpack.AppendUint(e.buf, v)
}

// AppendUint64 appends an integer.
func (e *encoder) AppendUint64(v uint64) {
	e.one()
	e.buf = msgpack.AppendUint(e.buf, v)
}

// AddUint32 adds an integer.
func (e *encoder) AddUint32(key string, v uint32) {
	e.key(key)
	e.buf = msgpack.AppendUint(e.buf, uint64(v))
}

// AppendUint32 appends an integer.
func (e *encoder) AppendUint32(v uint32) {
	e.one()
	e.buf = msgpack.AppendUint(e.buf, uint64(v))
}

// AddUint16 adds an integer.
func (e *encoder) AddUint16(key string, v uint16) {
	e.key(key)
	e.buf = msgpack.AppendUint(e.buf, uint64(v))
}

// AppendUint16 appends an integer.
func (e *encoder) AppendUint16(v uint16) {
	e.one()
	e.buf = msgpack.AppendUint(e.buf, uint64(v))
}

// AddUint8 adds an integer.
func (e *encoder) AddUint8(key string, v uint8) {
	e.key(key)
	e.buf = msgpack.AppendUint(e.buf, uint64(v))
}

// AppendUint8 appends an integer.
func (e *encoder) AppendUint8(v uint8) {
	e.one()
	e.buf = msgpack.AppendUint(e.buf, uint64(v))
}

// AddUintptr adds an integer.
func (e *encoder) AddUintptr(key string, v uintptr) {
	e.key(key)
	e.buf = msgpack.AppendUint(e.buf, uint64(v))
}

// AppendUintptr appends an integer.
func (e *encoder) AppendUintptr(v uintptr) {
	e.one()
	e.buf = msgpack.AppendUint(e.buf, uint64(v))
}
