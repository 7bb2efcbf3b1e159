// SPDX-License-Identifier: Apache-2.0

package ring

// Record is one record as read.
type Record struct {
	Key  uint64 // monotonic nanoseconds since the ring's birth
	Lane uint16
	Time int64  // Unix nanoseconds, as given to Append
	Data []byte // lies in the ring until the record is done: see Cut. Read it within Guard, or with Copy
}

// Loss is what was appended and cannot be read.
type Loss struct {
	Records uint64 // as far as their number is known; exact for a ring that failed under this process
	Bytes   uint64 // of the regions, headers and padding included
	Regions uint64 // places where records must have been
}

func (l *Loss) add(m Loss) {
	l.Records += m.Records
	l.Bytes += m.Bytes
	l.Regions += m.Regions
}
