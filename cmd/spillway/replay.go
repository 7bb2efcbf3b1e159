// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/letters"
)

type replayCmd struct {
	Dir string `arg:"" help:"Data directory, or the directory of the dead letters in it." type:"existingdir"`

	To      string        `help:"Server: forward://host:port, forward+tls://host:port?ca=PEM or forward+unix:///path." placeholder:"URL"`
	Output  string        `help:"Only what this output refused, named as journal ls names it." placeholder:"NAME"`
	Keep    bool          `help:"Send copies: the letters stay. It may be done while the collector runs."`
	DryRun  bool          `help:"Say what would be sent."`
	Timeout time.Duration `help:"Give up when nothing is acked for so long." default:"30s"`
}

// Help tells what does not fit behind a flag.
func (c *replayCmd) Help() string {
	return `Letters go in the order in which they were refused, several at once, each as a chunk with an id of its own that it keeps. One that is acked is removed, and what is left stays: interrupted or killed and started again, it goes on where it was, and what was on its way just then is sent again with the same id, which a receiver like spillway serve recognises.

Exit status: 0 when all are acked, 1 when some are left. What cannot be read is told and stays.

Without --keep the letters must not be in use: the collector has them from the first one that it puts there until it ends. The parameters of --to are those of send, see spillway help send.`
}

// Validate is called with the flags set.
func (c *replayCmd) Validate() error {
	if c.Timeout <= 0 {
		return fmt.Errorf("--timeout: %v is no time in which an ack can come", c.Timeout)
	}
	if c.To == "" && !c.DryRun {
		return errors.New("--to is missing: the URL of the server that is to get the letters")
	}
	return nil
}

// Run sends letters.
func (c *replayCmd) Run(ctx context.Context, s *streams) error {
	screen := openTerminal(s.err)
	warnings := &inTurn{w: screen.through(s.err)}
	r := &replay{timeout: c.Timeout, warnings: warnings, acks: make(chan replayAck, replayWindow)}
	url := ""
	if c.To != "" {
		client, shown, err := clientTo(c.To, "replay", warnings)
		if err != nil {
			return err
		}
		defer client.Close()
		client.Window = replayWindow
		r.client, url = client, shown
		r.server = &reach{w: warnings, url: url, address: client.Address}
		client.Changed = r.server.changed
	}
	dir, ok := letters.Find(c.Dir)
	if !ok {
		if !isDir(filepath.Join(c.Dir, "journal")) {
			return fmt.Errorf("%s is neither a data directory nor one of dead letters", c.Dir)
		}
		_, err := fmt.Fprintln(s.out, "no letters: no output has refused anything")
		return err
	}
	if c.DryRun {
		return c.dryRun(s.out, dir, url)
	}
	var err error
	if r.taker, err = c.open(dir, warnings); err != nil {
		return err
	}
	if r.all, err = lettersLeft(dir, c.Output); err != nil {
		return errors.Join(err, r.taker.Close())
	}
	r.progress = newProgress(screen, warnings, r.all)
	err = r.run(ctx)
	r.progress.end()
	err = errors.Join(err, r.taker.Commit(), r.taker.Close())
	left := r.left()
	_, printErr := fmt.Fprintf(s.out, "sent %v; acked %v; left %v\n", r.sent, r.acked, left)
	if err == nil && left.letters > 0 {
		err = r.unreadable()
	}
	if err != nil {
		return fmt.Errorf("%v not acked: %w", left, err)
	}
	return printErr
}

func (c *replayCmd) open(dir string, warnings io.Writer) (*letters.Taker, error) {
	if c.Keep {
		return letters.Copy(dir, c.Output)
	}
	t, err := letters.Take(dir, c.Output, func(err error) { fmt.Fprintln(warnings, "spillway:", err) })
	if errors.Is(err, letters.ErrLocked) {
		err = fmt.Errorf("%w; it is another replay, or the collector, which refuses events just now: "+
			"run this again when there were none for 10 seconds, or send copies with --keep", err)
	}
	return t, err
}

// dryRun tells what would be sent.
func (c *replayCmd) dryRun(out io.Writer, dir, url string) error {
	if _, err := lettersLeft(dir, c.Output); err != nil {
		return err
	}
	taker, err := letters.Copy(dir, c.Output)
	if err != nil {
		return err
	}
	defer taker.Close()
	var table letterTable
	for {
		e, err := taker.Next()
		if err != nil {
			return err
		}
		if e == nil {
			break
		}
		table.add(e)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	table.print(w)
	if url == "" {
		url = "the server that --to names"
	}
	fmt.Fprintf(w, "\nwould be sent to %s: %v; but for what cannot be read\n", url, table.all)
	return w.Flush()
}

const (
	replayWindow = 64       // letters on their way
	replayBytes  = 16 << 20 // bytes of them; one larger letter goes alone
	commitEvery  = 100 * time.Millisecond
)

// A replay sends letters and notes which are acked.
//
//	taker.Next ──► client.Start ──► the server
//	taker.Done ◄──── acks ◄──────────┘
//	taker.Commit, now and then
type replay struct {
	client   *forward.Client
	taker    *letters.Taker
	server   *reach
	timeout  time.Duration
	warnings io.Writer
	progress *progress
	acks     chan replayAck // has room for all that are on their way: the client must not wait

	all      tally // that were there
	sent     tally
	acked    tally
	broken   tally // cannot be read
	flying   int
	inFlight int64 // bytes
	atEnd    bool
}

type replayAck struct {
	letter *letters.Entry
	err    error
}

// run sends until there is nothing left, ctx ends, or nothing was acked for too long.
func (r *replay) run(ctx context.Context) error {
	ended, began := r.server.begin(r.timeout), time.Now()
	defer func() { ended() }()
	patience := time.NewTimer(r.timeout)
	defer patience.Stop()
	tick := time.NewTicker(commitEvery)
	defer tick.Stop()
	for {
		if err := r.fill(); err != nil {
			return err
		}
		if r.flying == 0 {
			return nil
		}
		select {
		case a := <-r.acks:
			if err := r.done(a); err != nil {
				return err
			}
			patience.Reset(r.timeout)
			if time.Since(began) > reachEvery { // and not for each: that stops and starts a timer
				ended()
				ended, began = r.server.begin(r.timeout), time.Now()
			}
		case <-tick.C:
			if err := r.taker.Commit(); err != nil {
				return err
			}
			r.progress.show(r.acked)
		case <-patience.C:
			return errors.Join(fmt.Errorf("gave up: nothing was acked for %v", r.timeout), r.drain())
		case <-ctx.Done():
			return errors.Join(ctx.Err(), r.drain())
		}
	}
}

// fill sends as many as may be on their way.
func (r *replay) fill() error {
	for !r.atEnd && r.flying < replayWindow && (r.flying == 0 || r.inFlight < replayBytes) {
		e, err := r.taker.Next()
		if err != nil {
			return err
		}
		if e == nil {
			r.atEnd = true
			break
		}
		if e.Err != nil {
			r.broken.add(e)
			if r.broken.letters <= findsTold {
				fmt.Fprintf(r.warnings, "spillway: letter %v stays: %v\n", e.Pos, e.Err)
			}
			continue
		}
		if _, err := r.client.Start(e.Chunk, func(err error) { r.acks <- replayAck{e, err} }); err != nil {
			return err
		}
		r.sent.add(e)
		r.flying++
		r.inFlight += e.Bytes
	}
	return nil
}

// done takes one answer.
func (r *replay) done(a replayAck) error {
	r.flying--
	r.inFlight -= a.letter.Bytes
	if a.err != nil {
		return a.err
	}
	r.acked.add(a.letter)
	return r.taker.Done(a.letter)
}

// drain takes the answers that have come already.
func (r *replay) drain() error {
	for {
		select {
		case a := <-r.acks:
			if err := r.done(a); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// left is what was there and is not acked. A letter that came meanwhile does not count.
func (r *replay) left() tally {
	left := func(all, acked int64) int64 { return max(0, all-acked) }
	return tally{
		left(r.all.letters, r.acked.letters), left(r.all.events, r.acked.events),
		left(r.all.bytes, r.acked.bytes),
	}
}

// unreadable says why something is left though nothing failed.
func (r *replay) unreadable() error {
	if r.broken.letters == 0 {
		return errors.New("they went while copies were sent")
	}
	return fmt.Errorf("%s cannot be read", plural(r.broken.letters, "letter"))
}
