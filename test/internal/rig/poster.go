// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway"
)

// An Item is what the tests post.
type Item struct {
	K   string `json:"k"`             // its stream
	N   uint64 `json:"n"`             // its number there
	Pad string `json:"pad,omitempty"` // to make it longer
}

// A Poster posts the events of one stream, half of them as structs under the stream's tag and half
// as leveled calls, when the logger's tag is the stream's.
type Poster struct {
	Stream string // its name
	Next   uint64 // number of the next event
}

// Post posts the next event, padded.
func (p *Poster) Post(l *spillway.Logger, pad string) error {
	err := l.Post(tagOf(p.Stream, p.Next), Item{p.Stream, p.Next, pad})
	if err == nil {
		p.Next++
	}
	return err
}

// PostAll posts n events in each of four streams, from a goroutine each, in bursts. Events that are
// refused are posted again.
func PostAll(t testing.TB, l *spillway.Logger, prefix string, n int, r *rand.Rand) []*Poster {
	t.Helper()
	var all sync.WaitGroup
	posters := make([]*Poster, 4)
	for g := range posters {
		p := &Poster{Stream: fmt.Sprintf("%s.%d", prefix, g)}
		posters[g] = p
		pause := time.Duration(1 + r.IntN(2))
		burst := uint64(20 + r.IntN(100))
		pad := strings.Repeat("p", r.IntN(300))
		all.Go(func() {
			for p.Next < uint64(n) {
				switch err := p.Post(l, pad); {
				case errors.Is(err, spillway.ErrFull):
					<-time.After(time.Millisecond)
				case err != nil:
					t.Errorf("Post: %v", err)
					return
				case p.Next%burst == 0:
					<-time.After(pause * time.Millisecond) // so that there are many chunks
				}
			}
		})
	}
	all.Wait()
	return posters
}
