// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/spillwaylog/spillway/forward"
)

// slowSink is slow while it holds the lease, as when the process is stopped just then.
type slowSink struct {
	*sinkQueue
	held, release chan struct{}
	writes        int
}

func (s *slowSink) write(jobs []*job, _ bool) ([]byte, error) {
	s.writes++
	if !s.acquire() {
		return nil, errGone
	}
	close(s.held)
	<-s.release
	s.give()
	return nil, nil
}

func (s *slowSink) flush() error { return nil }
func (s *slowSink) drop()        {}
func (s *slowSink) tick() bool   { return false }
func (s *slowSink) close() error { return nil }

// TestWriterThatOutlivesTheGrace: a chunk has one fate, and the writer that comes back touches
// nothing.
func TestWriterThatOutlivesTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowSink{held: make(chan struct{}), release: make(chan struct{})}
		s.sinkQueue = newQueue("slow", s, &Trip{}, 0, 0)
		var fates []Result
		s.Submit(&forward.Chunk{Tag: "t", ID: []byte("1")}, func(r Result) { fates = append(fates, r) })
		<-s.held
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Close(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		close(s.release)
		synctest.Wait()
		if len(fates) != 1 || !errors.Is(fates[0].Err, ErrClosed) || s.writes != 1 {
			t.Errorf("fates %v after %d writes", fates, s.writes)
		}
	})
}

// TestCloseOfAnIdleWriter: with nothing to write there is no write that could be under way, however
// short the time to close is.
func TestCloseOfAnIdleWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowSink{held: make(chan struct{}), release: make(chan struct{})}
		s.sinkQueue = newQueue("slow", s, &Trip{}, 0, 0)
		close(s.release)
		s.Submit(&forward.Chunk{Tag: "t", ID: []byte("1")}, func(r Result) {
			if r.Err != nil {
				t.Error(r.Err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}
