// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// errNobodyReads ends a collector that writes to a pipe which will never be read again.
var errNobodyReads = errors.New("nobody reads standard output any more; the journal keeps what was not written")

// pipe is standard output as a collector sees it.
type pipe struct {
	w    io.Writer
	gone context.CancelCauseFunc // the output is not read any more
}

func (p *pipe) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		p.gone(fmt.Errorf("%w: %w", errNobodyReads, err))
	}
	return n, err
}

// surviveBrokenPipes makes a write to standard output or standard error that is not read any more
// an error like any other, until stop is called. Otherwise it ends the process at once and without
// a word, and a collector must not die with the reader of its log.
func surviveBrokenPipes() (stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGPIPE)
	return func() { signal.Stop(c) }
}
