// SPDX-License-Identifier: Apache-2.0

package wire

import "github.com/spillwaylog/spillway/msgpack"

// HasOption tells whether a complete message has the element that is the option.
func (d *Decoder) HasOption() bool {
	if d.Mode == ModeForward || d.Mode == ModePacked {
		return d.elements > 2
	}
	return d.elements > 3
}

// Name is the tag of a complete message.
func (d *Decoder) Name(b []byte) []byte { return b[d.tag:d.tagEnd] }

// Options are the option of a message that has one.
func (d *Decoder) Options(b []byte) []byte { return b[d.option:d.optionEnd] }

// Entries are those of a complete message of Forward mode, and what is packed in one of the packed
// modes.
func (d *Decoder) Entries(b []byte) []byte { return b[d.body:d.bodyEnd] }

// Event is where time and record of a complete message of Message mode stand.
func (d *Decoder) Event() (start, end int) { return int(d.body), int(d.recordEnd) }

// Shape fills in s, which is blank, for the event of such a message, from its time on.
func (d *Decoder) Shape(b []byte, s *Shape) {
	if !d.Usual {
		d.shape(b, s)
		return
	}
	s.Record = int(d.record - d.body)
	if d.Mode == ModeMeta {
		s.Meta = s.Record - 1
	}
}

func (d *Decoder) shape(b []byte, s *Shape) {
	event := b[d.body:d.recordEnd]
	if _ = s.begin(event, 0); s.Verdict != VerdictInvalid {
		s.end(event, int(d.record-d.body))
	}
}

// Scanner is for entries that the message has packed: the decoder does not need it before the next
// message.
func (d *Decoder) Scanner() *msgpack.Scanner {
	d.ready = false
	return &d.scan
}

// Missing is how many bytes are certainly missing when there are size, 0 if that is not known.
func (d *Decoder) Missing(size int) int64 {
	if d.stage == stageElement && d.Mode == ModePacked && d.element == 1 {
		return max(d.bodyEnd+int64(d.elements)-2-int64(size), 0)
	}
	return 0
}

// Claim is how long the message in progress will be by what its headers and its first part say, 0
// if they say nothing.
func (d *Decoder) Claim() int64 {
	const rest = 256 // an option is shorter, as a rule
	if d.stage != stageElement || d.element != 1 {
		return 0
	}
	switch d.Mode {
	case ModePacked:
		return d.bodyEnd + rest
	case ModeForward:
		if seen := d.Entry.Values(); seen > 16 {
			each := float64(d.Entry.Pos) / float64(seen)
			return d.body + min(int64(each*float64(d.claimed)*33/32), d.Max) + rest
		}
	case ModeMessage, ModeMeta:
	}
	return 0
}
