// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A Report is what Run measured.
type Report struct {
	Processes int      `json:"processes"`
	Lines     int      `json:"lines"` // of each process
	Rounds    int      `json:"rounds"`
	Dir       string   `json:"dir"`
	Results   []Result `json:"results"`
}

// A Result is one way, over all rounds.
type Result struct {
	Way     string    `json:"way"`
	Says    string    `json:"says"`
	Seconds float64   `json:"seconds"`     // from the first start to the last exit, the median
	CPU     float64   `json:"cpu_seconds"` // of all processes of a round, the server included, the median
	Walls   []float64 `json:"rounds_seconds"`
	CPUs    []float64 `json:"rounds_cpu_seconds"`
	Found   Found     `json:"found"` // in all rounds
}

// A measure is one round of a way.
type measure struct {
	wall, cpu time.Duration
	found     Found
}

func (r *Result) add(m measure) {
	r.Walls = append(r.Walls, m.wall.Seconds())
	r.CPUs = append(r.CPUs, m.cpu.Seconds())
	r.Seconds, r.CPU = median(r.Walls), median(r.CPUs)
	r.Found.add(m.found)
}

// verdict says in words what was found of what was written.
func (r *Result) verdict() string {
	var wrong []string
	for _, w := range []struct {
		n    int
		what string
	}{
		{r.Found.Missing, "missing"},
		{r.Found.Torn, "torn"},
		{r.Found.Repeated, "repeated"},
		{r.Found.Late, "out of order"},
	} {
		if w.n > 0 {
			wrong = append(wrong, fmt.Sprint(w.n, " ", w.what))
		}
	}
	if wrong == nil {
		return "all, in order"
	}
	return strings.Join(wrong, ", ")
}

// measured are the ways of which there is at least a round.
func (r *Report) measured() []Result {
	var all []Result
	for _, x := range r.Results {
		if len(x.Walls) > 0 {
			all = append(all, x)
		}
	}
	return all
}

// Measured says that there is something to report.
func (r *Report) Measured() bool { return r != nil && len(r.measured()) > 0 }

// scale is where a time stands on a logarithmic axis that has all of them: 0 to 1.
type scale struct{ low, high float64 } // seconds

func scaleOf(all []Result) scale {
	s := scale{math.Inf(1), 0}
	for _, r := range all {
		s.low, s.high = min(s.low, r.Seconds), max(s.high, r.Seconds)
	}
	s.low = math.Pow(10, math.Floor(math.Log10(s.low)))
	s.high = math.Pow(10, math.Ceil(math.Log10(s.high)))
	return s
}

func (s scale) at(seconds float64) float64 {
	if s.high <= s.low {
		return 1
	}
	return math.Log(seconds/s.low) / math.Log(s.high/s.low)
}

func (s scale) String() string { return fmt.Sprintf("%g to %g s, logarithmic", s.low, s.high) }

const barCells = 30

// WriteTable writes a line for each way, with a bar.
func (r *Report) WriteTable(w io.Writer) error {
	all := r.measured()
	axis := scaleOf(all)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "WAY\t\tSECONDS\tCPU s\t\tLINES")
	for _, x := range all {
		bar := strings.Repeat("#", max(1, int(math.Round(axis.at(x.Seconds)*barCells))))
		fmt.Fprintf(tw, "%s\t%s\t%7.2f\t%5.2f\t%-*s\t%s\n", x.Way, x.Says, x.Seconds, x.CPU, barCells, bar, x.verdict())
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s; bars: %v.\n", r.title(), axis)
	return err
}

func (r *Report) title() string {
	s := fmt.Sprintf("%d processes, %d lines each", r.Processes, r.Lines)
	if r.Rounds > 1 {
		s += fmt.Sprintf(", medians of %d rounds", r.Rounds)
	}
	return s
}

// WriteJSON writes all of it.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteSVG draws a bar for each way.
func (r *Report) WriteSVG(w io.Writer) error {
	const width, left, right, top, row = 880.0, 330.0, 190.0, 84.0, 30.0
	all := r.measured()
	axis := scaleOf(all)
	height := top + row*float64(len(all)) + 20
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" aria-labelledby="title">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title id=\"title\">Many processes, one log: seconds from the first start to the last exit</title>\n<style>%s</style>\n", style)
	b.WriteString(`<rect class="ground" width="100%" height="100%"/>` + "\n")
	fmt.Fprintf(&b, `<text x="24" y="34" class="text title">Many processes, one log: seconds from the first start to the last exit</text>`+"\n")
	fmt.Fprintf(&b, `<text x="24" y="56" class="quiet">%s; bars: %v</text>`+"\n", r.title(), axis)
	for i, x := range all {
		y := top + row*float64(i)
		fmt.Fprintf(&b, `<text x="%g" y="%g" class="text" text-anchor="end">`, left-12, y+16)
		_ = xml.EscapeText(&b, []byte(x.Says))
		long := max(2, axis.at(x.Seconds)*(width-left-right))
		fmt.Fprintf(&b, "</text>\n"+`<rect class="%s" x="%g" y="%g" width="%.1f" height="20" rx="2"/>`+"\n",
			class(x.Way), left, y, long)
		fmt.Fprintf(&b, `<text x="%.1f" y="%g" class="text">%.2f s<tspan class="quiet" dx="8">%s</tspan></text>`+"\n",
			left+long+8, y+16, x.Seconds, x.verdict())
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func class(way string) string {
	switch way {
	case "spillway", "shared-append", "shared-lock", "collector":
		return "ours"
	}
	return "theirs"
}

const style = `
svg { font: 13px system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif }
.ground { fill: #ffffff } .text { fill: #1c2128 } .quiet { fill: #57606a } .title { font-size: 17px; font-weight: 600 }
.ours { fill: #0067b1 } .theirs { fill: #8c959f }
@media (prefers-color-scheme: dark) {
.ground { fill: #0f1419 } .text { fill: #e6edf3 } .quiet { fill: #9da7b1 } .ours { fill: #58b4f5 } .theirs { fill: #6e7781 }
}
`

func median[T cmp.Ordered](all []T) T {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}
