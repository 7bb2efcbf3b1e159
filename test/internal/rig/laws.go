// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A Scrape is what /metrics said at one moment: each series, by its name and the values of its
// labels, which come in the order of their names: "spillway_input_event_fates_total stored apps".
type Scrape map[string]float64

var (
	series = regexp.MustCompile(`^(\w+)(?:\{(.*)\})? (\S+)$`)
	labels = regexp.MustCompile(`\w+="((?:[^"\\]|\\.)*)"`)
	tells  = regexp.MustCompile(`code"?[=:]"?admin-telling\b.*\baddress"?[=:]"?([0-9.]+:[0-9]+)`)
)

// ParseScrape reads the text format.
func ParseScrape(text io.Reader) (Scrape, error) {
	s := Scrape{}
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		m := series.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("no series: %q", line)
		}
		value, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			return nil, err
		}
		key := m[1]
		for _, l := range labels.FindAllStringSubmatch(m[2], -1) {
			key += " " + l[1]
		}
		s[key] = value
	}
	return s, lines.Err()
}

// of are the values of the one label that the series of a name have.
func (s Scrape) of(name string) (values []string) {
	for key := range s {
		if value, ok := strings.CutPrefix(key, name+" "); ok {
			values = append(values, value)
		}
	}
	return values
}

// sum is of all series of a name that have a label with this value.
func (s Scrape) sum(name, label string) (n float64) {
	for key, value := range s {
		if strings.HasPrefix(key, name+" ") && strings.Contains(key+" ", " "+label+" ") {
			n += value
		}
	}
	return n
}

// check returns an error for the first law that does not hold: those of the account, and that an
// output whose cursor stands at the journal's end has every event accounted for. They are of one
// process's life. While the journal takes nothing, senders wait with what has come in already.
func (s Scrape) check() error {
	stored := 0.0
	waits := s["spillway_journal_failing"] == 1
	for _, in := range s.of("spillway_input_events_total") {
		stored += s["spillway_input_event_fates_total stored "+in]
		for _, unit := range []string{"event", "chunk"} {
			came, became := s["spillway_input_"+unit+"s_total "+in], s.sum("spillway_input_"+unit+"_fates_total", in)
			if came != became && (!waits || came < became) {
				return fmt.Errorf("input %s: %v %ss came, and something became of %v", in, came, unit, became)
			}
		}
	}
	if s["spillway_counting"] == 1 {
		return fmt.Errorf("what the journal held at the start is still being counted")
	}
	for _, out := range s.of("spillway_output_events_total") {
		of := func(name string) float64 { return s["spillway_output_"+name+" "+out] }
		had := of("found_events") + stored
		became := of("events_total") + of("filtered_events_total") + s.sum("spillway_output_dropped_events_total",
			out) +
			of("dead_lettered_events_total") + of("behind_events") + of("outside_events_total")
		if had != became {
			return fmt.Errorf("output %s: there were %v events for it, and something became of %v", out, had, became)
		}
		if of("behind_events") > 0 && of("behind_bytes") == 0 {
			return fmt.Errorf("output %s: %v events are behind, and no bytes of the journal hold them", out,
				of("behind_events"))
		}
	}
	return nil
}

// Scraper asks each time on a connection of its own.
var Scraper = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// scrape asks for /metrics.
func (c *Collector) scrape() (Scrape, error) {
	answer, err := Scraper.Get("http://" + c.Admin + "/metrics")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("/metrics: %s", answer.Status)
	}
	return ParseScrape(answer.Body)
}

// Settles waits until the laws hold in /metrics, which they do at rest.
func (c *Collector) Settles() {
	c.T.Helper()
	if c.Admin == "" {
		return
	}
	var err error
	for deadline := time.Now().Add(time.Minute); ; {
		var s Scrape
		if s, err = c.scrape(); err == nil {
			err = s.check()
		}
		if err == nil || c.Over() {
			return
		}
		if time.Now().After(deadline) {
			c.T.Errorf("/metrics does not add up: %v", err)
			return
		}
		<-time.After(20 * time.Millisecond)
	}
}
