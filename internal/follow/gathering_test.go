// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// A gatherer is a transactional output that is done with nothing before it has half of all, and on
// one event of which the process dies.
type gatherer struct {
	output.Output
	deadly, half int
	token        []byte
	got          []int
	waiting      []func(output.Result)
}

func (g *gatherer) Restore(context.Context, output.Refuse) ([]byte, bool, error) {
	return g.token, g.token != nil, nil
}

func (g *gatherer) SubmitAt(token []byte, c *forward.Chunk, done func(output.Result)) {
	n := numbers(c)[0]
	if n == g.deadly {
		panic("dies")
	}
	g.got = append(g.got, n)
	if g.waiting = append(g.waiting, done); len(g.waiting) < g.half && n < 9 {
		return
	}
	g.token = slices.Clone(token)
	for _, done := range g.waiting {
		done(output.Result{})
	}
	g.waiting = nil
}

// TestGathered: the record on which the process dies is found although what was submitted before it
// is not done, and no other becomes a dead letter.
func TestGathered(t *testing.T) {
	dir := t.TempDir()
	j := openJournal(t, dir, &disk{})
	for i := range 10 {
		appendChunk(t, j, numbered("t", i, 1))
	}
	must(t, j.Close())
	var last Note
	var token []byte
	var letters []int
	deaths := 0
	for life := range 7 {
		j := openJournal(t, dir, &disk{})
		g := &gatherer{Output: output.Discard, deadly: 6, half: 4, token: token}
		f := New(&Config{
			Reader: openReader(t, j), Chunks: 100,
			Open:    func() (output.Output, error) { return g, nil },
			Caution: &Caution{Died: life > 0, Last: last, End: j.Synced(), Note: func(n Note) { last = n }},
			Refuse: func(_ context.Context, refused []Refused) error {
				letters = append(letters, numbers(refused[0].Chunk)...)
				return nil
			},
			Report: func(error) {},
		})
		func() {
			defer func() {
				if recover() != nil {
					deaths++
				}
			}()
			must(t, f.Open(t.Context()))
			if f.NeedsTrial() {
				f.Try(t.Context())
			}
			drain, end := context.WithCancel(t.Context())
			end()
			must(t, f.Run(t.Context(), drain))
		}()
		token = g.token
		_ = j.Close()
		t.Logf("life %d: submitted %v, then %+v", life, g.got, last)
	}
	if deaths != 5 || !slices.Equal(letters, []int{6}) {
		t.Errorf("died %d times; the dead letters are %v", deaths, letters)
	}
	if len(token) == 0 || journal.Position(binary.BigEndian.Uint64(token)) == 0 {
		t.Errorf("it stands at %x", token)
	}
}
