// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"

	"github.com/spillwaylog/spillway/bench/internal/clients"
	"github.com/spillwaylog/spillway/bench/internal/order"
)

// BenchmarkPost is daichirata's comparison of Forward clients: a struct of 26 fields, a map of 26
// keys, and {"count": i}, made by the caller in each call as there ("literal" is what that alone
// costs). The server reads and discards, in this process as there; so the time of a client that
// writes in the call includes the server's wake-up, and an asynchronous one shares its processors
// with the server.
func BenchmarkPost(b *testing.B) {
	for _, what := range []struct {
		name string
		make func(i int) any
	}{
		{"struct", func(i int) any { return order.New(i) }},
		{"map", func(int) any { return order.NewMap() }},
		{"count", func(i int) any { return map[string]any{"count": i} }},
	} {
		b.Run(what.name+"/literal", func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				sink = what.make(i)
				i++
			}
		})
		for _, kind := range clients.Kinds {
			b.Run(what.name+"/"+kind.Name, func(b *testing.B) {
				c, err := kind.Open(newDaemon(b))
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				i, refused := 0, 0
				for b.Loop() {
					if err := c.Post("debug.test", what.make(i)); err != nil {
						refused++
					}
					i++
				}
				b.StopTimer()
				if err := c.Close(); err != nil {
					b.Error(err)
				}
				if refused > 0 {
					b.ReportMetric(float64(refused)/float64(i), "refused/op")
				}
			})
		}
	}
}

var sink any
