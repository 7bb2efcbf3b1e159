// SPDX-License-Identifier: Apache-2.0

package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// ErrFailed is wrapped by the error of a run in which something went wrong with the server or on
// the way. Its result says how far the run came.
var ErrFailed = errors.New("the run failed")

// lead is the time between the last connection and the first event, so that all connections begin
// together.
const lead = 10 * time.Millisecond

// sampled is how often memory is looked at.
const sampled = 100 * time.Millisecond

// A run is one under way.
type run struct {
	o        *Options
	template *template
	conns    []*connection
	start    time.Time
	measure  time.Time // the warm-up ends
	end      time.Time // the last write
	errs     []error

	server, generator gauge
}

// A count is what had happened at one moment.
type count struct {
	at                     time.Time
	due                    time.Time // the same, but not after the end
	offered                int64     // events
	messages, events       int64
	bytes                  int64
	acked                  int64 // messages
	serverCPU, generateCPU time.Duration
}

// A gauge watches processes.
type gauge struct {
	pids []int
	err  error
	last usage
	peak int64
}

func (g *gauge) look() time.Duration {
	if g.err == nil && len(g.pids) > 0 {
		var u usage
		if u, g.err = usageOf(g.pids); g.err == nil {
			g.last = u
			g.peak = max(g.peak, u.resident)
		}
	}
	return g.last.cpu
}

// Run sends events for the time that the options say. An error that wraps ErrFailed, or that of
// ctx, comes with the result of what was done; any other one means that nothing was sent.
func Run(ctx context.Context, options Options) (Result, error) {
	o, err := options.resolve()
	if err != nil {
		return Result{}, err
	}
	r := &run{o: &o}
	if r.template, err = newTemplate(r.o); err != nil {
		return Result{}, err
	}
	r.server.pids, r.generator.pids = o.Processes, []int{os.Getpid()}
	if r.server.look(); r.server.err != nil && !errors.Is(r.server.err, errUnmeasured) {
		return Result{}, r.server.err
	}
	defer func() {
		for _, c := range r.conns {
			c.nc.Close()
		}
	}()
	if err := r.dial(ctx); err != nil {
		return Result{}, err
	}
	ended := r.begin(ctx)
	warm, last, drained := r.watch(ended)
	result := r.result(warm, last, drained)
	if err := errors.Join(r.errs...); err != nil {
		result.Error = err.Error()
		return result, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return result, ctx.Err()
}

// dial makes the connections.
func (r *run) dial(ctx context.Context) error {
	var seq atomic.Int64
	for i := range r.o.Connections {
		block, err := r.template.newBlock(&seq)
		if err != nil {
			return err
		}
		nc, err := r.o.Dial(ctx)
		if err != nil {
			return fmt.Errorf("connection %d: %w", i+1, err)
		}
		c := &connection{number: i + 1, nc: nc, block: block, room: make(chan struct{}, 1)}
		if r.o.Ack {
			c.unacked = newUnacked(r.o.Depth)
		}
		r.conns = append(r.conns, c)
	}
	return nil
}

// begin starts the connections; what it returns is closed when all have ended.
func (r *run) begin(ctx context.Context) (ended <-chan struct{}) {
	r.start = time.Now().Add(lead)
	r.measure = r.start.Add(r.o.Warmup)
	r.end = r.measure.Add(r.o.Duration)
	perSecond := r.o.Rate / float64(r.o.Batch) / float64(len(r.conns)) // messages, on each
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	var mu sync.Mutex
	for i, c := range r.conns {
		c.pace = pace{start: r.start, perTick: perSecond * tick.Seconds()}
		if perSecond > 0 { // not all at the same moment
			share := float64(i) / float64(len(r.conns))
			c.pace.start = r.start.Add(time.Duration(share / perSecond * float64(time.Second)))
		}
		c.measure, c.end, c.limit = r.measure, r.end, r.end.Add(r.o.Drain)
		all.Go(func() {
			if err := c.run(ctx); err != nil {
				mu.Lock()
				defer mu.Unlock()
				if ctx.Err() == nil {
					r.errs = append(r.errs, err) // those that follow are its consequences
				}
				cancel()
			}
		})
	}
	done := make(chan struct{})
	go func() {
		all.Wait()
		cancel()
		close(done)
	}()
	return done
}

// watch returns the counts at the end of the warm-up, of the time measured, and of everything.
func (r *run) watch(ended <-chan struct{}) (warm, last, drained count) {
	t := time.NewTicker(sampled)
	defer t.Stop()
	warmed, lasted := time.NewTimer(time.Until(r.measure)), time.NewTimer(time.Until(r.end))
	defer warmed.Stop()
	defer lasted.Stop()
	before := r.count(r.start)
	warm = before
	for {
		select {
		case <-warmed.C:
			warm = r.count(time.Now())
		case <-lasted.C:
			last = r.count(time.Now())
		case now := <-t.C:
			r.server.look()
			if r.o.Progress != nil && now.Sub(before.at) >= time.Second-sampled/2 {
				c := r.count(now)
				r.tell(before, c)
				before = c
			}
		case <-ended:
			drained = r.count(time.Now())
			if last.at.IsZero() {
				last = drained
			}
			return warm, last, drained
		}
	}
}

// count looks at everything.
func (r *run) count(now time.Time) count {
	n := count{at: now, due: now}
	if n.due.After(r.end) {
		n.due = r.end
	}
	for _, c := range r.conns {
		n.messages += c.messages.Load()
		n.events += c.events.Load()
		n.bytes += c.bytes.Load()
		n.acked += c.acked.Load()
		if r.o.Rate > 0 {
			n.offered += c.pace.due(n.due) * int64(r.o.Batch)
		}
	}
	if r.o.Rate == 0 {
		n.offered = n.events
	}
	n.serverCPU, n.generateCPU = r.server.look(), r.generator.look()
	return n
}

func (r *run) tell(before, now count) {
	seconds := now.at.Sub(before.at).Seconds()
	p := Progress{
		Elapsed: now.at.Sub(r.start),
		Warm:    !now.at.Before(r.measure),
		Offered: r.o.Rate,
		Sent:    float64(now.events-before.events) / seconds,
		Acked:   float64(now.acked-before.acked) * float64(r.o.Batch) / seconds,
		Ack:     r.o.Ack,
		Backlog: max(0, now.offered-now.events),
	}
	if r.o.Ack {
		p.Flying = now.messages - now.acked
	}
	r.o.Progress(p)
}

func (r *run) result(warm, last, drained count) Result {
	o := r.o
	res := Result{
		Mode: o.Mode, Compress: cmp.Or(o.Compress, "none"), Batch: o.Batch, Size: r.template.eventSize,
		MessageBytes: r.template.messageSize(),
		Connections:  o.Connections, Ack: o.Ack, Rate: o.Rate,
		Backlog: max(0, last.offered-drained.events),
		Drained: true,
		Total:   Totals{Messages: drained.messages, Events: drained.events, Bytes: drained.bytes, Acked: drained.acked},
	}
	if o.Ack {
		res.Depth, res.Unacked = o.Depth, drained.messages-drained.acked
	}
	var latencies histogram
	for _, c := range r.conns {
		latencies.merge(&c.latencies)
		res.Drained = res.Drained && c.drained
	}
	seconds := last.at.Sub(warm.at).Seconds()
	drain := drained.at.Sub(last.at).Seconds()
	sending := last.due.Sub(warm.at).Seconds() // the look at the end may have been late
	if sending <= 0 {
		return res
	}
	res.Seconds, res.DrainSeconds = seconds, drain
	res.Offered = float64(last.offered-warm.offered) / sending
	res.Sent = float64(last.events-warm.events) / sending
	res.SentBytes = float64(last.bytes-warm.bytes) / sending
	handled := float64(drained.events - warm.events)
	res.Taken = handled / (seconds + drain)
	if o.Ack {
		res.Acked = float64(last.acked-warm.acked) * float64(o.Batch) / seconds
		handled = float64(drained.acked-warm.acked) * float64(o.Batch)
		res.Taken = res.Acked
		res.Latency = latencies.latency()
	}
	res.KeptUp = res.Taken >= keptUp*res.Offered && len(r.errs) == 0 && res.Unacked == 0
	res.Server = r.server.usage(drained.serverCPU-warm.serverCPU, last.serverCPU-warm.serverCPU, seconds, handled)
	res.Generator = r.generator.usage(drained.generateCPU-warm.generateCPU, last.generateCPU-warm.generateCPU, seconds,
		handled)
	return res
}

// usage is what the processes used in all, and in the seconds measured.
func (g *gauge) usage(all, measured time.Duration, seconds, events float64) *Usage {
	if g.err != nil || len(g.pids) == 0 {
		return nil
	}
	u := &Usage{
		CPUSeconds: all.Seconds(), CPUPercent: 100 * measured.Seconds() / seconds, Resident: g.last.resident,
		ResidentMax: g.peak,
	}
	if events > 0 {
		u.CPUPerMillion = all.Seconds() / events * 1e6
	}
	return u
}

// usageOf adds up those of several processes.
func usageOf(pids []int) (usage, error) {
	var sum usage
	for _, pid := range pids {
		u, err := readUsage(pid)
		if err != nil {
			return usage{}, err
		}
		sum.cpu += u.cpu
		sum.resident += u.resident
	}
	return sum, nil
}
