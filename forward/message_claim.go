// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"

	"github.com/spillwaylog/spillway/msgpack"
)

// hasOption tells whether a complete message has the element that is the option.
func (d *decoder) hasOption() bool {
	if d.mode == modeForward || d.mode == modePacked {
		return d.elements > 2
	}
	return d.elements > 3
}

// missing is how many bytes are certainly missing when there are size, 0 if that is not known.
func (d *decoder) missing(size int) int64 {
	if d.stage == stageElement && d.mode == modePacked && d.element == 1 {
		return max(d.bodyEnd+int64(d.elements)-2-int64(size), 0)
	}
	return 0
}

// claim is how long the message in progress will be by what its headers and its first part say, 0
// if they say nothing.
func (d *decoder) claim() int64 {
	const rest = 256 // an option is shorter, as a rule
	if d.stage != stageElement || d.element != 1 {
		return 0
	}
	switch d.mode {
	case modePacked:
		return d.bodyEnd + rest
	case modeForward:
		if seen := d.entry.values(); seen > 16 {
			each := float64(d.entry.pos) / float64(seen)
			return d.body + min(int64(each*float64(d.claimed)*33/32), d.max) + rest
		}
	case modeMessage, modeMeta:
	}
	return 0
}

func (d *decoder) tooLarge() error {
	return faultf(TooLarge, "a message of more than %d bytes", d.max)
}

// wrong gives an error of the scanner its kind. All of them end the stream: where the message would
// end is not known any more.
func (d *decoder) wrong(err error) error {
	if d.pos > d.max {
		return d.tooLarge() // as it would have been, had the bytes come in smaller pieces
	}
	return scanFault(err, Garbage)
}

// scanFault gives an error of the scanner its kind.
func scanFault(err error, other TroubleKind) error {
	switch {
	case errors.Is(err, msgpack.ErrDepth):
		return &fault{TooDeep, err}
	case errors.Is(err, msgpack.ErrLength), errors.Is(err, msgpack.ErrCount):
		return &fault{TooLong, err}
	}
	return &fault{other, err}
}
