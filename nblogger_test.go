// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
)

// The tests and benchmarks of banaconda's asynchronous logger, nb-logger: 100,000 lines of 1,000
// bytes, from one goroutine, from 20 with a logger each, and from 20 with one logger,
// asynchronously and with each call waiting until its line is written; the classic flags (date,
// time, microseconds, file and line). Beyond what they ask, each line must be there, once and
// whole, when Close returns.

const (
	nbThreads = 20
	nbSize    = 1000
)

var nbText = strings.Repeat("#", nbSize)

// nbLines is how many lines each goroutine writes: the article's number where it is affordable.
func nbLines(tb testing.TB, all int) int {
	switch {
	case testing.Short():
		return all / 100
	case raceEnabled:
		return all / 20
	}
	return all
}

// nbShm is a folder in memory for a ring, if there is one with room, of which containers give
// little: on a disk each page of a ring would be written out now and then.
func nbShm(tb testing.TB) string {
	tb.Helper()
	if dir := needs.Shm(tb); nbFree(dir) >= 40<<20 {
		return dir
	}
	return tb.TempDir()
}

func nbOpen(tb testing.TB, path string, wait bool) *Logger {
	tb.Helper()
	u := url.URL{Scheme: "file", Path: path, RawQuery: "format=text&flags=date,time,micros,shortsource"}
	log, err := Open(u.String(), &Options{
		Name: "nb" + filepath.Base(path), Shm: nbShm(tb), Overflow: OverflowBlock, MaxWait: time.Hour,
		Source:        ShortSource,
		WaitDelivered: wait,
		Diagnostics:   func(err error) { tb.Error(err) },
	})
	if err != nil {
		tb.Fatal(err)
	}
	return log
}

// nbClose closes a logger and wants all that it took in the file.
func nbClose(tb testing.TB, log *Logger, path string, lines, perGoroutine int) {
	tb.Helper()
	if err := log.Close(context.Background()); err != nil {
		tb.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	next := map[string]int{}
	n := 0
	r := bufio.NewReaderSize(f, 1<<16)
	for {
		line, err := r.ReadSlice('\n')
		if len(line) == 0 && err != nil {
			break
		}
		n++
		var who string
		var i int
		head, text, ok := bytes.Cut(line, []byte("nblogger_test.go:"))
		if _, err := fmt.Sscanf(string(text[bytes.LastIndexByte(text, '#')+1:]), " who=%s i=%d\n", &who, &i); !ok ||
			err != nil || i != next[who] || len(head) != len("2009/01/23 01:23:23.123123 ") ||
			!bytes.Contains(text, []byte(": "+nbText+" ")) {
			tb.Fatalf("%s: %q: not line %d of %s: %v", path, line, next[who], who, err)
		}
		next[who]++
	}
	for who, k := range next {
		if k != perGoroutine {
			tb.Errorf("%d lines of %s, not %d", k, who, perGoroutine)
		}
	}
	if n != lines {
		tb.Errorf("%d lines, not %d", n, lines)
	}
}

// nbWrite is the body of the original's benchmark, with what tells the lines apart behind the text.
func nbWrite(log *Logger, who, lines int) {
	for i := range lines {
		log.Info(nbText, slog.Int("who", who), slog.Int("i", i))
	}
}

func TestNBLogger(t *testing.T) {
	for _, tt := range []struct {
		name    string
		wait    bool // the article's "sync"
		threads int
		loggers int
		lines   int // of each
	}{
		{"async", false, 1, 1, 100_000},
		{"sync", true, 1, 1, 20_000},
		{"async threaded", false, nbThreads, nbThreads, 5_000},
		{"sync threaded", true, nbThreads, nbThreads, 2_000},
		{"async shared", false, nbThreads, 1, 20_000},
		{"sync shared", true, nbThreads, 1, 4_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			lines := nbLines(t, tt.lines)
			start := time.Now()
			var wg sync.WaitGroup
			logs := make([]*Logger, tt.loggers)
			paths := make([]string, tt.loggers)
			for i := range logs {
				paths[i] = filepath.Join(dir, fmt.Sprintf("test.log.%d", i))
				logs[i] = nbOpen(t, paths[i], tt.wait)
			}
			for who := range tt.threads {
				wg.Go(func() { nbWrite(logs[who%len(logs)], who, lines) })
			}
			wg.Wait()
			logged := time.Since(start)
			for i, log := range logs {
				nbClose(t, log, paths[i], lines*tt.threads/tt.loggers, lines)
			}
			t.Logf("%d lines logged in %v, in the files and checked after %v", lines*tt.threads,
				logged.Round(time.Millisecond), time.Since(start).Round(time.Millisecond))
		})
	}
}

// BenchmarkNBLogger measures what the article measures: all lines logged, and all of them written,
// as one operation. "bare" is a program that writes as many bytes in pieces of 128 KiB, to compare
// with. Run it with -benchtime 1x: an operation of the threads is 2 GB.
func BenchmarkNBLogger(b *testing.B) {
	const lines = 100_000
	for _, dir := range []string{"/dev/shm", ""} {
		place := "tmpfs"
		if dir == "" {
			dir, place = b.TempDir(), "disk"
		} else if _, err := os.Stat(dir); err != nil {
			continue
		}
		for _, bb := range []struct {
			name             string
			threads, loggers int
			wait             bool
		}{
			{"bare", 1, 0, false},
			{"one", 1, 1, false},
			{"sync", 1, 1, true},
			{"bare threaded", nbThreads, 0, false},
			{"threaded", nbThreads, nbThreads, false},
			{"shared", nbThreads, 1, false},
			{"sync threaded", nbThreads, nbThreads, true},
			{"sync shared", nbThreads, 1, true},
		} {
			b.Run(place+"/"+bb.name, func(b *testing.B) {
				dir, err := os.MkdirTemp(dir, "spillway-nb-")
				if err != nil {
					b.Fatal(err)
				}
				defer os.RemoveAll(dir)
				n := lines
				if testing.Short() {
					n /= 100
				}
				size := int64(n) * int64(bb.threads) * nbSize
				room := nbFree(dir)
				needs.Have(b, room > size+size/4+int64(bb.loggers)*(20<<20),
					"room for %d MB in %s, where %d MB are free", size>>20, dir, room>>20)
				b.SetBytes(size)
				for b.Loop() {
					if bb.loggers == 0 {
						nbBare(b, filepath.Join(dir, "bare"), n*bb.threads)
						continue
					}
					nbRun(b, dir, bb.threads, bb.loggers, n, bb.wait)
				}
			})
		}
	}
}

// nbBare writes lines like those of the logger as fast as can be.
func nbBare(b *testing.B, path string, lines int) {
	line := "2009/01/23 01:23:23.123123 nblogger_test.go:100: " + nbText + "\n"
	buf := bytes.Repeat([]byte(line), (128<<10)/len(line))
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	for left := lines * len(line); left > 0; left -= len(buf) {
		if _, err := f.Write(buf[:min(left, len(buf))]); err != nil {
			b.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	_ = os.Remove(path)
	b.StartTimer()
}

func nbRun(b *testing.B, dir string, threads, loggers, lines int, wait bool) {
	b.StopTimer()
	logs := make([]*Logger, loggers)
	for i := range logs {
		logs[i] = nbOpen(b, filepath.Join(dir, fmt.Sprint(i)), wait)
	}
	b.StartTimer()
	start := time.Now()
	var wg sync.WaitGroup
	for who := range threads {
		wg.Go(func() {
			log := logs[who%loggers]
			for range lines {
				log.Info(nbText)
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms-logged")
	for _, log := range logs {
		if err := log.Flush(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer() // all is written; what Close adds is that it is on the disk
	for _, log := range logs {
		if s := log.Stats(); s.Accepted != uint64(lines*threads/loggers) || s.Delivered != s.Accepted {
			b.Fatalf("%+v", s)
		}
		if err := log.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	for i := range logs {
		_ = os.Remove(filepath.Join(dir, fmt.Sprint(i)))
	}
	b.StartTimer()
}
