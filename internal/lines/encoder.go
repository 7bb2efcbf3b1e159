// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"encoding/base64"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// An Encoder writes events as lines. It remembers the envelope of the event before, so that the
// next one of the same second and tag costs only the nanoseconds and the record. The zero value has
// the default options. An Encoder is not for several goroutines at once.
type Encoder struct {
	keys   Options // resolved: an empty name is left out
	format timeFormat
	ready  bool     // keys and names are set
	names  []string // time and tag, as far as they are written
	all    []string // and the metadata

	// envelope is the line up to the record, with the time of sec and the given tag:
	//	{"time":"2026-11-21T02:03:04.123456789Z","tag":"app.web"
	envelope []byte
	at       int // where digits of the nanoseconds stand, and how many
	digits   int
	sec      int64
	nsec     uint32
	exact    bool // the envelope is only that of nsec
	zero     bool // the time is left out because it is 0
	tag      []byte
}

// NewEncoder returns an Encoder with options; nil is the default ones. The error wraps ErrKey or
// ErrTimeFormat.
func NewEncoder(o *Options) (*Encoder, error) {
	if o == nil {
		o = &Options{}
	}
	e := &Encoder{keys: o.resolved()}
	if err := e.keys.check(); err != nil {
		return nil, err
	}
	var err error
	if e.format, err = parseTimeFormat(o.TimeFormat); err != nil {
		return nil, err
	}
	e.prepare()
	return e, nil
}

func (e *Encoder) prepare() {
	for _, name := range []string{e.keys.Time, e.keys.Tag} {
		if name != "" {
			e.names = append(e.names, name)
		}
	}
	e.all = e.names[:len(e.names):len(e.names)]
	if e.keys.Metadata != "" {
		e.all = append(e.all, e.keys.Metadata)
	}
	e.ready = true
}

// AppendLine appends the line of one event, its newline included. It keeps neither the tag nor the
// entry.
func (e *Encoder) AppendLine(dst []byte, tag string, entry forward.Entry) []byte {
	start := len(dst)
	dst, names := e.appendHead(dst, tag, entry.Sec, entry.Nsec, entry.Meta)
	before := len(dst)
	out, n, err := msgpack.AppendJSONPairs(dst, entry.Record, names, forward.AppendExtJSON)
	switch {
	case err != nil || n != len(entry.Record):
		dst = append(dst, `"undecodable":`...)
		dst = appendBase64(dst, entry.Record)
	case len(out) == before && before > start+1:
		dst = dst[:before-1] // an empty record: the comma goes
	default:
		dst = out
	}
	return append(dst, '}', '\n')
}

// appendHead appends what stands before the record, with a comma behind it, and returns the names
// that keys of the record must not have.
func (e *Encoder) appendHead(dst []byte, tag string, sec int64, nsec uint32, meta []byte) (_ []byte, names []string) {
	start := len(dst)
	dst = e.appendEnvelope(dst, tag, sec, nsec)
	names = e.names
	if len(meta) > 1 && e.keys.Metadata != "" {
		if t, _, err := msgpack.ReadToken(meta); err != nil || t.Kind != msgpack.KindMap || t.Len > 0 {
			names = e.all
			dst = e.comma(dst, start)
			dst = append(dst, '"')
			dst = append(dst, e.keys.Metadata...)
			dst = append(dst, '"', ':')
			dst = appendMetadata(dst, meta)
		}
	}
	return e.comma(dst, start), names
}

// appendEnvelope appends the line up to the time and the tag.
func (e *Encoder) appendEnvelope(dst []byte, tag string, sec int64, nsec uint32) []byte {
	if nsec >= nanos { // no valid entry has that
		sec, nsec = sec+int64(nsec/nanos), nsec%nanos
	}
	zero := sec == 0 && nsec == 0 && e.keys.OmitZero
	if sec != e.sec || zero != e.zero || e.exact && nsec != e.nsec || string(e.tag) != tag || len(e.envelope) == 0 {
		e.zero = zero
		e.begin(sec, nsec, tag)
	}
	start := len(dst)
	dst = append(dst, e.envelope...)
	if e.digits > 0 {
		putDigits(dst[start+e.at:start+e.at+e.digits], nsec)
	}
	return dst
}

// comma appends one unless the line that begins at start has no member yet.
func (e *Encoder) comma(dst []byte, start int) []byte {
	if len(dst) == start+1 {
		return dst
	}
	return append(dst, ',')
}

// begin writes the envelope of a new second or tag.
func (e *Encoder) begin(sec int64, nsec uint32, tag string) {
	if !e.ready {
		e.keys = e.keys.resolved()
		e.prepare()
	}
	e.sec, e.nsec = sec, nsec
	e.tag = append(e.tag[:0], tag...)
	b := append(e.envelope[:0], '{')
	e.digits, e.exact = 0, false
	if e.keys.Time != "" && !e.zero {
		b = append(b, '"')
		b = append(b, e.keys.Time...)
		b = append(b, '"', ':')
		b, e.at, e.digits = e.format.append(b, sec, nsec)
		e.exact = e.digits == 0
	}
	if e.keys.Tag != "" {
		b = e.comma(b, 0)
		b = append(b, '"')
		b = append(b, e.keys.Tag...)
		b = append(b, '"', ':')
		b = msgpack.AppendJSONString(b, e.tag)
	}
	e.envelope = b
}

func appendMetadata(dst, meta []byte) []byte {
	out, n, err := msgpack.AppendJSON(dst, meta, forward.AppendExtJSON)
	if err != nil || n != len(meta) {
		return appendBase64(dst, meta)
	}
	return out
}

func appendBase64(dst, b []byte) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, b)
	return append(dst, '"')
}
