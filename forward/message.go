// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"

	"github.com/spillwaylog/spillway/msgpack"
)

// How this file is organised. A decoder finds the messages of one connection in the bytes that have
// arrived so far. next is called with all bytes from the start of the message in progress, after
// each read; it goes on where it stopped, from stage to stage, and returns when the message is
// complete or the bytes are used up. It keeps offsets only, so the bytes may move between two
// calls. What is found stays in the decoder's fields until reset. Nothing here looks at what a
// message means beyond its frame: see group.go for that.
//
// No byte of an event is walked twice. A scanner goes over each element once, whether it comes
// whole or in pieces; what uses the element later goes by the offsets that are noted here. Only
// headers, of a few bytes each, may be read again: where one was cut off, and to see what an
// unusual time says.

// mode is how a message carries its events, told by the second element (docs/forward.md rule 3).
type mode uint8

const (
	modeMessage mode = iota // [tag, time, record, option]
	modeMeta                // [tag, [time, metadata], record, option]
	modeForward             // [tag, [entry…], option]
	modePacked              // [tag, str or bin of entries, option]
)

// found is what next came to.
type found uint8

const (
	more    found = iota // the bytes are used up
	message              // a message
	ignored              // a value that is no array (rule 6)
	refused              // an array that is no message: see decoder.why
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

// decoder is described above.
type decoder struct {
	max      int64           // largest message
	maxEvent int64           // largest entry; 0: any
	scan     msgpack.Scanner // of the element in progress
	ready    bool            // scan has the limits of an element, and is within none or within d.element
	entry    check           // of a Forward message

	pos               int64 // how far it got in the message; all of it once complete
	tag, tagEnd       int64
	body, bodyEnd     int64 // of element 1: Message: time; Forward: entries; Packed: payload
	record, recordEnd int64
	option, optionEnd int64
	claimed           int64 // entries of a Forward message
	why               error // of refused: wraps a fault
	elements, element int8
	stage             stage
	mode              mode
	scanning, heart   bool // scan is within element; an ignored value is nil
	usual             bool // a Message whose time and record need no other look, see quick
}

// reset makes the decoder ready for the next message.
func (d *decoder) reset() {
	d.pos, d.stage, d.scanning, d.usual, d.why = 0, stageStart, false, false, nil
}

// idle tells whether no message is in progress.
func (d *decoder) idle() bool { return d.stage == stageStart && d.pos == 0 }

// next goes on with a message. Of what is found, b[:d.pos] are the bytes; the caller then resets
// the decoder. The bytes of a value that is passed over are not needed any more before it is
// complete: then next returns more with used > 0, and they must not be there in the next call. An
// error is a fault that ends the stream.
func (d *decoder) next(b []byte) (f found, used int, err error) {
	size := int64(len(b))
	for {
		switch d.stage {
		case stageStart:
			if size == 0 {
				return more, 0, nil
			}
			if b[0] == codeArray2+1 || b[0] == codeArray2+2 {
				if err := d.quick(b); err != nil {
					return more, 0, err
				}
				if d.stage != stageStart {
					continue
				}
			}
			if !isArray(b[0]) {
				d.heart = b[0] == codeNil
				d.skip(nil)
				continue
			}
			t, n, err := msgpack.ReadToken(b)
			if errors.Is(err, msgpack.ErrShort) {
				return more, 0, nil
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
				return more, 0, nil
			}
			if err != nil || t.Kind != msgpack.Str && t.Kind != msgpack.Bin {
				d.skip(errTagKind)
				continue
			}
			if t.Len > MaxTag {
				d.skip(errTagLength)
				continue
			}
			start := d.tag + int64(n)
			if start+int64(t.Len) > size {
				return more, 0, nil
			}
			d.tag, d.tagEnd = start, start+int64(t.Len)
			d.pos = d.tagEnd
			d.stage = stageSecond

		case stageSecond:
			ok, err := d.second(b)
			if err != nil {
				return more, 0, err
			}
			if !ok && d.stage == stageSecond {
				return more, 0, nil
			}

		case stageElement:
			if d.element == d.elements {
				if d.pos > d.max {
					return more, 0, d.tooLarge()
				}
				return message, 0, nil
			}
			done, err := d.value(b)
			if err != nil {
				return more, 0, err
			}
			if !done {
				if d.pos > d.max {
					return more, 0, d.tooLarge()
				}
				return more, 0, nil
			}
			d.element++

		case stageSkip:
			n, done, err := d.scan.Scan(b)
			if err != nil {
				d.pos += int64(n)
				return more, 0, d.wrong(err)
			}
			d.pos += int64(n)
			if d.pos > d.max {
				return more, 0, d.tooLarge()
			}
			if !done {
				return more, n, nil
			}
			d.pos = int64(n)
			if d.why != nil {
				return refused, 0, nil
			}
			return ignored, 0, nil
		}
	}
}

// quick takes the stages up to the end of the record, or of the bytes, of a message that looks as
// nearly all of Message mode do: 93 or 94, a short tag, a usual time, a map. Any other, and one of
// which less has come, it leaves to the stages.
func (d *decoder) quick(b []byte) error {
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
	if len(b)-body < usualMost {
		return nil
	}
	record := body + eventTimeSize
	if !usualEventTime(b[body:]) {
		record = body + usualTime(b[body:])
	}
	if record == body || !isMap(b[record]) {
		return nil
	}
	d.mode = modeMessage
	if b[body] == codeArray2 {
		d.mode = modeMeta
	}
	d.tag, d.tagEnd = int64(tag), int64(body)
	d.body, d.bodyEnd = int64(body), int64(record)
	d.elements, d.element = int8(b[0]-codeArray0), 2
	d.stage, d.usual = stageElement, true
	d.prepare()
	d.record = int64(record)
	n, done, err := d.scan.Scan(b[record:])
	d.pos = int64(record + n)
	if err != nil {
		return d.wrong(err)
	}
	if done {
		d.recordEnd = d.pos
		d.element = 3
	}
	d.scanning = !done
	return nil
}

// prepare makes the scanner ready for an element.
func (d *decoder) prepare() {
	if !d.ready {
		d.scan.Reset(claims(maxDepth, d.max))
		d.ready = true
	}
}

// Why a complete array is no message.
var (
	errElements  = &fault{InvalidMessage, errors.New("an array that is not of two to four")}
	errTagKind   = &fault{BadTag, errors.New("the tag is no string")}
	errTagLength = &fault{BadTag, errors.New("the tag is longer than 1024 bytes")}
	errSecond    = &fault{InvalidMessage, errors.New("the second element is neither time nor entries")}
	errNoThird   = &fault{InvalidMessage, errors.New("a time without a record")}
)

// skip passes over the value that has begun, from its first byte again: that happens once, within
// its first bytes.
func (d *decoder) skip(why error) {
	d.stage, d.why, d.pos = stageSkip, why, 0
	d.scan.Reset(claims(maxDepth+3, d.max))
	d.ready = false
}

// claims is what the lengths and counts in a message of at most size bytes may say. What fits into
// the smallest buffer is never too long, only too large, however it was cut into reads.
func claims(depth int, size int64) msgpack.Limits {
	size = max(size, baseBuffer)
	return msgpack.Limits{Depth: depth, Length: size, Count: size}
}

// second tells the mode. false: there are too few bytes for it, or the message is no message, by
// d.stage.
func (d *decoder) second(b []byte) (bool, error) {
	t, n, err := msgpack.ReadToken(b[d.pos:])
	if errors.Is(err, msgpack.ErrShort) {
		return false, nil
	}
	if err != nil {
		return false, d.wrong(err)
	}
	d.body = d.pos
	d.element, d.stage = 1, stageElement
	switch t.Kind {
	case msgpack.Int, msgpack.Uint, msgpack.Float32, msgpack.Float64, msgpack.Ext:
		d.mode = modeMessage
	case msgpack.Array:
		if t.Len > 0 {
			if d.body+int64(n) == int64(len(b)) {
				d.stage = stageSecond
				return false, nil
			}
			if isTime(b[d.body+int64(n)]) {
				d.mode = modeMeta
				break
			}
		}
		if int64(t.Len) > max(d.max, baseBuffer) {
			return false, faultf(TooLong, "an array of %d entries", t.Len)
		}
		d.mode = modeForward
		d.body += int64(n)
		d.pos = d.body
		d.claimed = int64(t.Len)
		d.entry = check{most: d.maxEvent}
		return true, nil
	case msgpack.Str, msgpack.Bin:
		d.mode = modePacked
		if int64(t.Len) > d.max {
			return false, faultf(TooLarge, "entries of %d bytes, the limit is %d", t.Len, d.max)
		}
		d.body += int64(n)
		d.pos = d.body
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
func (d *decoder) value(b []byte) (bool, error) {
	if d.element == 1 {
		switch d.mode {
		case modePacked:
			if d.bodyEnd > int64(len(b)) {
				return false, nil
			}
			d.pos = d.bodyEnd
			return true, nil
		case modeForward:
			d.ready = false
			err := d.entry.run(b[d.body:], d.claimed, &d.scan, d.max)
			d.pos = d.body + max(d.entry.pos, d.entry.off)
			if err != nil {
				return false, d.wrong(err)
			}
			d.bodyEnd = d.pos
			return d.entry.values() == d.claimed, nil
		case modeMessage, modeMeta:
		}
	}
	if !d.scanning {
		d.prepare()
		d.scanning = true
		d.begin(d.pos)
	}
	n, done, err := d.scan.Scan(b[d.pos:])
	d.pos += int64(n)
	if err != nil {
		return false, d.wrong(err)
	}
	if done {
		d.scanning = false
		d.end(d.pos)
	}
	return done, nil
}

// part is what an element is.
func (d *decoder) part() (start, end *int64) {
	i := d.element
	if d.mode == modeForward || d.mode == modePacked {
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

func (d *decoder) begin(at int64) {
	if start, _ := d.part(); start != nil {
		*start = at
	}
}

func (d *decoder) end(at int64) {
	d.pos = at
	if _, end := d.part(); end != nil {
		*end = at
	}
}
