// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/follow"
	"github.com/spillwaylog/spillway/internal/letters"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// A Collector takes chunks in, keeps them in a journal, and hands them on.
type Collector struct {
	config     Config
	reporter   *reporter
	journal    *journal.Journal
	repeats    *repeatsFile
	store      *store
	pumps      []*pump
	found      *found
	backlogs   *backlogs
	recent     *recent
	letters    *letters.Store
	inHand     *inHand
	positions  *positions
	inputs     []*intake
	server     *forward.Server    // of Forward inputs
	stopTaking context.CancelFunc // see store
	turn       follow.Turn        // of large events, of inputs and outputs
	lineMemory *lineMemory        // of inputs of lines

	mu   sync.Mutex // Stats against Close; after it come the locks of journal, repeats and server
	last *Stats     // once nothing is open any more
}

// Open opens the data directory, the outputs and the sockets. Nothing is
// accepted before Run. Close what is not run.
func Open(config *Config) (*Collector, error) {
	conf, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Collector{config: conf, reporter: newReporter(conf.Log)}
	if err := c.open(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// reserveBytes is what the journal keeps free on its disk for cursors and the
// repeats file, or an eighth of a journal that is smaller than that.
const reserveBytes = 8 << 20

func (c *Collector) open() error {
	inputs, err := planInputs(&c.config)
	if err != nil {
		return err
	}
	plans, err := planOutputs(&c.config)
	if err != nil {
		return err
	}
	for i := range plans {
		if err := plans[i].try(c.config.Ack, c.config.Log); err != nil {
			return err
		}
	}
	report := func(err error) { c.reporter.trouble("journal", err) }
	// It makes the directories too, and their names durable.
	c.journal, err = journal.Open(filepath.Join(c.config.Dir, "journal"), &journal.Options{
		MaxBytes: c.config.JournalBytes,
		Reserve:  min(reserveBytes, c.config.JournalBytes/8),
		Report:   report,
	})
	if err != nil {
		return fmt.Errorf("data directory %s: %w", c.config.Dir, err)
	}
	if c.repeats, err = openRepeats(c.config.Dir, c.journal, report); err != nil {
		return fmt.Errorf("data directory %s: %w", c.config.Dir, err)
	}
	c.recent = newRecent(recentOptions{bytes: min(max(c.config.Memory/4, 1<<20), recentBytes)})
	if c.letters, err = letters.Open(filepath.Join(c.config.Dir, lettersDir), &letters.Options{
		MaxBytes: c.config.LetterBytes, DropOldest: c.config.DropLetters,
		Report: func(err error) { c.reporter.trouble("dead letters", err) },
	}); err != nil {
		return fmt.Errorf("data directory %s: %w", c.config.Dir, err)
	}
	var keys []string
	for i := range inputs {
		if inputs[i].key != "" {
			keys = append(keys, inputs[i].key)
		}
	}
	var givenUp []string
	if c.positions, givenUp, err = openPositions(c.journal, keys, report); err != nil {
		return fmt.Errorf("data directory %s: %w", c.config.Dir, err)
	}
	c.store = &store{
		journal:   c.journal,
		repeats:   c.repeats.repeats,
		recent:    c.recent,
		ack:       c.config.Ack,
		delivered: newDeliveries(len(plans)),
		letters:   c.letters,
		maxEvent:  c.config.MaxEvent,
		reporter:  c.reporter,
	}
	c.store.taking, c.stopTaking = context.WithCancel(context.Background())
	if err := c.openInputs(inputs); err != nil { // before outputs, which may connect
		return err
	}
	if c.inHand, err = openInHand(c.config.Dir); err != nil { // no reason not to start: it only helps after deaths
		c.reporter.trouble("data directory", err)
	}
	var cursors []string
	for i := range plans {
		cursors = append(cursors, plans[i].cursor)
	}
	c.inHand.keep(cursors)
	unused, err := c.openPumps(plans)
	if err != nil {
		return err
	}
	if c.found, err = openFound(c.journal, c.pumps); err != nil {
		return fmt.Errorf("data directory %s: %w", c.config.Dir, err)
	}
	pumps := c.pumps
	b := &backlogs{journal: c.journal, found: c.found, store: c.store, recent: c.recent, most: c.config.JournalBytes, opened: time.Now()}
	b.arrivals.marks = c.journal.Found()
	c.backlogs = b
	c.store.holder = func() []any { return b.holder(pumps) }
	for _, p := range pumps {
		p.confirm = c.store.delivered.confirm
		p.confirm(p.index, p.follower.Start())
		p.holding = func() holding { return b.holding(p) }
		p.over = func(at journal.Position) func(journal.Position) bool { return b.over(p, at) }
		p.ready.Store(true)
	}
	ends, err := OutputEnds(c.config.Dir)
	if err != nil {
		c.reporter.trouble("data directory", err)
	}
	for name := range unused { // now that nothing can fail any more: a start that comes to nothing costs no output its place, nor what it knows of its files
		c.config.Log.Warn("an output of an earlier run is not configured any more; its place in the journal is given up", "output", ends[name].String(), "cursor", name)
		if err := c.journal.RemoveCursor(name); err != nil {
			return err
		}
	}
	for _, key := range givenUp {
		c.config.Log.Warn("an input of an earlier run is not configured any more; where it stood is given up", "input", strings.TrimPrefix(key, "in."))
	}
	if err := c.positions.settle(); err != nil {
		return err
	}
	if err := writeNames(c.config.Dir, plans); err != nil {
		c.reporter.trouble("data directory", err)
	}
	return nil
}

// Addrs returns where the collector listens, in the order of Config.Inputs; nil for an input that
// does not say.
func (c *Collector) Addrs() []net.Addr {
	addrs := make([]net.Addr, len(c.inputs))
	for i, in := range c.inputs {
		addrs[i] = in.addr()
	}
	return addrs
}

// Close lets go of everything. It is for a Collector that is not run, since
// Run does so itself; closing twice is fine.
func (c *Collector) Close() error {
	c.mu.Lock() // not for longer: a disk may hang
	c.remember()
	inputs, pumps, counting, known, dead, places, j, notes := c.inputs, c.pumps, c.found, c.repeats, c.letters, c.positions, c.journal, c.inHand
	c.inputs, c.pumps, c.found, c.repeats, c.letters, c.positions, c.journal, c.inHand = nil, nil, nil, nil, nil, nil, nil, nil
	c.mu.Unlock()
	var errs []error
	if c.stopTaking != nil {
		c.stopTaking()
	}
	for _, in := range inputs {
		errs = append(errs, in.close())
	}
	for _, p := range pumps {
		errs = append(errs, p.follower.Close())
	}
	if counting != nil {
		errs = append(errs, counting.close(j))
	}
	if known != nil {
		errs = append(errs, known.close())
	}
	if dead != nil {
		errs = append(errs, dead.Close())
	}
	if places != nil {
		errs = append(errs, places.close())
	}
	if notes != nil {
		errs = append(errs, notes.close())
	}
	if j != nil { // last: it has the lock of the directory
		errs = append(errs, j.Close())
	}
	return errors.Join(errs...)
}

// remember keeps what Stats returns from now on. With mu held.
func (c *Collector) remember() {
	if c.last == nil && c.backlogs != nil { // else it was not opened
		s := c.stats()
		c.last = &s
	}
}

// Run serves until ctx is done, then drains: it stops accepting, finishes what
// is half done, sends the acks, hands on what the journal holds, for at most
// Config.Drain. What is left stays in the journal; that is no error.
//
//	        ctx ends          acks are out        outputs caught up
//	inputs ────┼── Run returns ──┤
//	pumps  ────┼─────────────────┼── drain ─────────────┤
//	repeats ───┼─────────────────┼──────────────────────┼─ save ─┤ journal closed
//	positions ─┴─────────────────┴──────────────────────┴────────┘
//
// An input or output that does not return is left behind. The error names it.
func (c *Collector) Run(ctx context.Context) error {
	background, stopBackground := context.WithCancel(context.Background())
	hard, stopHard := context.WithCancel(context.Background())
	drain, beginDrain := context.WithCancel(context.Background())
	defer stopHard()
	defer beginDrain()

	var others sync.WaitGroup
	others.Go(func() { c.reporter.run(background) })
	others.Go(func() {
		c.repeats.run(background, c.journal, func(err error) { c.reporter.trouble("repeats", err) })
	})

	others.Go(func() { c.backlogs.run(background, c.pumps) })
	others.Go(func() { c.backlogs.hold(background, c.pumps) })
	var counting sync.WaitGroup
	counting.Go(func() {
		c.found.run(background, c.journal, func(err error) { c.reporter.trouble("journal", err) })
	})

	c.inHand.runs()
	for _, p := range c.pumps { // one after another, and before anything else may end the process
		if p.follower.Suspects() {
			c.config.Log.Warn("the process has ended while one record was in hand: it is tried before anything else", "output", p.name)
			p.follower.Try(ctx)
		}
	}

	var pumping sync.WaitGroup
	for _, p := range c.pumps {
		p.hangs.Store(true) // until it has ended
		pumping.Go(func() {
			err := p.follower.Run(hard, drain)
			if err != nil {
				p.report(err)
			}
			p.hangs.Store(errors.Is(err, output.ErrLeft))
		})
	}

	others.Go(func() { c.positions.run(background) })

	failed := make(chan error, len(c.inputs))
	inputs, endInputs := context.WithCancel(context.Background())
	defer endInputs()
	var serving, taking sync.WaitGroup
	for _, in := range c.inputs { // in their order, which the goroutines would not keep
		if l, ok := in.Input.(interface{ announce() }); ok {
			l.announce()
		}
	}
	for _, in := range c.inputs {
		taking.Add(1)
		serving.Go(func() {
			defer taking.Done()
			in.run(inputs, failed)
		})
	}
	serving.Go(func() { c.serve(inputs) })

	var err error
	deadline, cancel := context.WithCancel(context.Background())
	defer cancel()
	limit := func() { time.AfterFunc(c.config.Drain, cancel) }
	ended := make(chan struct{})
	go func() {
		taking.Wait()
		close(ended)
	}()
	select {
	case <-ctx.Done():
		limit()
	case err = <-failed:
		limit()
	case <-ended: // nothing more will come, and it may take as long as nobody wants an end
		select {
		case err = <-failed:
			limit()
		default:
			defer context.AfterFunc(ctx, limit)()
		}
	}
	endInputs()
	err = errors.Join(err, c.drainInputs(deadline, &serving, failed))

	// What asked for no ack may not be durable yet, and outputs do not see it before.
	if syncErr := c.journal.Sync(deadline, c.journal.Stats().Last); syncErr != nil {
		c.config.Log.Warn("the last events are not known to be stored", "error", syncErr)
	}
	beginDrain()
	if !finished(deadline, &pumping) {
		var behind []string
		for _, p := range c.pumps {
			if c.backlogs.of(p).events > 0 {
				behind = append(behind, p.name)
			}
		}
		c.config.Log.Warn("not everything was handed on in time; the journal keeps it", "after", c.config.Drain, "behind", strings.Join(behind, " "))
		stopHard()
		// An output that hangs in the kernel cannot be interrupted. It has its
		// own goroutine, and nothing below touches what it holds.
		grace, cancelGrace := context.WithTimeout(context.Background(), time.Second)
		defer cancelGrace()
		if !finished(grace, &pumping) {
			stopBackground()
			soon, cancelSoon := context.WithTimeout(context.Background(), time.Second)
			defer cancelSoon()
			finished(soon, &counting)
			finished(soon, &others)
			c.mu.Lock()
			c.remember()
			c.mu.Unlock()
			return errors.Join(err, hanging(c.pumps))
		}
	}
	err = errors.Join(err, hanging(c.pumps))
	// Without the whole count of what the journal held the account does not add up.
	finished(deadline, &counting)
	stopBackground()
	counting.Wait()
	others.Wait()
	return errors.Join(err, c.Close())
}

// errInputHangs says that an input is left behind.
var errInputHangs = errors.New("the input does not return; it is left behind, and what it had not stored is not stored")

// errHangs says that an output is left behind.
var errHangs = errors.New("the output does not return from a write; the journal keeps what it had not confirmed")

// hanging names the outputs that have not ended.
func hanging(pumps []*pump) (err error) {
	for _, p := range pumps {
		if p.hangs.Load() {
			err = errors.Join(err, fmt.Errorf("%s: %w", p.name, errHangs))
		}
	}
	return err
}

// serve shuts the server of Forward inputs down when ctx ends.
func (c *Collector) serve(ctx context.Context) {
	<-ctx.Done()
	if err := c.server.Shutdown(c.store.taking); err != nil {
		c.config.Log.Warn("some connections were cut before their chunks were stored; their senders have no ack", "error", err)
		c.server.Close()
	}
}

// drainInputs waits for inputs that were told to end. After the deadline their sinks take nothing,
// and soon after that those that have not returned are left behind.
func (c *Collector) drainInputs(deadline context.Context, serving *sync.WaitGroup, failed <-chan error) error {
	var errs []error
	if !finished(deadline, serving) {
		c.stopTaking()
		grace, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if !finished(grace, serving) {
			for _, in := range c.inputs {
				if in.running.Load() {
					errs = append(errs, fmt.Errorf("%s: %w", in.account.name, errInputHangs))
				}
			}
			if errs == nil {
				errs = append(errs, errors.New("a connection does not end; it is left behind"))
			}
		}
	}
	for _, in := range c.inputs {
		errs = append(errs, in.close())
	}
	for {
		select {
		case err := <-failed:
			errs = append(errs, err)
		default:
			return errors.Join(errs...)
		}
	}
}

// finished waits for wg, but not longer than ctx.
func finished(ctx context.Context, wg *sync.WaitGroup) bool {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}
