// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// opened is the output as it was opened last.
type opened struct {
	*core
	sieve   *sieve
	out     output.Output
	gen     int // of out; that of the inbox
	resumer bool
	at      output.Placed // out, if it is one
	longer  output.Longer // likewise
	broken  error         // why out is of no more use, or why there is none
	reopens int           // since the last commit
	token   [tokenLen + 4]byte
}

// tokenLen is the length of a token: the position behind the record, its high byte first. That of a
// piece has its number behind it.
const tokenLen = 8

// tokenOf is the token of a flight, until the next call.
func (o *opened) tokenOf(x *flight) []byte {
	b := binary.BigEndian.AppendUint64(o.token[:0], uint64(x.end))
	if x.part || x.number > 0 {
		b = binary.BigEndian.AppendUint32(b, uint32(x.number))
	}
	return b
}

// errNotOpen stands for an output that was not opened yet.
var errNotOpen = errors.New("not open")

// open opens the output, and resumes it.
func (o *opened) open(ctx context.Context) error {
	o.gen = o.inbox.open()
	out, err := o.cfg.Open()
	if err != nil {
		return err
	}
	if err = o.resume(ctx, out); err == nil {
		o.out, o.broken = out, nil
		_, o.resumer = out.(output.Resumer)
		o.at, _ = out.(output.Placed)
		o.longer, _ = out.(output.Longer)
		_, o.takesWhole = out.(output.Transactional)
		return nil
	}
	o.inbox.close()
	closing, cancel := context.WithTimeout(context.Background(), closeFor)
	defer cancel()
	return errors.Join(err, out.Close(closing))
}

// resume goes on where an output stands.
func (o *opened) resume(ctx context.Context, out output.Output) error {
	switch out := out.(type) {
	case output.Resumer:
		var states [][]byte
		if own := o.ownState(); len(own) > 0 {
			states = append(states, own)
		}
		gen := o.gen
		return out.Resume(func(state []byte) error { return o.save(gen, state) }, states...)
	case output.Transactional:
		return o.restore(ctx, out)
	}
	return nil
}

// save makes an output's state durable without moving the cursor. The output calls it from a
// goroutine of its own. One that was given up has nothing to say any more.
func (o *opened) save(gen int, state []byte) error {
	if !o.inbox.counts(gen) {
		return output.ErrClosed
	}
	p, before := o.cfg.Reader.Committed()
	steps, _, _ := unpackState(before)
	return o.cfg.Reader.Commit(p, packState(nil, steps, state))
}

// restore goes to where a Transactional output stands. What lies between the cursor and its token
// is done. It is read to be counted, and to see that the token is this journal's.
func (o *opened) restore(ctx context.Context, out output.Transactional) error {
	if o.cfg.Sift != nil && o.cfg.Sift.Retags() {
		return errRetags
	}
	gen := o.gen
	token, ok, err := out.Restore(ctx, func(ctx context.Context, token []byte, c *forward.Chunk,
		rejected []output.Rejected,
	) error {
		return o.refuseAt(ctx, gen, token, c, rejected)
	})
	if err != nil || !ok {
		return err
	}
	p, err := positionOf(token)
	if err != nil {
		return err
	}
	if p < o.committed && o.cfg.Sift != nil { // it has got nothing of what lies between
		return nil
	}
	if p < o.committed {
		o.cfg.Report(fmt.Errorf("the output stands at %v, before the cursor's %v: what lies between is not repeated", p,
			o.committed))
		return nil
	}
	var c forward.Chunk
	var n Counts
	at := o.committed
	for at < p && ctx.Err() == nil {
		rec, ok, err := o.cfg.Reader.TryNext()
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("the output stands at %v, and this journal ends at %v: the data directory is an older copy, or has lost its end", p, at)
		}
		if rec.Pos > p {
			return fmt.Errorf("the output stands at %v, where no record of this journal ends", p)
		}
		at = rec.Pos
		n.Chunks++
		if err := c.Parse(rec.Data); err != nil {
			n.Broken++
		} else {
			_, filtered, refused, _ := o.sieve.whole(at, &c)
			n.Out += int64(c.Events) - filtered - refused
			n.Filtered += filtered
			n.Refused += refused
		}
		o.settle()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	o.rewind(p)
	o.passing = n
	return nil
}

// refuseAt makes entries of a chunk dead letters at once, for an output that commits the position
// behind them itself. The output calls it from a goroutine of its own.
func (o *opened) refuseAt(ctx context.Context, gen int, token []byte, c *forward.Chunk,
	rejected []output.Rejected,
) error {
	p, err := positionOf(token)
	switch {
	case err != nil:
		return err
	case !o.inbox.counts(gen):
		return output.ErrClosed
	case o.cfg.Refuse == nil:
		return nil
	}
	var all []Refused
	for _, r := range output.Refusals(rejected, c.Events) {
		all = append(all, Refused{
			Position: p, Time: time.Now(), Reason: r.Reason, Entries: r.Entries,
			Chunk: output.Only(c, r.Entries),
		})
	}
	return o.cfg.Refuse(ctx, all)
}

// positionOf is what the token of a whole record says.
func positionOf(token []byte) (journal.Position, error) {
	if len(token) != tokenLen {
		return 0, fmt.Errorf("a token of %d bytes is none of a follower's", len(token))
	}
	return journal.Position(binary.BigEndian.Uint64(token)), nil
}

// errTwice says that an output breaks its contract.
var errTwice = errors.New("the output says of a chunk twice that it is done; only the first counts")

// once is land for outputs that may call it twice: a flight that was recycled has another chunk.
func (o *opened) once(land func(output.Result)) func(output.Result) {
	var done atomic.Bool
	return func(r output.Result) {
		if done.Swap(true) {
			o.cfg.Report(errTwice)
			return
		}
		land(r)
	}
}

// forget has nothing submitted to the output any more, and returns what it finished in time.
func (o *opened) forget() []*flight {
	o.out, o.at, o.longer = nil, nil, nil
	return o.inbox.close()
}
