// SPDX-License-Identifier: Apache-2.0

// Command lines is banaconda's comparison: 100,000 lines of 1,000 bytes to a file, from one
// goroutine, from 20 with a logger each, and from 20 on one logger.
//
//	go run ./bench/lines [-rounds 3] [-lines 100000] [-only spillway,phuslu] [-dir DIR]
//
// It tells when the last call had returned, when Close had, how many lines are not in the files,
// and what banaconda told: the least, the most and the average time that one goroutine took for its
// calls, where these wait for their line (spillway-wait) and where they do not. All loggers of a
// table run in turn, round by round, and the medians are told. The files are read back outside of
// the measured time and removed.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/bench/internal/peers"
	"github.com/spillwaylog/spillway/bench/internal/table"
)

func main() {
	rounds := flag.Int("rounds", 3, "runs of each logger; the median is told")
	count := flag.Int("lines", 100_000, "lines of each goroutine")
	only := flag.String("only", "", "loggers to run, separated by commas; default: all")
	shapes := flag.String("shapes", "one,each,shared", "one goroutine; 20 with a logger each; 20 on one logger")
	dir := flag.String("dir", "", "where to put the files: the disk that is measured; default: the folder for temporary files")
	flag.Parse()
	if err := run(*rounds, *count, *only, *shapes, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "lines:", err)
		os.Exit(1)
	}
}

// kinds are the loggers; logrus and the writers of single lines are slow enough to be left out of a
// short run with -only.
func kinds() []peers.LocalKind {
	block := func(o spillway.Options) func(path string) (peers.Local, error) {
		return func(path string) (peers.Local, error) {
			o := o
			o.Overflow, o.MaxWait = spillway.OverflowBlock, time.Minute
			return peers.OpenSpillway("file://"+path, &o)
		}
	}
	own := []peers.LocalKind{
		{Name: "spillway-wait", Open: block(spillway.Options{WaitDelivered: true, MaxWait: time.Hour})},
		{Name: "spillway-text", Async: true, Open: func(path string) (peers.Local, error) {
			return peers.OpenSpillway("file://"+path+"?format=text&flags=date,time,micros",
				&spillway.Options{Overflow: spillway.OverflowBlock, MaxWait: time.Minute})
		}},
	}
	return slices.Insert(slices.Clone(peers.Locals), 1, own...)
}

// A shape is how many goroutines there are and how many loggers they have.
type shape struct {
	name                string
	goroutines, loggers int
	title               string
}

var all = []shape{
	{"one", 1, 1, "one goroutine"},
	{"each", 20, 20, "20 goroutines, a logger each"},
	{"shared", 20, 1, "20 goroutines, one logger"},
}

func run(rounds, count int, only, shapes, dir string) error {
	dir, err := os.MkdirTemp(dir, "bench-lines-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	for _, s := range all {
		if !slices.Contains(strings.Split(shapes, ","), s.name) {
			continue
		}
		type row struct {
			kind          peers.LocalKind
			calls, closed []float64
			least, most   []float64 // of a goroutine
			average       []float64
			lost          int
		}
		var rows []*row
		for _, k := range kinds() {
			if only == "" || slices.Contains(strings.Split(only, ","), k.Name) {
				rows = append(rows, &row{kind: k})
			}
		}
		for range rounds {
			for _, r := range rows {
				m, err := measure(r.kind, s, count, dir)
				if err != nil {
					return fmt.Errorf("%s: %w", r.kind.Name, err)
				}
				r.calls = append(r.calls, m.calls.Seconds())
				r.closed = append(r.closed, m.closed.Seconds())
				r.least = append(r.least, slices.Min(m.goroutines).Seconds())
				r.most = append(r.most, slices.Max(m.goroutines).Seconds())
				r.average = append(r.average, average(m.goroutines).Seconds())
				r.lost += m.lost
			}
		}
		t := table.New(fmt.Sprintf("%s, %d lines of 1,000 bytes each", s.title, count), "logger", "calls s", "closed s",
			"spread s",
			"goroutine min s", "max s", "avg s", "lost")
		for _, r := range rows {
			t.Row(r.kind.Name, table.Number(table.Median(r.calls), 3), table.Number(table.Median(r.closed), 3),
				table.Number(slices.Min(r.closed), 3)+"-"+table.Number(slices.Max(r.closed), 3),
				table.Number(table.Median(r.least), 3), table.Number(table.Median(r.most), 3),
				table.Number(table.Median(r.average), 3),
				fmt.Sprint(r.lost))
		}
		t.Print(os.Stdout)
	}
	return nil
}

type measured struct {
	calls, closed time.Duration
	goroutines    []time.Duration // what each took for its calls
	lost          int
}

func average(times []time.Duration) time.Duration {
	var sum time.Duration
	for _, t := range times {
		sum += t
	}
	return sum / time.Duration(len(times))
}

func measure(kind peers.LocalKind, s shape, count int, dir string) (m measured, err error) {
	if dir, err = os.MkdirTemp(dir, kind.Name); err != nil {
		return m, err
	}
	defer os.RemoveAll(dir)
	var loggers []peers.Local
	for i := range s.loggers {
		l, err := kind.Open(filepath.Join(dir, fmt.Sprintf("log%d.jsonl", i)))
		if err != nil {
			return m, err
		}
		loggers = append(loggers, l)
	}
	text := strings.Repeat("#", 1000)
	var group sync.WaitGroup
	m.goroutines = make([]time.Duration, s.goroutines)
	begin := time.Now()
	for i := range s.goroutines {
		group.Go(func() {
			l, begin := loggers[i%len(loggers)], time.Now()
			for range count {
				l.Line(text)
			}
			m.goroutines[i] = time.Since(begin)
		})
	}
	group.Wait()
	m.calls = time.Since(begin)
	errs := make([]error, len(loggers))
	for i, l := range loggers {
		group.Go(func() { errs[i] = l.Close() })
	}
	group.Wait()
	m.closed = time.Since(begin)
	m.lost = s.goroutines * count
	files, err := os.ReadDir(dir)
	if err != nil {
		return m, err
	}
	for _, f := range files {
		if !f.Type().IsRegular() { // some link the name they were told to the file they write
			continue
		}
		n, err := countLines(filepath.Join(dir, f.Name()), text)
		if err != nil {
			return m, err
		}
		m.lost -= n
	}
	return m, errors.Join(errs...)
}

// countLines counts the lines of a file that have text in them.
func countLines(path, text string) (int, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	buf := make([]byte, 1<<20)
	n, have := 0, 0
	for {
		k, err := f.Read(buf[have:])
		have += k
		rest := buf[:have]
		for {
			line, after, ok := bytes.Cut(rest, []byte{'\n'})
			if !ok {
				break
			}
			if bytes.Contains(line, []byte(text)) {
				n++
			}
			rest = after
		}
		have = copy(buf, rest)
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}
