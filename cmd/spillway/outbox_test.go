// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// stopped is standard error that nobody reads until it is closed.
type stopped struct {
	read chan struct{}
	got  bytes.Buffer
}

func (s *stopped) Write(p []byte) (int, error) {
	<-s.read
	return s.got.Write(p)
}

func tellPlainly(w io.Writer, leftOut int) { fmt.Fprintf(w, "%d left out\n", leftOut) }

// TestOutbox: who writes never waits, messages keep their order, and what did not fit is counted.
func TestOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &stopped{read: make(chan struct{})}
		o := newOutbox(w, nil, tellPlainly)
		fmt.Fprintln(o, "first")
		synctest.Wait() // it is being written
		line := strings.Repeat("x", 1<<10-1)
		const lines = 3 << 10
		for range lines {
			fmt.Fprintln(o, line)
		}
		close(w.read)
		synctest.Wait()
		fmt.Fprintln(o, "last")
		o.close()
		text := w.got.String()
		kept := strings.Count(text, line+"\n")
		want := fmt.Sprintf("%d left out\nlast\n", lines-kept)
		if !strings.HasPrefix(text, "first\n"+line) || kept != maxOutbox>>10 || !strings.HasSuffix(text, want) {
			t.Errorf("%d lines are kept; the end is %q", kept, text[max(0, len(text)-100):])
		}
	})
}

// TestOutboxEnds: the end waits for a reader, but not for ever.
func TestOutboxEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &stopped{read: make(chan struct{})}
		o := newOutbox(w, nil, tellPlainly)
		fmt.Fprintln(o, "never read")
		start := time.Now()
		o.close()
		if d := time.Since(start); d != outboxLast {
			t.Errorf("closing takes %v", d)
		}
		close(w.read) // so that its goroutine ends
	})
}
