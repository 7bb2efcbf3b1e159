// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// A flakyNetwork is a proxy between senders and a collector that delays, breaks and cuts
// connections. It changes all the time, and each change cuts all connections: toxics stand before
// the first connection comes, since toxiproxy may leave out bytes in the middle of a stream when
// one is taken away, which no network does.
type flakyNetwork struct {
	addr     string // for the senders
	upstream string
	server   *toxiproxy.ApiServer
	changes  atomic.Int64
}

func newFlakyNetwork(t testing.TB, upstream string) *flakyNetwork {
	t.Helper()
	return &flakyNetwork{
		addr:     needs.Address(),
		upstream: upstream,
		server:   toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()),
	}
}

func (w *flakyNetwork) host() (string, int) {
	host, text, _ := net.SplitHostPort(w.addr)
	port, _ := strconv.Atoi(text)
	return host, port
}

// toxic is one fault, in toxiproxy's words.
type toxic struct {
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	Stream     string         `json:"stream"`
	Toxicity   float32        `json:"toxicity"`
	Attributes map[string]int `json:"attributes"`
}

func randomToxic(r *rand.Rand, stream string) toxic {
	x := toxic{Name: stream, Stream: stream, Toxicity: 0.3 + 0.7*r.Float32()}
	set := func(kind string, attributes map[string]int) { x.Type, x.Attributes = kind, attributes }
	switch r.IntN(9) {
	case 0:
		set("latency", map[string]int{"latency": r.IntN(100), "jitter": r.IntN(100)})
	case 1:
		set("bandwidth", map[string]int{"rate": 1 + r.IntN(500)}) // a slow reader, or a slow sender
	case 2:
		set("slicer", map[string]int{"average_size": 2 + r.IntN(200), "size_variation": 1, "delay": 10 + r.IntN(1000)})
	case 3, 4:
		set("limit_data", map[string]int{"bytes": 1 + r.IntN(200_000)})
	case 5:
		set("timeout", map[string]int{"timeout": 1 + r.IntN(800)}) // swallows, then closes
	case 6, 7:
		set("reset_peer", map[string]int{"timeout": r.IntN(500)})
	default:
		set("slow_close", map[string]int{"delay": r.IntN(500)})
	}
	return x
}

// disturb changes the network until ctx ends; then nothing disturbs it. It returns what stops the
// proxy.
func (w *flakyNetwork) disturb(ctx context.Context, t testing.TB, r *rand.Rand) (stop func()) {
	for {
		var toxics []toxic
		for _, stream := range []string{"upstream", "downstream"} { // one each way: two in a row race within toxiproxy
			if ctx.Err() == nil && r.IntN(5) < 3 {
				toxics = append(toxics, randomToxic(r, stream))
			}
		}
		p := w.open(t, toxics)
		if p == nil || ctx.Err() != nil {
			return func() {
				if p != nil {
					p.Stop()
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(50*time.Millisecond + time.Duration(r.Int64N(int64(2*time.Second)))):
		}
		p.Stop()
		w.changes.Add(1)
		if r.IntN(3) == 0 { // nobody listens for a while
			select {
			case <-ctx.Done():
			case <-time.After(time.Duration(r.Int64N(int64(300 * time.Millisecond)))):
			}
		}
	}
}

// open starts a proxy with toxics, nil if that failed.
func (w *flakyNetwork) open(t testing.TB, toxics []toxic) *toxiproxy.Proxy {
	p := toxiproxy.NewProxy(w.server, "flaky", w.addr, w.upstream)
	for _, x := range toxics {
		text, err := json.Marshal(x)
		if err == nil {
			_, err = p.Toxics.AddToxicJson(bytes.NewReader(text))
		}
		if err != nil {
			t.Errorf("toxic %s: %v", text, err)
			return nil
		}
	}
	// A process that is being started holds a copy of the last proxy's listening socket for a
	// moment, between fork and exec.
	for deadline := time.Now().Add(rig.Patience); ; <-time.After(time.Millisecond) {
		err := p.Start()
		if err == nil {
			return p
		}
		if time.Now().After(deadline) {
			t.Errorf("proxy: %v", err)
			return nil
		}
	}
}
