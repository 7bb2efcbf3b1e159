// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteTable writes a line for each run, and below it what needs to be known about them.
func (r *Report) WriteTable(w io.Writer) error {
	acks, others, server := false, false, false
	for _, run := range r.Runs {
		acks = acks || run.Ack
		others = others || !run.Ack
		server = server || run.Server != nil
	}
	head := []string{"", "OFFERED/s", "SENT/s"}
	switch {
	case !acks:
		head = append(head, "TAKEN/s")
	case others:
		head = append(head, "ACKED/s, TAKEN/s")
	default:
		head = append(head, "ACKED/s")
	}
	head = append(head, "KEPT UP")
	if acks {
		head = append(head, "p50", "p90", "p99", "p99.9", "MAX")
	}
	head = append(head, "CPU", "CPU s/M", "RESIDENT", "OWN CPU")
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "%s\t\n", strings.Join(head, "\t"))
	for i := range r.Runs {
		run := &r.Runs[i]
		cells := []string{run.shape(), grouped(run.Offered), grouped(run.Sent), grouped(run.Taken), run.verdict()}
		if acks {
			cells = append(cells, run.Latency.cells()...)
		}
		cells = append(cells, run.Server.cells()...)
		own := "-"
		if run.Generator != nil {
			own = fmt.Sprintf("%.0f %%", run.Generator.CPUPercent)
		}
		fmt.Fprintf(tw, "%s\t\n", strings.Join(append(cells, own), "\t"))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for i := range r.Runs {
		for _, note := range r.Runs[i].notes() {
			if _, err := fmt.Fprintf(w, "%s, %s/s: %s\n", r.Runs[i].shape(), grouped(r.Runs[i].Offered),
				note); err != nil {
				return err
			}
		}
	}
	if !server {
		_, err := fmt.Fprintln(w, "CPU and memory of the server were not measured.")
		return err
	}
	return nil
}

// shape is how the events travelled, in a few words.
func (r *Result) shape() string {
	s := string(r.Mode)
	if r.Compress != "none" {
		s += " " + r.Compress
	}
	if r.Batch > 1 {
		s += fmt.Sprintf(" ×%d", r.Batch)
	}
	return s
}

func (r *Result) verdict() string {
	switch {
	case r.Rate == 0 && r.Error == "":
		return "-"
	case r.KeptUp:
		return "yes"
	}
	return "NO"
}

// notes are what the figures alone do not tell.
func (r *Result) notes() []string {
	var notes []string
	if r.Error != "" {
		notes = append(notes, "failed after "+fmt.Sprintf("%.1f", r.Seconds)+" s: "+r.Error)
	}
	if !r.KeptUp && r.Rate > 0 && r.Error == "" {
		note := "did not keep up: " + grouped(float64(r.Backlog)) + " events were due and not sent"
		if !r.Ack {
			note += fmt.Sprintf(", and what was sent took %.2f s more to be read", r.DrainSeconds)
		}
		notes = append(notes, note)
	}
	if r.Unacked > 0 {
		notes = append(notes, grouped(float64(r.Unacked))+" messages without an ack")
	}
	if !r.Drained && !r.Ack && r.Error == "" {
		notes = append(notes, "the server did not close the connections, so nobody knows whether it has read everything")
	}
	return notes
}

func (l *Latency) cells() []string {
	if l == nil || l.Count == 0 {
		return []string{"-", "-", "-", "-", "-"}
	}
	var cells []string
	for _, us := range [...]float64{l.P50, l.P90, l.P99, l.P999, l.Max} {
		cells = append(cells, short(time.Duration(us*float64(time.Microsecond))))
	}
	return cells
}

// short writes a duration with three digits.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
	case d < 10*time.Second:
		return fmt.Sprintf("%.0f ms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}

func (u *Usage) cells() []string {
	if u == nil {
		return []string{"-", "-", "-"}
	}
	return []string{
		fmt.Sprintf("%.0f %%", u.CPUPercent), fmt.Sprintf("%.3f", u.CPUPerMillion),
		fmt.Sprintf("%.0f MB", float64(u.ResidentMax)/1e6),
	}
}
