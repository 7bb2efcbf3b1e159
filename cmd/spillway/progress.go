// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// A progress shows how far a replay is: a bar on a terminal, elsewhere a line now and then.
//
//	[==========>         ] 52% 1,234 of 2,345 events, 400/s, 3s left
type progress struct {
	screen *terminal // nil: none, or not one that can take back a line
	w      io.Writer
	all    tally
	now    func() time.Time
	began  time.Time
	told   time.Time
}

const progressEvery = 10 * time.Second // between two lines

func newProgress(screen *terminal, w io.Writer, all tally) *progress {
	p := &progress{w: w, all: all, now: time.Now}
	if screen != nil && screen.draws() {
		p.screen = screen
	}
	p.began = p.now()
	p.told = p.began
	return p
}

// show tells that so much is done.
func (p *progress) show(done tally) {
	now := p.now()
	if p.screen != nil {
		p.screen.set(p.bar(done, now))
		return
	}
	if now.Sub(p.told) >= progressEvery {
		p.told = now
		fmt.Fprintln(p.w, "spillway:", p.text(done, now))
	}
}

// end takes the bar away.
func (p *progress) end() {
	if p.screen != nil {
		p.screen.set("")
	}
}

const barWidth = 20

func (p *progress) bar(done tally, now time.Time) string {
	n := 0
	if p.all.events > 0 {
		n = int(min(done.events*100/p.all.events, 100))
	}
	return barOf(n) + p.text(done, now)
}

// barOf draws a bar of 0 to 100 percent, to be followed by words.
func barOf(percent int) string {
	full := percent * barWidth / 100
	bar := strings.Repeat("=", full)
	if full < barWidth {
		bar += ">" + strings.Repeat(" ", barWidth-full-1)
	}
	return fmt.Sprintf("[%s] %d%% ", bar, percent)
}

func (p *progress) text(done tally, now time.Time) string {
	s := fmt.Sprintf("%s of %s events acked", humanize.Comma(done.events), humanize.Comma(p.all.events))
	passed := now.Sub(p.began)
	if done.events == 0 || passed < time.Second {
		return s
	}
	rate := float64(done.events) / passed.Seconds()
	left := time.Duration(float64(max(0, p.all.events-done.events)) / rate * float64(time.Second))
	return fmt.Sprintf("%s, %s/s, %v left", s, humanize.Comma(int64(rate)), left.Round(time.Second))
}
