// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/journal"
)

// Stats is what a Collector counts since it was opened. In events, always:
//
//	In = Stored + Repeated + Skipped + Invalid
//
// where a chunk that was refused as a whole is not In, but in Server.Refused;
// and for each output, once it has caught up, Stored = Out, plus what the
// journal held when the collector was opened.
type Stats struct {
	In       int64 // events that arrived in chunks that could be read
	Stored   int64 // events that are in the journal
	Repeated int64 // events of chunks that were stored before
	Skipped  int64 // nil records (docs/forward.md rule 12)
	Invalid  int64 // events left out (docs/forward.md rule 23)

	StoredChunks   int64
	RepeatedChunks int64
	RepeatsAge     time.Duration // how far back a repeat is recognised just now

	Outputs []OutputStats
	Server  forward.ServerStats
	Journal journal.Stats
}

// OutputStats is what one output has got.
type OutputStats struct {
	URL    string
	Events int64 // taken; after a crash some of them for the second time
	Chunks int64
	Broken int64 // records of the journal that were no chunks
}

// Stats returns the counters as they stand. Not after Run has returned.
func (c *Collector) Stats() Stats {
	s := Stats{
		Stored:         c.store.stored.Load(),
		Repeated:       c.store.repeated.Load(),
		StoredChunks:   c.store.storedChunks.Load(),
		RepeatedChunks: c.store.repeatedChunks.Load(),
		RepeatsAge:     c.repeats.age(),
		Server:         c.server.Stats(),
		Journal:        c.journal.Stats(),
	}
	s.Skipped, s.Invalid = int64(s.Server.Skipped), int64(s.Server.Invalid)
	s.In = int64(s.Server.Events) + s.Skipped + s.Invalid
	for _, p := range c.pumps {
		s.Outputs = append(s.Outputs, OutputStats{
			URL:    p.name,
			Events: p.events.Load(),
			Chunks: p.chunks.Load(),
			Broken: p.broken.Load(),
		})
	}
	return s
}
