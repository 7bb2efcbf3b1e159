// SPDX-License-Identifier: Apache-2.0

package test

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

// An item is what the tests post.
type item struct {
	K   string `json:"k"`
	N   uint64 `json:"n"`
	Pad string `json:"pad,omitempty"`
}

// A poster posts the events of one stream, half of them as structs under the stream's tag and half
// as leveled calls, when the logger's tag is the stream's.
type poster struct {
	stream string
	next   uint64
}

func (p *poster) post(l *spillway.Logger, pad string) error {
	err := l.Post(tagOf(p.stream, p.next), item{p.stream, p.next, pad})
	if err == nil {
		p.next++
	}
	return err
}

// postAll posts n events in each of four streams, from a goroutine each, in bursts. Events that are
// refused are posted again.
func postAll(t testing.TB, l *spillway.Logger, prefix string, n int, r *rand.Rand) []*poster {
	t.Helper()
	var all sync.WaitGroup
	posters := make([]*poster, 4)
	for g := range posters {
		p := &poster{stream: fmt.Sprintf("%s.%d", prefix, g)}
		posters[g] = p
		pause := time.Duration(1 + r.IntN(2))
		burst := uint64(20 + r.IntN(100))
		pad := strings.Repeat("p", r.IntN(300))
		all.Go(func() {
			for p.next < uint64(n) {
				switch err := p.post(l, pad); {
				case errors.Is(err, spillway.ErrFull):
					<-time.After(time.Millisecond)
				case err != nil:
					t.Errorf("Post: %v", err)
					return
				case p.next%burst == 0:
					<-time.After(pause * time.Millisecond) // so that there are many chunks
				}
			}
		})
	}
	all.Wait()
	return posters
}
