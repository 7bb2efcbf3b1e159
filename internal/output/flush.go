// SPDX-License-Identifier: Apache-2.0

package output

import "context"

// flushing is a Flush that waits.
type flushing struct {
	seq  uint64 // of the last chunk that it waits for
	left int    // of those that are not done
	over chan struct{}
	err  error // set before over is closed
}

func newFlushing(seq uint64, left int) *flushing {
	return &flushing{seq: seq, left: left, over: make(chan struct{})}
}

func (w *flushing) end(err error) {
	w.err = err
	close(w.over)
}

func (w *flushing) wait(ctx context.Context) error {
	select {
	case <-w.over:
		return w.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Flush implements Output: what is done is with the server.
func (f *forwarder) Flush(ctx context.Context) error {
	f.mu.Lock()
	if f.closed || f.count == 0 {
		f.mu.Unlock()
		return nil
	}
	w := newFlushing(f.seq, f.count)
	f.flushes = append(f.flushes, w)
	f.mu.Unlock()
	return w.wait(ctx)
}
