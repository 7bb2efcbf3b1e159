// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"

	"github.com/spillwaylog/spillway/msgpack"
)

// How this file is organised. A decoder finds the messages of one connection in the bytes that have
// arrived so far. next is called with all bytes from the start of the message in progress, after
// each read; it goes on where it stopped, from stage to stage, and returns when the message is
// complete or the bytes are used up. It keeps offsets only, so the bytes may move between two
// calls. What is found stays in the decoder's fields until reset. Nothing here looks at what a
// message means beyond its frame.
//
// No byte of an event is walked twice. A scanner goes over each element once, whether it comes
// whole or in pieces; what uses the element later goes by the offsets that are noted here. Only
// headers, of a few bytes each, may be read again: where one was cut off, and to see what an
// unusual time says.

// Mode is how a message carries its events, told by the second element (docs/forward.md rule 3).
type Mode uint8

// The modes.
const (
	ModeMessage Mode = iota // [tag, time, record, option]
	ModeMeta                // [tag, [time, metadata], record, option]
	ModeForward             // [tag, [entry…], option]
	ModePacked              // [tag, str or bin of entries, option]
)

// Found is what next came to.
type Found uint8

// What there is.
const (
	FoundMore    Found = iota // the bytes are used up
	FoundMessage              // a message
	FoundIgnored              // a value that is no array (rule 6)
	FoundRefused              // an array that is no message: see Decoder.Why
)

// stage is what the decoder waits for.
type stage uint8

const (
	stageStart   stage = iota // the header of the outer array
	stageTag                  // the whole tag
	stageSecond               // the header of the second element, and what tells its mode
	stageElement              // the end of element number d.element
	stageSkip                 // the end of a value whose bytes nobody wants
)

// Decoder is described above.
type Decoder struct {
	Max      int64           // largest message
	MaxEvent int64           // largest entry; 0: any
	scan     msgpack.Scanner // of the element in progress
	ready    bool            // scan has the limits of an element, and is within none or within d.element
	Entry    Check           // of a Forward message

	Pos               int64 // how far it got in the message; all of it once complete
	tag, tagEnd       int64
	body, bodyEnd     int64 // of element 1: Message: time; Forward: entries; Packed: payload
	record, recordEnd int64
	option, optionEnd int64
	claimed           int64 // entries of a Forward message
	Why               error // of refused: wraps a fault
	elements, element int8
	stage             stage
	Mode              Mode
	scanning, Heart   bool // scan is within element; an ignored value is nil
	Usual             bool // a Message whose time and record need no other look, see quick
}

// Reset makes the decoder ready for the next message.
func (d *Decoder) Reset() {
	d.Pos, d.stage, d.scanning, d.Usual, d.Why = 0, stageStart, false, false, nil
}

// Idle tells whether no message is in progress.
func (d *Decoder) Idle() bool { return d.stage == stageStart && d.Pos == 0 }

// Next goes on with a message. Of what is found, b[:d.pos] are the bytes; the caller then resets
// the decoder. The bytes of a value that is passed over are not needed any more before it is
// complete: then next returns more with used > 0, and they must not be there in the next call. An
// error is a Fault that ends the stream.
func (d *Decoder) Next(b []byte) (f Found, used int, err error) {
	size := int64(len(b))
	for {
		switch d.stage {
		case stageStart:
			if size == 0 {
				return FoundMore, 0, nil
			}
			if b[0] == CodeArray2+1 || b[0] == CodeArray2+2 {
				if err := d.quick(b); err != nil {
					return FoundMore, 0, err
				}
				if d.stage != stageStart {
					continue
				}
			}
			if !IsArray(b[0]) {
				d.Heart = b[0] == CodeNil
				d.skip(nil)
				continue
			}
			t, n, err := msgpack.ReadToken(b)
			if errors.Is(err, msgpack.ErrShort) {
				return FoundMore, 0, nil
			}
			if err != nil || t.Len < 2 || t.Len > 4 {
				d.skip(errElements)
				continue
			}
			d.elements = int8(t.Len)
			d.tag = int64(n)
			d.stage = stageTag

		case stageTag:
			t, n, err := msgpack.ReadToken(b[d.tag:])
			if errors.Is(err, msgpack.ErrShort) {
				return FoundMore, 0, nil
			}
			if err != nil || t.Kind != msgpack.KindStr && t.Kind != msgpack.KindBin {
				d.skip(errTagKind)
				continue
			}
			if t.Len > MaxTag {
				d.skip(ErrTagLength)
				continue
			}
			start := d.tag + int64(n)
			if start+int64(t.Len) > size {
				return FoundMore, 0, nil
			}
			d.tag, d.tagEnd = start, start+int64(t.Len)
			d.Pos = d.tagEnd
			d.stage = stageSecond

		case stageSecond:
			ok, err := d.second(b)
			if err != nil {
				return FoundMore, 0, err
			}
			if !ok && d.stage == stageSecond {
				return FoundMore, 0, nil
			}

		case stageElement:
			if d.element == d.elements {
				if d.Pos > d.Max {
					return FoundMore, 0, d.tooLarge()
				}
				return FoundMessage, 0, nil
			}
			done, err := d.value(b)
			if err != nil {
				return FoundMore, 0, err
			}
			if !done {
				if d.Pos > d.Max {
					return FoundMore, 0, d.tooLarge()
				}
				return FoundMore, 0, nil
			}
			d.element++

		case stageSkip:
			n, done, err := d.scan.Scan(b)
			if err != nil {
				d.Pos += int64(n)
				return FoundMore, 0, d.wrong(err)
			}
			d.Pos += int64(n)
			if d.Pos > d.Max {
				return FoundMore, 0, d.tooLarge()
			}
			if !done {
				return FoundMore, n, nil
			}
			d.Pos = int64(n)
			if d.Why != nil {
				return FoundRefused, 0, nil
			}
			return FoundIgnored, 0, nil
		}
	}
}

// quick takes the stages up to the end of the record, or of the bytes, of a message that looks as
// nearly all of Message mode do: 93 or 94, a short tag, a usual time, a map. Any other, and one of
// which less has come, it leaves to the stages.
func (d *Decoder) quick(b []byte) error {
	if len(b) < 3 {
		return nil
	}
	tag, n := 2, int(b[1]&0x1f)
	switch {
	case b[1]&0xe0 == codeStr0:
	case b[1] == codeStr8:
		tag, n = 3, int(b[2])
	default:
		return nil
	}
	body := tag + n
	if len(b)-body < maxUsual {
		return nil
	}
	record := body + eventTimeSize
	if !usualEventTime(b[body:]) {
		record = body + usualTime(b[body:])
	}
	if record == body || !IsMap(b[record]) {
		return nil
	}
	d.Mode = ModeMessage
	if b[body] == CodeArray2 {
		d.Mode = ModeMeta
	}
	d.tag, d.tagEnd = int64(tag), int64(body)
	d.body, d.bodyEnd = int64(body), int64(record)
	d.elements, d.element = int8(b[0]-CodeArray0), 2
	d.stage, d.Usual = stageElement, true
	d.prepare()
	d.record = int64(record)
	n, done, err := d.scan.Scan(b[record:])
	d.Pos = int64(record + n)
	if err != nil {
		return d.wrong(err)
	}
	if done {
		d.recordEnd = d.Pos
		d.element = 3
	}
	d.scanning = !done
	return nil
}

// prepare makes the scanner ready for an element.
func (d *Decoder) prepare() {
	if !d.ready {
		d.scan.Reset(Claims(MaxDepth, d.Max))
		d.ready = true
	}
}

// Why a complete array is no message.
var (
	errElements  = &Fault{FaultInvalidMessage, errors.New("an array that is not of two to four")}
	errTagKind   = &Fault{FaultBadTag, errors.New("the tag is no string")}
	ErrTagLength = &Fault{FaultBadTag, errors.New("the tag is longer than 1024 bytes")}
	errSecond    = &Fault{FaultInvalidMessage, errors.New("the second element is neither time nor entries")}
	errNoThird   = &Fault{FaultInvalidMessage, errors.New("a time without a record")}
)

// skip passes over the value that has begun, from its first byte again: that happens once, within
// its first bytes.
func (d *Decoder) skip(why error) {
	d.stage, d.Why, d.Pos = stageSkip, why, 0
	d.scan.Reset(Claims(MaxDepth+3, d.Max))
	d.ready = false
}

// second tells the mode. false: there are too few bytes for it, or the message is no message, by
// d.stage.
func (d *Decoder) second(b []byte) (bool, error) {
	t, n, err := msgpack.ReadToken(b[d.Pos:])
	if errors.Is(err, msgpack.ErrShort) {
		return false, nil
	}
	if err != nil {
		return false, d.wrong(err)
	}
	d.body = d.Pos
	d.element, d.stage = 1, stageElement
	switch t.Kind {
	case msgpack.KindInt, msgpack.KindUint, msgpack.KindFloat32, msgpack.KindFloat64, msgpack.KindExt:
		d.Mode = ModeMessage
	case msgpack.KindArray:
		if t.Len > 0 {
			if d.body+int64(n) == int64(len(b)) {
				d.stage = stageSecond
				return false, nil
			}
			if isTime(b[d.body+int64(n)]) {
				d.Mode = ModeMeta
				break
			}
		}
		if int64(t.Len) > max(d.Max, readLeast) {
			return false, Faultf(FaultTooLong, "an array of %d entries", t.Len)
		}
		d.Mode = ModeForward
		d.body += int64(n)
		d.Pos = d.body
		d.claimed = int64(t.Len)
		d.Entry = Check{Most: d.MaxEvent}
		return true, nil
	case msgpack.KindStr, msgpack.KindBin:
		d.Mode = ModePacked
		if int64(t.Len) > d.Max {
			return false, Faultf(FaultTooLarge, "entries of %d bytes, the limit is %d", t.Len, d.Max)
		}
		d.body += int64(n)
		d.Pos = d.body
		d.bodyEnd = d.body + int64(t.Len)
		return true, nil
	default:
		d.skip(errSecond)
		return false, nil
	}
	if d.elements < 3 {
		d.skip(errNoThird)
		return false, nil
	}
	return true, nil
}

// isTime tells whether a code begins a value of a kind that a time has: an int, a float or an ext.
func isTime(code byte) bool {
	switch {
	case code < 0x80, code >= 0xe0: // fixint
		return true
	case code >= 0xc7 && code <= 0xd8: // ext8-32, float, uint, int, fixext
		return true
	}
	return false
}

// value goes on with element number d.element, and tells whether it is complete.
func (d *Decoder) value(b []byte) (bool, error) {
	if d.element == 1 {
		switch d.Mode {
		case ModePacked:
			if d.bodyEnd > int64(len(b)) {
				return false, nil
			}
			d.Pos = d.bodyEnd
			return true, nil
		case ModeForward:
			d.ready = false
			err := d.Entry.Run(b[d.body:], d.claimed, &d.scan, d.Max)
			d.Pos = d.body + max(d.Entry.Pos, d.Entry.off)
			if err != nil {
				return false, d.wrong(err)
			}
			d.bodyEnd = d.Pos
			return d.Entry.Values() == d.claimed, nil
		case ModeMessage, ModeMeta:
		}
	}
	if !d.scanning {
		d.prepare()
		d.scanning = true
		d.begin(d.Pos)
	}
	n, done, err := d.scan.Scan(b[d.Pos:])
	d.Pos += int64(n)
	if err != nil {
		return false, d.wrong(err)
	}
	if done {
		d.scanning = false
		d.end(d.Pos)
	}
	return done, nil
}

// part is what an element is.
func (d *Decoder) part() (start, end *int64) {
	i := d.element
	if d.Mode == ModeForward || d.Mode == ModePacked {
		i++ // the entries are in the place of time and record
	}
	switch i {
	case 1:
		return &d.body, &d.bodyEnd
	case 2:
		return &d.record, &d.recordEnd
	case 3:
		return &d.option, &d.optionEnd
	}
	return nil, nil
}

func (d *Decoder) begin(at int64) {
	if start, _ := d.part(); start != nil {
		*start = at
	}
}

func (d *Decoder) end(at int64) {
	d.Pos = at
	if _, end := d.part(); end != nil {
		*end = at
	}
}

func (d *Decoder) tooLarge() error {
	return Faultf(FaultTooLarge, "a message of more than %d bytes", d.Max)
}

// wrong gives an error of the scanner its kind. All of them end the stream: where the message would
// end is not known any more.
func (d *Decoder) wrong(err error) error {
	if d.Pos > d.Max {
		return d.tooLarge() // as it would have been, had the bytes come in smaller pieces
	}
	return ScanFault(err, FaultGarbage)
}
