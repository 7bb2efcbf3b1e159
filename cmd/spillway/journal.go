// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/letters"
	"github.com/spillwaylog/spillway/internal/lines"
	"github.com/spillwaylog/spillway/journal"
)

type journalCmd struct {
	Ls     journalLsCmd     `cmd:"" help:"List segments and cursors, dead letters, or rings."`
	Cat    journalCatCmd    `cmd:"" help:"Print the events that are still there, as JSON lines."`
	Verify journalVerifyCmd `cmd:"" help:"Read everything, and exit with 1 if something cannot be read."`
}

// letters is the directory of dead letters that this one is or has, "" if there is none; alone says
// that there is no journal besides.
func (d journalDir) letters() (dir string, alone bool) {
	dir, ok := letters.Find(d.Dir)
	if !ok {
		return "", false
	}
	return dir, dir == d.Dir || !isDir(filepath.Join(d.Dir, "journal"))
}

func (d journalDir) inspect() (*journal.Inspection, error) {
	dir := d.Dir
	if sub := filepath.Join(dir, "journal"); isDir(sub) {
		dir = sub
	}
	return journal.Inspect(dir)
}

// outputs are the collector's outputs by their cursors. A journal may have none: a logger's spill
// is one, too.
func (d journalDir) outputs() (map[string]collector.End, error) {
	dir, err := filepath.Abs(d.Dir)
	if err != nil {
		return nil, err
	}
	if filepath.Base(dir) == "journal" && !isDir(filepath.Join(dir, "journal")) {
		dir = filepath.Dir(dir)
	}
	return collector.OutputEnds(dir)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

type journalLsCmd struct{ journalDir }

// Run prints two tables of each journal.
func (c *journalLsCmd) Run(s *streams) error {
	return c.each(s.out, func(d journalDir) error { return (&journalLsCmd{d}).look(s) })
}

func (c *journalLsCmd) look(s *streams) error {
	if rings, err := c.rings(); err != nil || len(rings) > 0 {
		return errors.Join(err, lsRings(s.out, rings))
	}
	dead, alone := c.letters()
	if alone {
		return lsLetters(s.out, dead, true)
	}
	i, err := c.inspect()
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SEGMENT\tSIZE\tUSED\tRECORDS\tNOTE")
	for _, g := range i.Segments {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\n", g.Name, g.Size, g.Valid, g.Records, segmentNote(g))
	}
	ends, endsErr := c.outputs()
	behind, err := eventsBehind(i)
	fmt.Fprintln(w, "\nCURSOR OF\tPOSITION\tEVENTS BEHIND\tBYTES BEHIND\tNOTE")
	for n, r := range i.Cursors {
		name, note := r.Name, ""
		if e, ok := ends[name]; ok {
			name = printableASCII(e.String())
		}
		if r.Err != nil {
			note = r.Err.Error()
		}
		fmt.Fprintf(w, "%s\t%v\t%d\t%d\t%s\n", name, r.Pos, behind[n], r.Backlog, note)
	}
	if len(i.Quarantine) > 0 {
		fmt.Fprintln(w, "\nSET ASIDE")
		for _, name := range i.Quarantine {
			fmt.Fprintln(w, name)
		}
	}
	err = errors.Join(w.Flush(), err, endsErr)
	if err == nil && dead != "" {
		if _, err = fmt.Fprintln(s.out); err == nil {
			err = lsLetters(s.out, dead, false)
		}
	}
	return err
}

// eventsBehind counts the events that each cursor has yet to pass. Records that are no chunks hold
// none that could be counted.
func eventsBehind(i *journal.Inspection) ([]int64, error) {
	behind := make([]int64, len(i.Cursors))
	var c forward.Chunk
	err := i.Records(func(r journal.Record) bool {
		if c.Parse(r.Data) == nil {
			for n := range behind {
				if r.Pos > i.Cursors[n].Pos {
					behind[n] += int64(c.Events)
				}
			}
		}
		return true
	})
	return behind, err
}

func segmentNote(g journal.SegmentInfo) string {
	switch {
	case g.Err != nil:
		return g.Err.Error()
	case g.Spare:
		return "spare"
	case len(g.Damage) > 0:
		return fmt.Sprintf("%d places cannot be read", len(g.Damage))
	}
	return ""
}

type journalCatCmd struct {
	journalDir
	Letters bool `help:"Print the dead letters, each event with the output that refused it, the reason, the time and its place in the journal. Without it, a data directory's dead letters are only counted, and a directory of them has the events alone."`
}

// Run prints one line an event.
func (c *journalCatCmd) Run(s *streams) error {
	return c.each(io.Discard, func(d journalDir) error { return (&journalCatCmd{d, c.Letters}).look(s) })
}

func (c *journalCatCmd) look(s *streams) error {
	if rings, err := c.rings(); err != nil || len(rings) > 0 {
		return errors.Join(err, catRings(s, rings))
	}
	dead, alone := c.letters()
	if alone || c.Letters && dead != "" {
		return catLetters(s, dead, c.Letters)
	}
	if c.Letters {
		return nil
	}
	i, err := c.inspect()
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(s.out, 64<<10)
	var broken int
	var p recordPrinter
	err = i.Records(func(r journal.Record) bool {
		bad, writeErr := p.print(w, r)
		if bad {
			broken++
			fmt.Fprintf(s.err, "record that ends at %v is no chunk\n", r.Pos)
		}
		return writeErr == nil
	})
	if broken > 0 {
		err = errors.Join(err, fmt.Errorf("%d records are no chunks", broken))
	}
	err = errors.Join(err, w.Flush()) // which repeats what a write has said
	if err == nil && dead != "" {
		n, lettersErr := lettersLeft(dead, "")
		if err = lettersErr; n.letters > 0 {
			fmt.Fprintf(s.err, "and %v that an output refused: --letters prints them\n", n)
		}
	}
	return err
}

// recordPrinter is what printing records needs, kept for its memory.
type recordPrinter struct {
	chunk    forward.Chunk
	inflater forward.Inflater
	encoder  lines.Encoder
	line     []byte
}

// print prints the events of one record; bad says that it is no chunk.
func (p *recordPrinter) print(w io.Writer, r journal.Record) (bad bool, err error) {
	return p.events(r, func(tag string, e forward.Entry) error {
		p.line = p.encoder.AppendLine(p.line[:0], tag, e)
		_, err := w.Write(p.line)
		return err
	})
}

// events yields the events of one record, until there is an error.
func (p *recordPrinter) events(r journal.Record, yield func(tag string, e forward.Entry) error) (bad bool, err error) {
	if p.chunk.Parse(r.Data) != nil || p.inflater.Inflate(&p.chunk) != nil {
		return true, nil
	}
	entries := forward.ReadEntries(p.chunk.Entries)
	for {
		e, ok := entries.Next()
		if !ok {
			return entries.Err() != nil, nil
		}
		if err := yield(p.chunk.Tag, e); err != nil {
			return false, err
		}
	}
}

type journalVerifyCmd struct{ journalDir }

// Run reads everything.
func (c *journalVerifyCmd) Run(s *streams) error {
	return c.each(s.out, func(d journalDir) error { return (&journalVerifyCmd{d}).look(s) })
}

func (c *journalVerifyCmd) look(s *streams) error {
	out := &sticky{w: s.out}
	rings, err := c.rings()
	if err != nil || len(rings) > 0 {
		err = errors.Join(err, verifyRings(out, rings))
		return errors.Join(err, out.err)
	}
	dead, alone := c.letters()
	if !alone {
		i, inspectErr := c.inspect()
		if err = inspectErr; err == nil {
			err = verify(out, i)
		}
	}
	if dead != "" {
		l, readErr := letters.Read(dead)
		if readErr == nil {
			fmt.Fprintln(out, "dead letters:")
			readErr = verify(out, l.Inspection)
		}
		err = errors.Join(err, readErr)
	}
	return errors.Join(err, out.err)
}

// sticky remembers the first error of a writer: where damage could not be told, the exit status
// must not say that all is well.
type sticky struct {
	w   io.Writer
	err error
}

func (s *sticky) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	if s.err == nil {
		s.err = err
	}
	return n, err
}

func verify(out io.Writer, i *journal.Inspection) error {
	var records, bytes int64
	bad := len(i.Quarantine)
	for _, name := range i.Quarantine {
		fmt.Fprintf(out, "set aside earlier: %s\n", filepath.Join(i.Dir, "quarantine", name))
	}
	for _, g := range i.Segments {
		records += g.Records
		bytes += g.Bytes
		if g.Err != nil {
			bad++
			fmt.Fprintf(out, "%s: %v\n", g.Name, g.Err)
		}
		for _, d := range g.Damage {
			bad++
			fmt.Fprintln(out, d)
		}
	}
	for _, r := range i.Cursors {
		if r.Err != nil {
			bad++
			fmt.Fprintf(out, "cursor %s: %v\n", r.Name, r.Err)
		}
	}
	var inflater forward.Inflater
	if err := i.Records(func(r journal.Record) bool {
		if err := verifyChunk(r.Data, &inflater); err != nil {
			bad++
			fmt.Fprintf(out, "record that ends at %v: %v\n", r.Pos, err)
		}
		return true
	}); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d records, %d bytes\n", records, bytes)
	if bad > 0 {
		return fmt.Errorf("%d things cannot be read; nothing was changed", bad)
	}
	return nil
}

// verifyChunk reads a record to its last entry.
func verifyChunk(b []byte, inflater *forward.Inflater) error {
	var chunk forward.Chunk
	if err := chunk.Parse(b); err != nil {
		return err
	}
	if err := inflater.Inflate(&chunk); err != nil {
		return err
	}
	entries := forward.ReadEntries(chunk.Entries)
	n := 0
	for {
		if _, ok := entries.Next(); !ok {
			break
		}
		n++
	}
	if err := entries.Err(); err != nil {
		return err
	}
	if n != chunk.Events {
		return fmt.Errorf("it says %d events and holds %d", chunk.Events, n)
	}
	return nil
}
