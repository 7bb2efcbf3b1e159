// SPDX-License-Identifier: Apache-2.0

package spillwayzap

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/spillwaylog/spillway/internal/alike"
)

// rich is an error of which %+v says more.
type rich struct{ text string }

func (e rich) Error() string { return e.text }

func (e rich) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, e.text, " at x.go") }

// several is a group of errors, as multierr makes it.
type several []error

func (several) Error() string     { return "several" }
func (e several) Errors() []error { return e }

type named int

func (n named) String() string { return fmt.Sprint("named ", int(n)) }

type point struct {
	X    int            `json:"x"`
	Name string         `json:"name,omitempty"`
	In   *point         `json:"in,omitempty"`
	Map  map[string]any `json:"map"`
}

// object is random fields as an ObjectMarshaler, elements as an ArrayMarshaler.
type object []zap.Field

func (o object) MarshalLogObject(e zapcore.ObjectEncoder) error {
	for i := range o {
		o[i].AddTo(e)
	}
	if len(o) == 2 {
		return errors.New("two fields")
	}
	return nil
}

type elements []func(zapcore.ArrayEncoder) error

func (a elements) MarshalLogArray(e zapcore.ArrayEncoder) error {
	for _, f := range a {
		if err := f(e); err != nil {
			return err
		}
	}
	return nil
}

func randomTime(r *rand.Rand) time.Time {
	return time.Unix(r.Int64N(1<<33), r.Int64N(1e9)).In(time.FixedZone("", (r.IntN(48)-24)*1800))
}

func randomElement(r *rand.Rand, depth int) func(zapcore.ArrayEncoder) error {
	none := func(f func(zapcore.ArrayEncoder)) func(zapcore.ArrayEncoder) error {
		return func(e zapcore.ArrayEncoder) error {
			f(e)
			return nil
		}
	}
	n, f, text, when := r.Uint64(), r.NormFloat64(), alike.Text(r), randomTime(r)
	switch r.IntN(20) {
	case 0:
		return none(func(e zapcore.ArrayEncoder) { e.AppendBool(n%2 == 0) })
	case 1:
		return none(func(e zapcore.ArrayEncoder) { e.AppendByteString([]byte(text)) })
	case 2:
		return none(func(e zapcore.ArrayEncoder) { e.AppendComplex128(complex(f, -f)) })
	case 3:
		return none(func(e zapcore.ArrayEncoder) { e.AppendComplex64(complex64(complex(f, f))) })
	case 4:
		return none(func(e zapcore.ArrayEncoder) { e.AppendDuration(time.Duration(n)) })
	case 5:
		return none(func(e zapcore.ArrayEncoder) { e.AppendFloat64(f) })
	case 6:
		return none(func(e zapcore.ArrayEncoder) { e.AppendFloat32(float32(f)) })
	case 7:
		return none(func(e zapcore.ArrayEncoder) { e.AppendInt(int(n)); e.AppendInt64(int64(n)) })
	case 8:
		return none(func(
			e zapcore.ArrayEncoder,
		) {
			e.AppendInt32(int32(n))
			e.AppendInt16(int16(n))
			e.AppendInt8(int8(n))
		})
	case 9:
		return none(func(
			e zapcore.ArrayEncoder,
		) {
			e.AppendUint(uint(n))
			e.AppendUint64(n)
			e.AppendUintptr(uintptr(n))
		})
	case 10:
		return none(func(e zapcore.ArrayEncoder) {
			e.AppendUint32(uint32(n))
			e.AppendUint16(uint16(n))
			e.AppendUint8(uint8(n))
		})
	case 11:
		return none(func(e zapcore.ArrayEncoder) { e.AppendTime(when) })
	case 12:
		return func(e zapcore.ArrayEncoder) error { return e.AppendReflected(map[string]any{"a": text}) }
	case 13:
		if depth < 3 {
			o := object(randomFields(r, depth+1))
			return func(e zapcore.ArrayEncoder) error { return e.AppendObject(o) }
		}
	case 14:
		if depth < 3 {
			a := elements{randomElement(r, depth+1), randomElement(r, depth+1)}
			return func(e zapcore.ArrayEncoder) error { return e.AppendArray(a) }
		}
	}
	return none(func(e zapcore.ArrayEncoder) { e.AppendString(text) })
}

func randomFields(r *rand.Rand, depth int) []zap.Field {
	var fields []zap.Field
	for i := range r.IntN(9) {
		fields = append(fields, randomField(r, fmt.Sprint(alike.Text(r), i), depth))
	}
	return fields
}

func randomField(r *rand.Rand, key string, depth int) zap.Field {
	n, f, text := r.Uint64(), r.NormFloat64(), alike.Text(r)
	switch r.IntN(34) {
	case 0:
		return zap.Bool(key, n%2 == 0)
	case 1:
		return zap.ByteString(key, []byte(text))
	case 2:
		return zap.Complex128(key, complex(f, -f))
	case 3:
		return zap.Complex64(key, complex64(complex(f, f)))
	case 4:
		return zap.Duration(key, time.Duration(n))
	case 5:
		return zap.Float64(key, f)
	case 6:
		return zap.Float32(key, float32(f))
	case 7:
		return zap.Int(key, int(n))
	case 8:
		return zap.Int64(key, int64(n))
	case 9:
		return zap.Int32(key, int32(n))
	case 10:
		return zap.Int16(key, int16(n))
	case 11:
		return zap.Int8(key, int8(n))
	case 12:
		return zap.Uint(key, uint(n))
	case 13:
		return zap.Uint64(key, n)
	case 14:
		return zap.Uint32(key, uint32(n))
	case 15:
		return zap.Uint16(key, uint16(n))
	case 16:
		return zap.Uint8(key, uint8(n))
	case 17:
		return zap.Uintptr(key, uintptr(n))
	case 18:
		return zap.Time(key, randomTime(r))
	case 19:
		return zap.Time(key, time.Date(3000, 1, 1, 0, 0, 0, 1, time.UTC)) // beyond nanoseconds
	case 20:
		return zap.Error(errors.New(text))
	case 21:
		return zap.NamedError(key, rich{text})
	case 22:
		return zap.NamedError(key, several{errors.New(text), nil, rich{"r"}})
	case 23:
		return zap.Stringer(key, named(n))
	case 24:
		return zap.Stringer(key, (*named)(nil)) // <nil>
	case 25:
		return zap.Reflect(key, point{X: int(n >> 1), Name: text, In: &point{}, Map: map[string]any{"f": f}})
	case 26:
		return zap.Any(key, []any{text, nil, 1.5, []string{text}})
	case 27:
		return zap.Strings(key, []string{text, ""})
	case 28:
		return zap.Skip()
	case 29:
		return zap.Array(key, elements{randomElement(r, depth), randomElement(r, depth), randomElement(r, depth)})
	case 30:
		if depth < 3 {
			return zap.Object(key, object(randomFields(r, depth+1)))
		}
	case 31:
		if depth < 3 {
			return zap.Inline(object(randomFields(r, depth+1)))
		}
	case 32:
		return zap.Namespace(key)
	}
	return zap.String(key, text)
}
