// SPDX-License-Identifier: Apache-2.0

package fluent

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/tinylib/msgp/msgp"
)

// EventTime is a time with nanoseconds as MessagePack extension of type 0 (docs/forward.md rule 9).
// Seconds are unsigned, so it reaches from 1970 to 2106; a time before that is 0, which servers
// take for now.
type EventTime time.Time

const (
	eventTimeType = 0
	eventTimeSize = 8
)

func init() {
	// The registry of msgp takes a type once. A program that links the original too has the type
	// registered by it.
	defer func() { _ = recover() }()
	msgp.RegisterExtension(eventTimeType, func() msgp.Extension { return new(EventTime) })
}

// ExtensionType implements msgp.Extension.
func (t *EventTime) ExtensionType() int8 { return eventTimeType }

// Len implements msgp.Extension.
func (t *EventTime) Len() int { return eventTimeSize }

// MarshalBinaryTo implements msgp.Extension: b has room for Len bytes.
func (t *EventTime) MarshalBinaryTo(b []byte) error {
	sec, nsec := seconds(time.Time(*t))
	binary.BigEndian.PutUint32(b, uint32(sec))
	binary.BigEndian.PutUint32(b[4:], nsec)
	return nil
}

// UnmarshalBinary implements msgp.Extension.
func (t *EventTime) UnmarshalBinary(b []byte) error {
	if len(b) != eventTimeSize {
		return fmt.Errorf("fluent: an EventTime of %d bytes", len(b))
	}
	nsec := binary.BigEndian.Uint32(b[4:])
	if nsec >= 1e9 {
		return fmt.Errorf("fluent: an EventTime with %d nanoseconds", nsec)
	}
	*t = EventTime(time.Unix(int64(binary.BigEndian.Uint32(b)), int64(nsec)))
	return nil
}

// seconds is a time as EventTime holds it.
func seconds(t time.Time) (sec int64, nsec uint32) {
	sec = t.Unix()
	if sec < 0 {
		return 0, 0
	}
	return min(sec, math.MaxUint32), uint32(t.Nanosecond())
}
