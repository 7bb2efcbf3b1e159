// SPDX-License-Identifier: Apache-2.0

package output

import (
	"errors"
	"fmt"
	"io"
)

// errRecord says that a long record cannot be read.
var errRecord = errors.New("the record cannot be read")

// writerFunc is a function as an io.Writer.
type writerFunc func(b []byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// longLine returns what writes the line of a job's long event. The error of the writer is returned
// as it is; errGone, if the lease cannot be had any more; one that wraps errRecord is the record's.
func (q *sinkQueue) longLine(j *job, r renderer) func(w io.Writer) error {
	return func(w io.Writer) error {
		var failed error // of the writer
		err := r.WriteLong(writerFunc(func(b []byte) (n int, err error) {
			n, err = w.Write(b)
			failed = err
			return n, err
		}), j.chunk.Tag, j.long, func() (io.ReadCloser, error) {
			if !q.acquire() {
				return nil, errGone
			}
			defer q.give()
			rec, err := j.long.Open()
			if err != nil {
				return nil, err
			}
			return &leased{rec, q}, nil
		})
		if err == nil || failed != nil || errors.Is(err, errGone) {
			return err
		}
		return fmt.Errorf("%w: %w", errRecord, err)
	}
}

// leased reads what belongs to others.
type leased struct {
	io.ReadCloser
	q *sinkQueue
}

func (l *leased) Read(b []byte) (int, error) {
	if !l.q.acquire() {
		return 0, errGone
	}
	defer l.q.give()
	return l.ReadCloser.Read(b)
}
