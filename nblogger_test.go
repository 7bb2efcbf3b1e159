// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// The tests and benchmarks of banaconda's asynchronous logger, nb-logger: 100,000 lines of 1,000 bytes, from one goroutine, from 20 with a logger each, and
// from 20 with one logger, asynchronously and with each call waiting until its line is written; the classic flags (date, time, microseconds, file and line). Beyond
// what they ask, each line must be there, once and whole, when Close returns.

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

func nbOpen(tb testing.TB, path string, wait bool) *Logger {
	tb.Helper()
	u := url.URL{Scheme: "file", Path: path, RawQuery: "format=text&flags=date,time,micros,shortsource"}
	log, err := Open(u.String(), &Options{
		Name: "nb" + filepath.Base(path), Shm: tb.TempDir(), Overflow: Block, MaxWait: time.Hour, Source: ShortSource, WaitDelivered: wait,
		Diagnostics: func(err error) { tb.Error(err) },
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
		if _, err := fmt.Sscanf(string(text[bytes.LastIndexByte(text, '#')+1:]), " who=%s i=%d\n", &who, &i); !ok || err != nil || i != next[who] || len(head) != len("2009/01/23 01:23:23.123123 ") || !bytes.Contains(text, []byte(": "+nbText+" ")) {
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
