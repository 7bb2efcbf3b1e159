// SPDX-License-Identifier: Apache-2.0

package collector

import "slices"

// Stats returns the counters as they stand. It holds the locks of journal,
// repeats and server for a moment each: it is for each second, not for each
// event. After Run has returned the counters are those of its end.
func (c *Collector) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock() // until it is taken Close takes nothing away
	if c.last != nil {
		return c.last.clone()
	}
	return c.stats()
}

func (c *Collector) stats() Stats {
	// What is counted last comes first: so a picture that is taken while events
	// pass never shows more coming out than went in.
	s := Stats{
		Counting: c.startBacklog.counting(), Repeats: c.repeats.stats(), Journal: c.journal.Stats(),
		Letters: c.letters.Stats(), Failure: c.store.failing.current(), Messages: c.messages.all(),
	}
	for _, p := range c.pumps {
		s.Outputs = append(s.Outputs, c.outputStatsLocked(p))
	}
	for _, a := range c.store.books.Load().accounts {
		n := c.inputStatsLocked(a)
		s.Inputs = append(s.Inputs, n)
		s.add(&n.Counts)
	}
	s.Server = c.server.Stats()
	for i, p := range c.pumps {
		o := &s.Outputs[i]
		o.Outside = p.missed(s.Stored)
		b := c.backlogs.measure(p, o.Found+s.Stored-o.Outside-o.Passed())
		o.Behind, o.BehindBytes, o.BehindFor = b.events, b.bytes, b.age
	}
	return s
}

// outputStatsLocked is what an output has got, but for what waits.
func (c *Collector) outputStatsLocked(p *pump) OutputStats {
	o := OutputStats{
		Name:    p.name,
		URL:     p.url,
		Removed: p.follower == nil || p.leaves.Load(),
		Found:   c.startBacklog.of(p.index),
		Out:     p.out.Load(),
		Broken:  p.broken.Load(),

		Filtered:    p.filtered.Load(),
		Retries:     p.retries.Load(),
		Throttled:   p.throttled.Load(),
		BreakerOpen: p.follower != nil && p.dead.Load(),

		Failure: p.failure(),
	}
	o.Taken, o.Chunks, o.Bytes = p.sent.events.Load(), p.sent.chunks.Load(), p.sent.bytes.Load()
	if p.follower != nil {
		events, chunks, bytes := p.follower.Sent()
		o.Taken, o.Chunks, o.Bytes = o.Taken+events, o.Chunks+chunks, o.Bytes+bytes
	}
	o.DeadLettered, o.MaybeTwice, o.Diverted, o.Restamped =
		p.refused.Load(), p.twice.Load(), p.diverted.Load(), p.restamped.Load()
	for reason, n := range map[string]int64{
		unreadable: p.unreadable.Load(), tooFarBehind: p.dropped.Load(),
		placeGivenUp: p.givenUp.Load(),
	} {
		if n > 0 && o.Dropped == nil {
			o.Dropped = map[string]int64{}
		}
		if n > 0 {
			o.Dropped[reason] = n
		}
	}
	return o
}

// inputStatsLocked is what came by the inputs that had a name.
func (c *Collector) inputStatsLocked(a *account) InputStats {
	s := InputStats{Name: a.name, URL: a.url, Counts: a.counts(), Removed: true} // first: see Collector.stats
	r := a.past
	s.Server = a.pastServer
	for _, in := range slices.Concat(c.inputs, c.crew.leavers) {
		if in.account != a {
			continue
		}
		s.Removed = s.Removed && in.leaves.Load()
		if in.endpoint != nil {
			now := c.server.EndpointStats(in.endpoint)
			s.Server.Add(&now)
			s.Server.Memory = now.Memory
		} else {
			now := in.Stats()
			r.add(&now)
		}
	}
	s.count(&s.Server)
	s.Bytes, s.Connections = int64(s.Server.Bytes)+r.Bytes, int64(s.Server.Connections)+r.Connections
	s.Skipped += r.Skipped
	s.Invalid += r.Invalid
	s.Cut, s.Unparsed = r.Cut, r.Unparsed
	s.Rings, s.Spills, s.Lost = r.Rings, r.Spills, r.Lost
	s.Refused += r.Refused
	oversize := a.oversize.Load()
	s.Oversize += oversize
	s.RefusedMessages += a.malformed.Load()
	s.Chunks += a.arrived.chunks.Load()
	s.In += a.arrived.events.Load() + r.Skipped + r.Invalid + r.Refused + oversize
	return s
}
