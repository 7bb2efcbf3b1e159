// SPDX-License-Identifier: Apache-2.0

package load

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// How this file is organised. A chart has two panels with the same axis of offered rates: what the
// server's CPU was, and what it took. Runs of one shape are a line; a run that did not keep up has
// a cross in its mark, one without a rate stands alone, hollow. Colours are classes with a second
// set for dark surroundings; each line has a mark of its own form, so that no reader has to tell
// colours apart.

const (
	chartWidth  = 880.0
	panelLeft   = 86.0
	panelRight  = 24.0
	panelHeight = 270.0
	headHeight  = 128.0
	panelGap    = 72.0
	footHeight  = 64.0
	chartHeight = headHeight + 2*panelHeight + panelGap + footHeight
)

const chartStyle = `
svg { font: 13px system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif }
.ground { fill: #ffffff } .text { fill: #1c2128 } .quiet { fill: #57606a } .title { font-size: 17px; font-weight: 600 } .panel { font-weight: 600 }
.grid { stroke: #e2e5e9; stroke-width: 1 } .axis { stroke: #8c959f; stroke-width: 1 }
.ideal { stroke: #8c959f; stroke-width: 1.5; stroke-dasharray: 5 5; fill: none }
.line { fill: none; stroke-width: 2; stroke-linejoin: round } .mark { stroke-width: 1.5 } .hollow { fill: #ffffff; stroke-width: 2 } .cross { stroke: #ffffff; stroke-width: 1.5 }
.s0 { stroke: #0067b1 } .s1 { stroke: #c2410c } .s2 { stroke: #0a7f5a } .s3 { stroke: #a3307c } .s4 { stroke: #8a6100 } .s5 { stroke: #4b5563 }
.f0 { fill: #0067b1 } .f1 { fill: #c2410c } .f2 { fill: #0a7f5a } .f3 { fill: #a3307c } .f4 { fill: #8a6100 } .f5 { fill: #4b5563 }
@media (prefers-color-scheme: dark) {
.ground { fill: #0f1419 } .text { fill: #e6edf3 } .quiet { fill: #9da7b1 } .grid { stroke: #252c34 } .axis { stroke: #6e7781 } .ideal { stroke: #6e7781 }
.hollow { fill: #0f1419 } .cross { stroke: #0f1419 }
.s0 { stroke: #58b4f5 } .s1 { stroke: #ff8f5a } .s2 { stroke: #3ccf9f } .s3 { stroke: #f08bcb } .s4 { stroke: #e3b341 } .s5 { stroke: #aeb7c2 }
.f0 { fill: #58b4f5 } .f1 { fill: #ff8f5a } .f2 { fill: #3ccf9f } .f3 { fill: #f08bcb } .f4 { fill: #e3b341 } .f5 { fill: #aeb7c2 }
}
`

// colours is how many there are.
const colours = 6

// A series is a line of the chart: the runs of one shape.
type series struct {
	name   string
	class  int
	points []*Result
}

// WriteSVG draws what the server took, and its CPU, over what was offered.
func (r *Report) WriteSVG(w io.Writer) error {
	lines := r.series()
	var highest, cpu float64
	ack := true
	for i := range r.Runs {
		run := &r.Runs[i]
		highest = max(highest, run.offer(), run.Taken)
		if run.Server != nil {
			cpu = max(cpu, run.Server.CPUPercent)
		}
		ack = ack && run.Ack
	}
	var c chart
	c.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" aria-labelledby="title">`+"\n",
		chartWidth, chartHeight, chartWidth, chartHeight)
	c.printf("<title id=\"title\">%s</title>\n<style>%s</style>\n",
		escaped("Events per second offered to "+r.To+", its CPU, and what it took"), chartStyle)
	c.printf(`<rect class="ground" width="100%%" height="100%%"/>` + "\n")
	c.text(panelLeft, 32, "text title", "start", "CPU and throughput of "+shortened(r.To, 70))
	c.text(panelLeft, 54, "quiet", "start", r.subtitle())
	c.legend(lines)

	x := axisFor(highest)
	first := panel{
		top: headHeight, x: x, y: axisFor(max(cpu, 1)),
		title: "CPU of the server, per cent of one processor",
	}
	if cpu == 0 {
		first.title = "CPU of the server: not measured"
	}
	second := panel{top: headHeight + panelHeight + panelGap, x: x, y: x, title: "Taken, million events per second"}
	if ack {
		second.title = "Acked, million events per second"
	}
	c.panel(&first, 1)
	for _, s := range lines {
		c.series(&first, &s, func(run *Result) (float64, bool) {
			if run.Server == nil {
				return 0, false
			}
			return run.Server.CPUPercent, true
		})
	}
	c.panel(&second, 1e6)
	c.printf(`<path class="ideal" d="M%.1f %.1fL%.1f %.1f"/>`+"\n", second.at(0), second.up(0), second.at(x.end),
		second.up(x.end))
	for _, s := range lines {
		c.series(&second, &s, func(run *Result) (float64, bool) { return run.Taken, true })
	}
	bottom := second.top + panelHeight
	c.text(panelLeft, bottom+42, "text panel", "start", "Offered, million events per second")
	c.text(chartWidth-panelRight, bottom+42, "quiet", "end", "cross: did not keep up · hollow: no rate set")
	c.printf("</svg>\n")
	_, err := io.WriteString(w, c.b.String())
	return err
}

// offer is where a run stands in the chart.
func (r *Result) offer() float64 {
	if r.Rate > 0 {
		return r.Rate
	}
	return r.Offered
}

func (r *Report) series() []series {
	var lines []series
	for i := range r.Runs {
		name := r.Runs[i].shape()
		if len(lines) == 0 || lines[len(lines)-1].name != name {
			lines = append(lines, series{name: name, class: len(lines) % colours})
		}
		s := &lines[len(lines)-1]
		s.points = append(s.points, &r.Runs[i])
	}
	return lines
}

func (r *Report) subtitle() string {
	s := r.Started.Format("2006-01-02") + " · " + r.OS + "/" + r.Arch
	if len(r.Runs) == 0 {
		return s + " · nothing was measured"
	}
	run := &r.Runs[0]
	how := "no acks"
	if run.Ack {
		how = fmt.Sprintf("acks, %d in flight on each", run.Depth)
	}
	return s + fmt.Sprintf(" · events of %d bytes · %d connections · %s · %.3g s each", run.Size, run.Connections, how,
		run.Seconds)
}

// A chart is one being written.
type chart struct{ b strings.Builder }

func (c *chart) printf(format string, args ...any) { fmt.Fprintf(&c.b, format, args...) }

func (c *chart) text(x, y float64, class, anchor, text string) {
	c.printf(`<text class="%s" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", class, x, y, anchor, escaped(text))
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder takes everything
	return b.String()
}

// shortened cuts what would run out of the picture.
func shortened(text string, limit int) string {
	if r := []rune(text); len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return text
}

func (c *chart) legend(lines []series) {
	x := panelLeft
	for _, s := range lines {
		c.printf(`<path class="line s%d" d="M%.1f 78h26"/>`+"\n", s.class, x)
		c.mark(s.class, x+13, 78, true, false)
		c.text(x+34, 82, "text", "start", s.name)
		x += 52 + 7.2*float64(len([]rune(s.name)))
	}
}

// A panel is one of the two diagrams.
type panel struct {
	top   float64
	x, y  axis
	title string
}

func (p *panel) at(v float64) float64 {
	return panelLeft + v/p.x.end*(chartWidth-panelLeft-panelRight)
}

func (p *panel) up(v float64) float64 { return p.top + panelHeight - v/p.y.end*panelHeight }

// panel draws the axes. unit is what a label of the upright one counts in.
func (c *chart) panel(p *panel, unit float64) {
	c.text(panelLeft, p.top-12, "text panel", "start", p.title)
	for _, v := range p.y.ticks() {
		c.printf(`<path class="grid" d="M%.1f %.1fH%.1f"/>`+"\n", panelLeft, p.up(v), chartWidth-panelRight)
		c.text(panelLeft-8, p.up(v)+4, "quiet", "end", digits(v/unit))
	}
	c.printf(`<path class="axis" d="M%.1f %.1fH%.1f"/>`+"\n", panelLeft, p.up(0), chartWidth-panelRight)
	for _, v := range p.x.ticks() {
		c.printf(`<path class="axis" d="M%.1f %.1fv5"/>`+"\n", p.at(v), p.up(0))
		c.text(p.at(v), p.up(0)+20, "quiet", "middle", digits(v/1e6))
	}
}

// series draws a line through the runs that have a rate, and a mark for each.
func (c *chart) series(p *panel, s *series, value func(*Result) (float64, bool)) {
	var path strings.Builder
	for _, run := range s.points {
		if v, ok := value(run); ok && run.Rate > 0 {
			step := byte('L')
			if path.Len() == 0 {
				step = 'M'
			}
			fmt.Fprintf(&path, "%c%.1f %.1f", step, p.at(run.offer()), p.up(v))
		}
	}
	if path.Len() > 0 {
		c.printf(`<path class="line s%d" d="%s"/>`+"\n", s.class, path.String())
	}
	for _, run := range s.points {
		v, ok := value(run)
		if !ok {
			continue
		}
		c.printf("<g><title>%s</title>", escaped(s.name+": "+grouped(run.Offered)+"/s offered, "+digits(v)))
		c.mark(s.class, p.at(run.offer()), p.up(v), run.Rate > 0, run.Rate > 0 && !run.KeptUp)
		c.printf("</g>\n")
	}
}

// mark draws the mark of a series, of a form of its own.
func (c *chart) mark(class int, x, y float64, full, crossed bool) {
	fill := fmt.Sprintf("mark s%d f%d", class, class)
	if !full {
		fill = fmt.Sprintf("hollow s%d", class)
	}
	size := 4.5
	if crossed {
		size = 6.5
	}
	switch class % colours {
	case 0:
		c.printf(`<circle class="%s" cx="%.1f" cy="%.1f" r="%.1f"/>`, fill, x, y, size)
	case 1:
		c.printf(`<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, fill, x-size+.5, y-size+.5,
			2*size-1, 2*size-1)
	case 2:
		c.printf(`<path class="%s" d="M%.1f %.1fl%.1f %.1fh%.1fz"/>`, fill, x, y-size-1, size+.5, 2*size, -2*size-1)
	case 3:
		c.printf(`<path class="%s" d="M%.1f %.1fl%.1f %.1fl%.1f %.1fl%.1f %.1fz"/>`, fill, x, y-size-1, size+1, size+1,
			-size-1, size+1, -size-1, -size-1)
	case 4:
		c.printf(`<path class="%s" d="M%.1f %.1fl%.1f %.1fh%.1fz"/>`, fill, x, y+size+1, size+.5, -2*size, -2*size-1)
	default:
		c.printf(`<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, fill, x-size, y-2.5, 2*size, 5.0)
	}
	if crossed {
		c.printf(`<path class="cross" d="M%.1f %.1fl6 6m0 -6l-6 6"/>`, x-3, y-3)
	}
}

// An axis begins at 0 and has a line at each step.
type axis struct{ end, step float64 }

// axisFor is one that reaches limit, with four to ten steps of 1, 2 or 5 times a power of ten.
func axisFor(limit float64) axis {
	if !(limit > 0) || math.IsInf(limit, 0) {
		return axis{1, .2}
	}
	step := math.Pow(10, math.Floor(math.Log10(limit))-1)
	for _, k := range [...]float64{2, 2.5, 2, 2} { // 1, 2, 5, 10, 20
		if limit/step <= 10 {
			break
		}
		step *= k
	}
	return axis{step * math.Ceil(limit/step), step}
}

func (a axis) ticks() []float64 {
	var v []float64
	for i := 0; float64(i)*a.step <= a.end*(1+1e-9); i++ {
		v = append(v, float64(i)*a.step)
	}
	return v
}

// digits writes at most four of them, or whole thousands.
func digits(v float64) string {
	if math.Abs(v) >= 1000 {
		return grouped(v)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
