// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/letters"
	"github.com/spillwaylog/spillway/internal/lines"
	"github.com/spillwaylog/spillway/journal"
	"github.com/spillwaylog/spillway/msgpack"
)

const (
	reasonShown = 100    // characters of a reason in a table
	kindsShown  = 30     // rows of the table of reasons
	maxKinds    = 10_000 // reasons that are told apart: a server may put something new into each
)

// A tally counts letters.
type tally struct{ letters, events, bytes int64 }

func (t *tally) add(e *letters.Entry) {
	t.letters++
	t.events += int64(e.Events())
	t.bytes += e.Bytes
}

func (t tally) String() string {
	return fmt.Sprintf("%s, %s", plural(t.letters, "letter"), plural(t.events, "event"))
}

func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// A letterKind is what letters of one output with one reason have together.
type letterKind struct{ output, reason string }

type letterTally struct {
	letterKind
	tally
	first, last time.Time
}

// letterTable counts letters by output and reason.
type letterTable struct {
	kinds map[letterKind]*letterTally
	all   tally
}

func (t *letterTable) add(e *letters.Entry) {
	if t.kinds == nil {
		t.kinds = map[letterKind]*letterTally{}
	}
	t.all.add(e)
	kind := letterKind{e.Output, reasonOf(e)}
	if t.kinds[kind] == nil && len(t.kinds) >= maxKinds {
		kind = letterKind{e.Output, "other reasons"}
	}
	k := t.kinds[kind]
	if k == nil {
		k = &letterTally{letterKind: kind, first: e.Time}
		t.kinds[kind] = k
	}
	k.add(e)
	k.last = e.Time
}

// print prints a row for each output and reason, those with most events first.
func (t *letterTable) print(w io.Writer) {
	fmt.Fprintln(w, "DEAD LETTERS OF\tLETTERS\tEVENTS\tBYTES\tFIRST\tLAST\tREASON")
	var rows []*letterTally
	for _, k := range t.kinds {
		rows = append(rows, k)
	}
	slices.SortFunc(rows, func(a, b *letterTally) int {
		return cmp.Or(cmp.Compare(b.events, a.events), cmp.Compare(a.output, b.output), cmp.Compare(a.reason, b.reason))
	})
	shown := rows[:min(len(rows), kindsShown)]
	for _, k := range shown {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%s\t%s\n",
			printableASCII(k.output), k.letters, k.events, k.bytes, stamp(k.first), stamp(k.last), k.reason)
	}
	if rows = rows[len(shown):]; len(rows) > 0 {
		var others tally
		for _, k := range rows {
			others.letters += k.letters
			others.events += k.events
			others.bytes += k.bytes
		}
		fmt.Fprintf(w, "and\t%d\t%d\t%d\t\t\t%d more reasons\n", others.letters, others.events, others.bytes, len(rows))
	}
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// reasonOf is a reason as a table shows it: what a server said is not to move the cursor of a
// terminal.
func reasonOf(e *letters.Entry) string {
	if e.Err != nil {
		return "cannot be read"
	}
	s := printableASCII(e.Reason)
	if len(s) > reasonShown {
		s = s[:reasonShown] + "..."
	}
	return s
}

// lsLetters prints the table of reasons and, with each, a row for each letter.
func lsLetters(out io.Writer, dir string, each bool) error {
	l, err := letters.Read(dir)
	if err != nil {
		return err
	}
	var table letterTable
	err = l.Letters(func(e *letters.Entry) bool {
		table.add(e)
		return true
	})
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	table.print(w)
	if !each || err != nil {
		return errors.Join(err, w.Flush())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	// Not a table that waits for its widest cell: there may be a million.
	b := bufio.NewWriterSize(out, 64<<10)
	const row = "%-17s  %-20s  %-17s  %-12s  %7v  %-20s  %-20s  %s\n"
	fmt.Fprintf(b, "\n"+row, "LETTER", "TIME", "POSITION", "ENTRIES", "EVENTS", "TAG", "OUTPUT", "REASON")
	err = l.Letters(func(e *letters.Entry) bool {
		_, err := fmt.Fprintf(b, row, e.Pos, stamp(e.Time), journal.Position(e.Position), entriesOf(e), e.Events(),
			printableASCII(e.Chunk.Tag), printableASCII(e.Output), reasonOf(e))
		return err == nil
	})
	return errors.Join(err, b.Flush()) // which repeats what a write has said
}

// entriesOf says in a few characters which entries of its record a letter has.
func entriesOf(e *letters.Entry) string {
	if e.Entries == nil {
		return "all"
	}
	const maxRanges = 3 // ranges
	var b []byte
	for i, ranges := 0, 0; i < len(e.Entries); ranges++ {
		if ranges > 0 {
			b = append(b, ',')
		}
		if ranges == maxRanges {
			return string(append(b, "..."...))
		}
		from := e.Entries[i]
		to := from
		for i++; i < len(e.Entries) && e.Entries[i] == to+1; i++ {
			to++
		}
		b = strconv.AppendInt(b, int64(from), 10)
		if to > from {
			b = strconv.AppendInt(append(b, '-'), int64(to), 10)
		}
	}
	return string(b)
}

// catLetters prints one line an event: as journal cat does, or with what was refused, by which
// output and why.
func catLetters(s *streams, dir string, why bool) error {
	l, err := letters.Read(dir)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(s.out, 64<<10)
	p := letterPrinter{why: why}
	broken := 0
	err = l.Letters(func(e *letters.Entry) bool {
		bad, writeErr := p.print(w, e)
		if bad != nil {
			broken++
			fmt.Fprintf(s.err, "letter %v: %v\n", e.Pos, bad)
		}
		return writeErr == nil
	})
	if broken > 0 {
		err = errors.Join(err, fmt.Errorf("%s cannot be read", plural(int64(broken), "letter")))
	}
	return errors.Join(err, w.Flush()) // which repeats what a write has said
}

// letterPrinter is what printing letters needs, kept for its memory.
type letterPrinter struct {
	why      bool
	inflater forward.Inflater
	encoder  lines.Encoder
	line     []byte
}

// print prints the events of one letter; bad says why it is none.
func (p *letterPrinter) print(w io.Writer, e *letters.Entry) (bad, err error) {
	if e.Err != nil {
		return e.Err, nil
	}
	if err := p.inflater.Inflate(e.Chunk); err != nil {
		return err, nil
	}
	entries := forward.ReadEntries(e.Chunk.Entries)
	for i := 0; ; i++ {
		entry, ok := entries.Next()
		if !ok {
			return entries.Err(), nil
		}
		p.line = p.line[:0]
		if p.why {
			p.line = appendWhy(p.line, e, i)
		}
		p.line = p.encoder.AppendLine(p.line, e.Chunk.Tag, entry)
		if p.why {
			p.line = append(p.line[:len(p.line)-1], '}', '\n')
		}
		if _, err := w.Write(p.line); err != nil {
			return nil, err
		}
	}
}

// appendWhy appends the line of an event of a letter up to the event itself, which is a member of
// its own: no key of it can be mistaken then.
func appendWhy(b []byte, e *letters.Entry, i int) []byte {
	b = append(b, `{"output":`...)
	b = msgpack.AppendJSONString(b, []byte(e.Output))
	b = append(b, `,"reason":`...)
	b = msgpack.AppendJSONString(b, []byte(e.Reason))
	b = append(b, `,"refused":"`...)
	b = e.Time.UTC().AppendFormat(b, time.RFC3339Nano)
	return fmt.Appendf(b, `","position":"%v","entry":%d,"letter":"%v","event":`,
		journal.Position(e.Position), e.Entry(i), e.Pos)
}

// lettersLeft is how many letters a directory has; with output, those of that one. That it has none
// while others have some is an error: it may be a slip.
func lettersLeft(dir, output string) (n tally, err error) {
	l, err := letters.Read(dir)
	if err != nil {
		return n, err
	}
	others := map[string]bool{}
	err = l.Letters(func(e *letters.Entry) bool {
		if output == "" || e.Output == output {
			n.add(e)
		} else {
			others[strconv.Quote(e.Output)] = true
		}
		return true
	})
	if err == nil && n.letters == 0 && len(others) > 0 {
		err = fmt.Errorf("--output %q has no letters; there are letters of %s", output,
			strings.Join(slices.Sorted(maps.Keys(others)), ", "))
	}
	return n, err
}
