// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/forward"
)

// TestSerial: chunks are delivered in order, one at a time, again after errors; what is refused is
// named.
func TestSerial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got, fates []string
		down := errors.New("down")
		fail := 3
		var health []Health
		s := NewSerial("serial", func(ctx context.Context, c *forward.Chunk) ([]Rejected, error) {
			if c.Tag == "b" && fail > 0 {
				fail--
				return []Rejected{{Entry: 0}}, down
			}
			got = append(got, c.Tag)
			if c.Tag == "c" {
				return []Rejected{{Entry: AllEntries, Err: down}}, nil
			}
			return nil, nil
		}, &Trip{Health: func(h Health) { health = append(health, h) }}, time.Second, 2*time.Second)
		for _, tag := range []string{"a", "b", "c"} {
			s.Submit(&forward.Chunk{Tag: tag, Events: 1}, func(r Result) {
				fate := tag
				if r.Err != nil {
					fate += " " + r.Err.Error()
				}
				if r.MaybeRepeated {
					fate += " maybe repeated"
				}
				if len(r.Rejected) > 0 {
					fate += " rejected"
				}
				fates = append(fates, fate)
			})
		}
		if err := s.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if !slices.Equal(got, []string{"a", "b", "c"}) ||
			!slices.Equal(fates, []string{"a", "b maybe repeated", "c rejected"}) {
			t.Errorf("%q, %q", got, fates)
		}
		if n := len(health); n != 4 || !errors.Is(health[0].Err, down) || health[1].Pause != 2*time.Second ||
			health[3].Err != nil {
			t.Errorf("%v", health)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestSerialClose: a call that heeds ctx is ended by Close; one that does not is left behind, and
// the chunk's bytes are not touched any more.
func TestSerialClose(t *testing.T) {
	for name, heeds := range map[string]bool{"heeds": true, "hangs": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				called, let := make(chan struct{}), make(chan struct{})
				calls := 0
				s := NewSerial("serial", func(ctx context.Context, c *forward.Chunk) ([]Rejected, error) {
					calls++
					close(called)
					if heeds {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					<-let
					if !bytes.Equal(c.Entries, []byte("entries")) {
						t.Errorf("the call's chunk was changed: %q", c.Entries)
					}
					return nil, nil
				}, &Trip{}, 0, 0)
				var fates []error
				entries := []byte("entries")
				s.Submit(&forward.Chunk{Entries: entries}, func(r Result) { fates = append(fates, r.Err) })
				s.Submit(&forward.Chunk{}, func(r Result) { fates = append(fates, r.Err) })
				<-called
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := s.Close(ctx); heeds == (err != nil) || !heeds && !errors.Is(err, ErrLeft) {
					t.Error(err)
				}
				copy(entries, "another")
				close(let)
				synctest.Wait()
				if len(fates) != 2 || !errors.Is(fates[0], ErrClosed) || !errors.Is(fates[1], ErrClosed) || calls != 1 {
					t.Errorf("%v after %d calls", fates, calls)
				}
			})
		})
	}
}
