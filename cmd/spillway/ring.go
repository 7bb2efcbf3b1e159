// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/lines"
	"github.com/spillwaylog/spillway/msgpack"
	"github.com/spillwaylog/spillway/ring"
)

// rings finds rings in the directory; none: it is to be read as a journal.
func (d journalDir) rings() ([]*ring.Inspection, error) {
	all, err := ring.Inspect(d.Dir)
	if errors.Is(err, ring.ErrNone) {
		return nil, nil
	}
	return all, err
}

// lsRings prints a table of rings, and one of the marks in them.
func lsRings(out io.Writer, all []*ring.Inspection) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RING\tSIZE\tUSED\tRECORDS\tBYTES\tMADE\tNOTE")
	marks := 0
	for _, i := range all {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\t%s\n", i.Path, i.Size, i.Used, i.Records, i.Bytes,
			i.Owner.Made.UTC().Format(time.RFC3339), ringNote(i))
		marks += len(i.Marks)
	}
	if marks > 0 {
		fmt.Fprintln(w, "\nIN FLIGHT\tFIRST KEY\tLAST KEY\tLANE\tRING")
		for _, i := range all {
			for _, m := range i.Marks {
				fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\n", printable(m.Label[:]), m.First, m.Last, m.Lane, i.Path)
			}
		}
	}
	return w.Flush()
}

// printable shows a label as text if it is text.
func printable(b []byte) string {
	for _, c := range b {
		if c <= ' ' || c > '~' {
			return fmt.Sprintf("%x", b)
		}
	}
	return string(b)
}

func ringNote(i *ring.Inspection) string {
	switch {
	case i.Err != nil:
		return i.Err.Error()
	case i.Live:
		return fmt.Sprintf("in use by process %d", i.Owner.PID)
	case i.Lost.Regions > 0:
		return fmt.Sprintf("left by process %d; %d places cannot be read", i.Owner.PID, i.Lost.Regions)
	}
	return fmt.Sprintf("left by process %d", i.Owner.PID)
}

// catRings prints the events of rings, ring by ring, each in the order in which they were logged.
func catRings(s *streams, all []*ring.Inspection) error {
	w := bufio.NewWriterSize(s.out, 64<<10)
	var encoder lines.Encoder
	var line []byte
	var broken int
	var err error
	for _, i := range all {
		if i.Err != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", i.Path, i.Err))
		}
		i.AllRecords(func(r ring.Record) bool {
			tag, entry, bad := ringEvent(r)
			if bad != nil {
				broken++
				fmt.Fprintf(s.err, "%s: record with key %d is no event: %v\n", i.Path, r.Key, bad)
				return true
			}
			line = encoder.AppendLine(line[:0], tag, entry)
			_, writeErr := w.Write(line)
			return writeErr == nil
		})
	}
	if broken > 0 {
		err = errors.Join(err, fmt.Errorf("%d records are no events", broken))
	}
	return errors.Join(err, w.Flush()) // which repeats what a write has said
}

// ringEvent takes a ring's record apart: the length of the tag as a varint, the tag, the
// MessagePack map.
func ringEvent(r ring.Record) (tag string, e forward.Entry, err error) {
	n, k := binary.Uvarint(r.Data)
	if k <= 0 || n > uint64(len(r.Data)-k) {
		return "", e, errors.New("no tag")
	}
	tag, e.Record = string(r.Data[k:k+int(n)]), r.Data[k+int(n):]
	if used, err := msgpack.Skip(e.Record); err != nil {
		return "", e, err
	} else if used != len(e.Record) {
		return "", e, fmt.Errorf("%d bytes behind the record", len(e.Record)-used)
	}
	e.Sec, e.Nsec = r.Time/1e9, uint32(r.Time%1e9)
	if r.Time%1e9 < 0 {
		e.Sec, e.Nsec = e.Sec-1, uint32(r.Time%1e9+1e9)
	}
	return tag, e, nil
}

// verifyRings reads everything.
func verifyRings(out io.Writer, all []*ring.Inspection) error {
	var records, bytes uint64
	bad := 0
	for _, i := range all {
		records += i.Records
		bytes += i.Bytes
		if i.Err != nil {
			bad++
			fmt.Fprintf(out, "%s: %v\n", i.Path, i.Err)
		}
		if i.Lost.Regions > 0 && !i.Live { // what is in use changes while it is read
			bad++
			fmt.Fprintf(out, "%s: %d places cannot be read: at least %d records, at most %d bytes\n", i.Path,
				i.Lost.Regions, i.Lost.Records, i.Lost.Bytes)
		}
		if i.BadMarks > 0 {
			bad++
			fmt.Fprintf(out, "%s: %d entries of the table of what is in flight cannot be read\n", i.Path, i.BadMarks)
		}
		i.AllRecords(func(r ring.Record) bool {
			if _, _, err := ringEvent(r); err != nil {
				bad++
				fmt.Fprintf(out, "%s: record with key %d: %v\n", i.Path, r.Key, err)
			}
			return true
		})
	}
	fmt.Fprintf(out, "%d records, %d bytes\n", records, bytes)
	if bad > 0 {
		return fmt.Errorf("%d things cannot be read; nothing was changed", bad)
	}
	return nil
}
