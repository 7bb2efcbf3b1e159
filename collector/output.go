// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/internal/follow"
	"github.com/spillwaylog/spillway/internal/letters"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// A pump is one output with the follower that hands it the journal.
//
//	journal ──► follow.Follower ──► Output
//	                │ passed           │ health
//	                ▼                  ▼
//	         deliveries, Stats   failing, the log
type pump struct {
	*ledger
	plan     *plannedOutput
	name     string // of the output, or its URL
	url      string
	index    int  // in deliveries, found and inHand, and in Collector.pumps: it stays
	eager    bool // acks wait for it
	identity string
	window   int64            // bytes
	follower *follow.Follower // nil: the output was removed, and has ended
	recent   *recentReader    // of follower; may be nil
	reporter *reporter
	confirm  func(output int, p journal.Position)

	hangs   atomic.Bool // it has not ended, or left something behind
	dead    atomic.Bool // its breaker is not closed
	failing failing
	holding func() holding // what waits for this output; not before ready
	ready   atomic.Bool    // the collector is open

	limit behindLimit
	over  func(at journal.Position) (enough func(at journal.Position) bool) // see backlogs
	told  told

	leaves       atomic.Bool        // it was removed: it delivers what it has, and ends
	finish, halt context.CancelFunc // ends follower: when it has caught up; soon
	ended        chan struct{}      // closed when follower has; nil: it was not started
}

// told is what backlogs.tell has told of an output, and when.
type told struct {
	given   int64 // events
	givenAt time.Time
	hung    Failure
	hungAt  time.Time // zero: it does not hang
}

// passed is told of each commit.
func (p *pump) passed(at journal.Position, n follow.Counts) {
	p.out.Add(n.Out + n.HandedOver)
	p.filtered.Add(n.Filtered)
	p.twice.Add(n.Repeated)
	p.unreadable.Add(n.Unreadable)
	p.refused.Add(n.Refused)
	p.aside.Add(n.Aside)
	p.dropped.Add(n.Dropped)
	p.diverted.Add(n.Diverted)
	p.restamped.Add(n.Restamped)
	p.broken.Add(n.Broken)
	p.confirm(p.index, at)
}

// health is told how the output does.
func (p *pump) health(h output.Health) {
	if h.Err == nil {
		p.works()
		return
	}
	p.fail(h.Err, h.Pause)
}

// turned is told of each change of the output's breaker.
func (p *pump) turned(e output.BreakerEvent) { p.dead.Store(e.State != output.BreakerClosed) }

// report tells what goes wrong beside.
func (p *pump) report(err error) {
	p.reporter.report(codes.OutputError, "output", fmt.Errorf("%s: %w", p.name, err))
}

// failure is what does not work: a try that failed, or one that does not return.
func (p *pump) failure() *Failure {
	if f := p.failing.current(); f != nil && p.follower != nil {
		return f
	}
	if p.follower == nil {
		return nil
	}
	if since, hangs := p.follower.Hangs(); hangs {
		return &Failure{Since: since, Err: follow.ErrHangs}
	}
	return nil
}

// holding is what an output holds up while it fails.
type holding struct {
	backlog
	waits string // what waits for it
}

// fail notes that a try failed, and tells it if it is time.
func (p *pump) fail(err error, pause time.Duration) {
	if p.follower != nil { // else it is being opened
		p.follower.NoteFailure()
	}
	p.retries.Add(1)
	f, tell := p.failing.fail(err, pause)
	if tell {
		p.tellBroken(f)
	}
}

// tellBroken tells of a failure, and what it holds up as far as that is known.
func (p *pump) tellBroken(f Failure) {
	said := []any{"output", p.name}
	if p.ready.Load() {
		h := p.holding()
		said = append(said, "behind", h.events, "behind_bytes", h.bytes, "behind_for", h.age.Round(time.Second),
			"holds_up", h.waits)
	}
	p.reporter.failure(codes.OutputBroken, "output broken", f, said...)
}

// works notes that the output does what it is asked to.
func (p *pump) works() {
	if f := p.failing.over(); f != nil {
		p.reporter.recovered(codes.OutputWorks, "output works again", *f, "output", p.name)
	}
}

// identify returns what makes the id of a chunk that leaves by an output: a hash of the journal's
// identity, the output's cursor, and where the chunk stands. So a chunk that is sent again, by
// whatever run of this collector and with whatever settings in the URL, has the same id, and no
// other chunk ever has it.
func identify(identity [16]byte, cursor string) func(dst []byte, first, last journal.Position) []byte {
	seed := append(identity[:], cursor...)
	seed = append(seed, 0)
	return func(dst []byte, first, last journal.Position) []byte {
		var room [128]byte
		b := append(room[:0], seed...)
		b = binary.BigEndian.AppendUint64(b, uint64(first))
		b = binary.BigEndian.AppendUint64(b, uint64(last))
		b = append(b, 0) // the part
		sum := sha256.Sum256(b)
		return base64.StdEncoding.AppendEncode(dst, sum[:16])
	}
}

// identityOf is what an output is called by others: nothing else in the world is.
func identityOf(journal [16]byte, cursor string) string {
	if journal == [16]byte{} { // the disk was full when it had yet to get one
		return ""
	}
	return hex.EncodeToString(journal[:]) + "-" + cursor
}

// windowBytes is how much an output may have been given and not finished: its share of a quarter of
// the memory, and at most so much. The outputs have it apart from the inputs, so that neither waits
// for the other's.
func windowBytes(memory int64, outputs int, limit int64) int64 {
	return min(max(memory/4/int64(max(outputs, 1)), 1<<20), limit)
}

// defaultWindow is the limit where an output does not say.
const defaultWindow = 4 << 20

// windowChunks is the same in chunks.
const windowChunks = 1024

// lettersDir is the folder of the dead letters in a data directory.
const lettersDir = "letters"

// openFor is how long the start waits for an output that asks its other side where it stands.
const openFor = 5 * time.Second

// openPump opens an output where its cursor stands. l is what is known of its events. first is set
// at the start, where the process before may have left something to be careful with.
func (c *Collector) openPump(ctx context.Context, plan *plannedOutput, index int, l *ledger, first bool) (*pump,
	error,
) {
	reader, err := c.journal.Reader(plan.cursor)
	if err != nil {
		return nil, err
	}
	p := &pump{
		ledger: l, plan: plan, name: plan.name, url: plan.url, limit: plan.limit, index: index,
		eager: c.config.Ack == AckDelivered, reporter: c.reporter,
		identity: identityOf(c.journal.Identity(), plan.cursor),
		window:   windowBytes(c.config.Memory, plan.among, cmp.Or(plan.window, defaultWindow)),
	}
	p.told.given = l.dropped.Load() + l.aside.Load()
	conf := &follow.Config{
		Reader: reader,
		Turn:   &c.turn,
		Open:   func() (Output, error) { return plan.open(p) },
		Opaque: plan.opaque,
		Sift:   plan.sifter,
		Packs:  plan.ids && !plan.guard,
		Chunks: windowChunks,
		Bytes:  p.window,
		Guard:  plan.guard,
		Eager:  p.eager,
		Passed: p.passed,
		Failed: p.fail,
		Worked: p.works,
		Report: p.report,
	}
	if first {
		conf.Caution = c.inHand.of(index, plan.cursor, c.journal.Synced())
	} else {
		conf.Caution = c.inHand.anew(index, plan.cursor, reader.Pos())
	}
	if plan.limit.gives() {
		conf.Behind = &follow.Behind{
			Over:   func(at journal.Position) func(journal.Position) bool { return p.over(at) },
			Reason: plan.limit.reason(),
		}
	}
	if plan.ids {
		conf.Identify = identify(c.journal.Identity(), plan.cursor)
	}
	if plan.wants != 0 {
		p.recent = c.recent.follow(reader.Pos(), plan.wants)
		conf.Recent = func(after journal.Position) (follow.Recent, bool) {
			it, ok := p.recent.get(after, c.journal.Synced())
			if !ok {
				return follow.Recent{}, false
			}
			return follow.Recent{End: it.pos, Chunk: &it.chunk, Held: it}, true
		}
	}
	dead := c.letters
	conf.Refuse = func(ctx context.Context, refused []follow.Refused) error {
		all := make([]letters.Letter, len(refused))
		for i := range refused {
			r := &refused[i]
			headOnly(r)
			all[i] = letters.Letter{
				Output: p.name, Reason: r.Reason, Time: r.Time, Position: uint64(r.Position),
				Entries: r.Entries, Chunk: r.Chunk,
			}
		}
		return dead.Put(ctx, all...)
	}
	p.follower = follow.New(conf)
	ctx, cancel := context.WithTimeout(ctx, openFor)
	defer cancel()
	err = p.follower.Open(ctx)
	// The other side may come back; Run opens it then.
	if err != nil && (errors.Is(err, ErrReopen) || ctx.Err() != nil) {
		codes.OutputNotOpen.Warn(p.reporter.log, "the output cannot be opened yet", "output", p.name, "error", err)
		err = nil
	}
	return p, err
}

// serveOutput lets an open output be told of, and tell.
func (c *Collector) serveOutput(p *pump) {
	b := c.backlogs
	p.confirm = c.store.delivered.confirm
	c.store.delivered.enter(p.index, p.follower.Start())
	p.holding = func() holding { return b.holding(p) }
	p.over = func(at journal.Position) func(journal.Position) bool { return b.over(p, at) }
	p.ready.Store(true)
}

// letGo closes a pump that is not started.
func (p *pump) letGo() error {
	if p.recent != nil {
		p.recent.leave()
	}
	return p.follower.Close()
}
