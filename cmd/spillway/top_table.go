// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// A topTable makes lines of two looks at a collector:
//
//	spillway v0.1.0 at http://127.0.0.1:24220, pid 4711, up 3h2m, ack synced
//	journal 922 MiB of 1.0 GiB | 10 syncs/s, 2.5ms each | 4 dead letters, 7 events
//
//	INPUT         EVENTS/s   BYTES/s  CONNS  REFUSED  INVALID        EVENTS
//	apps             1,000    99 KiB      2        2        2         3,000
//
//	OUTPUT        EVENTS/s     WAITING    BYTES     AGE  LETTERS  STATE
//	bus                  0       2,990  3.0 MiB    1m7s        2  fails x4, in 9s: connection refused
//	archive          1,000           0      0 B      0s        0  works
//	old                  0           0      0 B      0s        0  removed, dropped 5
//
//	MESSAGES, the newest last
//	12:00:01 peer-garbage apps x30  peer=1.2.3.4:5
//	12:00:02 output-broken bus: connection refused  behind=2990
//
// In the lines all text of the collector's is printable ASCII.
type topTable struct {
	address     string
	before, now *look // before is nil while there is none to compare with
	failed      error // of the looks since
	since       time.Time
}

// take goes on to a look.
func (t *topTable) take(l *look) {
	t.before, t.now, t.failed = t.now, l, nil
	if b := t.before; !b.Since.Equal(l.Since) || b.Pid != l.Pid { // another process, which counts anew
		t.before = nil
	}
}

// fail notes that a look failed.
func (t *topTable) fail(err error, now time.Time) {
	if t.failed == nil {
		t.since = now
	}
	t.failed = err
}

// A lineStyle is how a line looks on a screen.
type lineStyle uint8

const (
	styleNone lineStyle = iota
	styleHead
	styleWarn
	styleBad
)

type topLine struct {
	text  string
	style lineStyle
}

// onceWidth is that of a table that is printed: wide enough for all.
const onceWidth = 4096

// minName is the least width of a name, and besideName what all other columns of an output take,
// its state in few words.
const (
	minName    = 12
	besideName = 68
)

// lines are those for a terminal of so many columns and rows; of 0 rows all there are.
func (t *topTable) lines(width, height int) []topLine {
	width = max(width, 40)
	var lines []topLine
	add := func(m lineStyle, format string, args ...any) {
		text := strings.TrimRight(printableASCII(fmt.Sprintf(format, args...)), " ")
		lines = append(lines, topLine{text[:min(len(text), width)], m})
	}
	n := t.now
	if t.failed != nil {
		add(styleBad, "no answer for %v: %v", time.Since(t.since).Round(time.Second), t.failed)
	}
	add(styleHead, "spillway %s at %s, pid %d, up %v, ack %s", n.Version, t.address, n.Pid, age(n.UptimeSeconds), n.Ack)
	t.journal(add)
	longest := minName
	for i := range n.Inputs {
		longest = max(longest, len(n.Inputs[i].Name))
	}
	for i := range n.Outputs {
		longest = max(longest, len(n.Outputs[i].Name))
	}
	name := max(min(longest, width-besideName), minName)
	inputs, outputs := t.inputs(name), t.outputs(name)
	room := len(inputs) + len(outputs)
	if height > 0 {
		room = max(height-len(lines)-4-min(len(n.Messages), 1)*3, 2) // heads and empty lines, and a message with its
	}
	add(styleNone, "")
	add(styleHead, "%-*s %9s %9s %6s %8s %8s %13s", name, "INPUT", "EVENTS/s", "BYTES/s", "CONNS", "REFUSED", "INVALID",
		"EVENTS")
	room -= t.list(add, inputs, max(room-len(outputs), room/2), "inputs")
	add(styleNone, "")
	add(styleHead, "%-*s %9s %11s %8s %7s %8s  %s", name, "OUTPUT", "EVENTS/s", "WAITING", "BYTES", "AGE", "LETTERS",
		"STATE")
	t.list(add, outputs, room, "outputs")
	t.messages(add, height-len(lines)-2, height > 0)
	if height > 0 {
		lines = lines[:min(len(lines), height)]
	}
	return lines
}

// journal adds what is to be said of the whole.
func (t *topTable) journal(add func(lineStyle, string, ...any)) {
	j := &t.now.Journal
	syncs := "syncs: -"
	if t.before != nil {
		if n := j.Syncs - t.before.Journal.Syncs; n > 0 && n < 1<<40 {
			each := (j.SyncSeconds - t.before.Journal.SyncSeconds) / float64(n)
			syncs = fmt.Sprintf("%s syncs/s, %.1fms each", t.rate(int64(n)), each*1000)
		} else {
			syncs = "no sync"
		}
	}
	how := styleNone
	if j.Limit > 0 && float64(j.Used) > 0.8*float64(j.Limit) {
		how = styleWarn
	}
	add(how, "journal %s of %s | %s | %s dead letters, %s events", size64(j.Used), size64(j.Limit), syncs,
		humanize.Comma(t.now.Letters.Letters), humanize.Comma(t.now.Letters.Events))
	if f := j.Failure; f != nil {
		add(styleBad, "the journal takes nothing since %s, senders wait: %s", clock(f.Since), f.Error)
	}
	if t.now.Counting {
		add(styleNone, "what the journal held at the start is still being counted: WAITING is too small")
	}
}

// A row is the line of an input or output. Where there is not room for all, those of most worth are
// shown.
type row struct {
	topLine
	worth int64
}

// list adds rows, at most so many, and returns how many lines that were.
func (t *topTable) list(add func(lineStyle, string, ...any), rows []row, limit int, what string) int {
	left := 0
	if len(rows) > limit {
		keep := max(limit-1, 1)
		order := slices.Clone(rows)
		slices.SortStableFunc(order, func(a, b row) int { return cmp.Compare(b.worth, a.worth) })
		rows, left = order[:keep], len(order)-keep
	}
	for i := range rows {
		add(rows[i].style, "%s", rows[i].text)
	}
	if left > 0 {
		add(styleNone, "... %d more %s", left, what)
		return len(rows) + 1
	}
	return len(rows)
}

// rate is a count since the look before, as a number a second.
func (t *topTable) rate(n int64) string {
	if t.before == nil {
		return "-"
	}
	return humanize.Comma(t.perSecond(n))
}

func (t *topTable) perSecond(n int64) int64 {
	return int64(float64(n)/max(t.now.Time.Sub(t.before.Time).Seconds(), 0.001) + 0.5)
}

// inputs are the rows of those that there are. One that a reload has removed stays while something
// comes by it.
func (t *topTable) inputs(name int) (rows []row) {
	for i := range t.now.Inputs {
		n, b := &t.now.Inputs[i], &inputAccount{}
		if t.before != nil && i < len(t.before.Inputs) { // those that a reload adds come behind
			b = &t.before.Inputs[i]
		}
		came, refused := n.In-b.In, n.Refused+n.RefusedMessages
		if n.Removed && n.Connections == 0 && (came == 0 || t.before == nil) {
			continue
		}
		r := row{worth: came}
		if t.before != nil && (refused > b.Refused+b.RefusedMessages || n.Invalid > b.Invalid) {
			r.style, r.worth = styleWarn, 1<<61
		}
		bytes := "-"
		if t.before != nil {
			bytes = size64(t.perSecond(n.Bytes - b.Bytes))
		}
		r.text = fmt.Sprintf("%-*s %9s %9s %6d %8s %8s %13s", name, nameIn(n.Name, name), t.rate(came), bytes,
			n.Connections,
			humanize.Comma(refused), humanize.Comma(n.Invalid), humanize.Comma(n.In))
		rows = append(rows, r)
	}
	return rows
}

// outputs are the rows of those that there are.
func (t *topTable) outputs(name int) (rows []row) {
	for i := range t.now.Outputs {
		n, b := &t.now.Outputs[i], &outputAccount{}
		if t.before != nil && i < len(t.before.Outputs) {
			b = &t.before.Outputs[i]
		}
		r := row{worth: n.Behind}
		state := "works"
		switch f := n.Failure; {
		case f != nil:
			r.style, r.worth = styleBad, 1<<62
			state = fmt.Sprintf("fails x%d, in %v: %s", f.Tries, age(f.Pause), f.Error)
		case n.Removed:
			state = "removed"
		case t.before != nil && (n.DeadLettered > b.DeadLettered || allDropped(n) > allDropped(b)):
			r.style, r.worth = styleWarn, 1<<61
		}
		if d := allDropped(n); d > 0 {
			state += fmt.Sprintf(", dropped %s", humanize.Comma(d))
		}
		r.text = fmt.Sprintf("%-*s %9s %11s %8s %7v %8s  %s", name, nameIn(n.Name, name), t.rate(n.Out-b.Out),
			humanize.Comma(n.Behind),
			size64(n.BehindBytes), age(n.BehindSeconds), humanize.Comma(n.DeadLettered), state)
		rows = append(rows, r)
	}
	return rows
}

// allDropped is how many events an output dropped, for all reasons together.
func allDropped(o *outputAccount) (n int64) {
	for _, d := range o.Dropped {
		n += d
	}
	return n
}

// messages adds those that there is room for, the newest last.
func (t *topTable) messages(add func(lineStyle, string, ...any), room int, bounded bool) {
	list := t.now.Messages
	if bounded {
		list = list[max(0, len(list)-max(room, 0)):]
	}
	if len(list) == 0 {
		return
	}
	add(styleNone, "")
	add(styleHead, "MESSAGES, the newest last")
	for i := range list {
		x := &list[i]
		how, text := styleNone, x.Text
		if t.now.Time.Sub(x.Time) < recentMessage {
			how = styleWarn
		}
		if x.Code != "" {
			text = x.Code
		}
		if x.About != "" {
			text += " " + x.About
		}
		if x.Times > 1 {
			text += fmt.Sprintf(" x%d", x.Times)
		}
		if x.Error != "" {
			text += ": " + x.Error
		}
		add(how, "%s %s  %s", clock(x.Time), text, x.Attrs)
	}
}

// recentMessage is how long one stands out.
const recentMessage = time.Minute

// clock is a time of the day, with its day where that is not today's.
func clock(at time.Time) string {
	at = at.Local()
	if time.Since(at) < 12*time.Hour {
		return at.Format(time.TimeOnly)
	}
	return at.Format("2006-01-02 15:04")
}

// age is so many seconds, in few letters.
func age(s float64) string {
	switch d := time.Duration(min(max(s, 0), 1e9) * float64(time.Second)); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d/time.Second%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d/time.Minute%60)
	default:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
}

// size64 is so many bytes, in few letters.
func size64(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// nameIn is a name in so many letters.
func nameIn(name string, limit int) string { return short(printableASCII(name), limit) }
