// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	library "github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// picky is an output that refuses one event for good, as a server does that calls it invalid.
type picky struct {
	mu  sync.Mutex
	got []string
}

func (p *picky) Submit(c *forward.Chunk, done func(library.Result)) {
	var r library.Result
	entries := forward.ReadEntries(c.Entries)
	p.mu.Lock()
	for i := 0; ; i++ {
		e, ok := entries.Next()
		if !ok {
			break
		}
		if bytes.Contains(e.Record, []byte("m-500")) {
			r.Rejected = append(r.Rejected, library.Rejected{Entry: i, Err: errors.New("422 not liked")})
			continue
		}
		p.got = append(p.got, string(e.Record))
	}
	p.mu.Unlock()
	go done(r)
}

func (p *picky) Flush(context.Context) error { return nil }
func (p *picky) Close(context.Context) error { return nil }

// TestRefusedEvent: a thousand good events and one that the receiver refuses. The thousand arrive,
// the one is a dead letter, and a replay delivers it later, while the collector runs.
func TestRefusedEvent(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	p := &picky{}
	c, err := library.Open(&library.Config{
		Dir: data, Inputs: library.Ends("forward://127.0.0.1:0"),
		Outputs: []library.End{{Name: "shop", URL: "picky:here"}},
		OutputKinds: map[string]library.OutputKind{
			"picky": func(*library.URL, *library.Params) (*library.OutputPlan, error) {
				return &library.OutputPlan{Open: func(*library.OutputEnv) (library.Output, error) {
					return p,
						nil
				}}, nil
			},
		},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	rig.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	defer cancel()

	client := &forward.Client{Address: c.Addrs()[0].String()}
	defer client.Close()
	const chunks, each = 91, 11
	for i := range chunks {
		var entries []byte
		for j := range each {
			e := rig.Named("m-" + strconv.Itoa(i*each+j))
			entries = e.Append(entries)
		}
		rig.Must(t, client.Send(ctx, &forward.Chunk{
			Tag: "t", ID: forward.NewID(), UniqueID: true, Entries: entries,
			Events: each,
		}))
	}
	rig.Eventually(t, "the output has all it takes, and the cursor has passed them",
		func() bool { return c.Stats().Outputs[0].Behind == 0 })
	s := c.Stats()
	if o := s.Outputs[0]; o.Out != chunks*each-1 || o.DeadLettered != 1 || s.Letters.Letters != 1 ||
		s.Letters.Events != 1 {
		t.Errorf("%+v, letters %+v", o, s.Letters)
	}
	rig.Must(t, s.Check())
	p.mu.Lock()
	if len(p.got) != chunks*each-1 {
		t.Errorf("%d events arrived, want %d", len(p.got), chunks*each-1)
	}
	p.mu.Unlock()

	last, out := rig.NewSetup(t)
	end := rig.StartCollector(t, last)
	bin := rig.Lean.Build(t)
	list, err := exec.Command(bin, "journal", "ls", data).CombinedOutput()
	if err != nil || !strings.Contains(string(list), "shop") || !strings.Contains(string(list), "422 not liked") {
		t.Errorf("%v: %s", err, list)
	}
	var said []byte
	rig.Eventually(t, "the letter is sent again", func() bool {
		if said, err = exec.Command(bin, "replay", data, "--to", "forward://"+end.Addr).CombinedOutput(); err == nil {
			return true
		}
		return false // the collector has the directory for a few seconds
	})
	if !strings.Contains(string(said), "acked 1 letter, 1 event") {
		t.Errorf("%s", said)
	}
	rig.WaitLines(t, out, 1)
	end.Stop()
	rig.WantNames(t, rig.ReadLines(t, out), "m-500")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
