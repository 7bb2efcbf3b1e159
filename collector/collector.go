// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/internal/follow"
	"github.com/spillwaylog/spillway/internal/letters"
	"github.com/spillwaylog/spillway/internal/step"
	"github.com/spillwaylog/spillway/journal"
)

// A Collector takes chunks in, keeps them in a journal, and hands them on.
type Collector struct {
	config       Config
	reporter     *reporter
	messages     *lastMessages
	journal      *journal.Journal
	repeats      *repeatsFile
	store        *store
	pumps        []*pump // of all outputs since it was opened, at their index
	startBacklog *startBacklog
	backlogs     *backlogs
	recent       *recent
	letters      *letters.Store
	inHand       *inHand
	positions    *positions
	inputs       []*intake          // in the order of Config.Inputs
	server       *forward.Server    // of Forward inputs
	stopTaking   context.CancelFunc // see store
	turn         follow.Turn        // of large events, of inputs and outputs
	lineMemory   *lineMemory        // of inputs of lines
	routes       atomic.Pointer[step.Routes]

	crew crew

	// Guards what Apply exchanges and Close takes away; after it come the locks of journal,
	// repeats, deliveries and server.
	mu   sync.Mutex
	last *Stats // once nothing is open any more
}

// Open opens the data directory, the outputs and the sockets. Nothing is
// accepted before Run. Close what is not run.
func Open(config *Config) (*Collector, error) {
	conf, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Collector{messages: &lastMessages{}}
	conf.Log = slog.New(c.messages.over(conf.Log.Handler()))
	c.config, c.reporter = conf, newReporter(conf.Log)
	c.crew.begin()
	if err := c.open(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// reserveBytes is what the journal keeps free on its disk for cursors and the
// repeats file, or an eighth of a journal that is smaller than that.
const reserveBytes = 8 << 20

func (c *Collector) open() error {
	p, err := c.config.plan(nil)
	if err != nil {
		return err
	}
	inputs, plans := p.inputs, p.outputs
	c.routes.Store(p.routes)
	for i := range plans {
		if err := plans[i].try(c.config.Ack, c.config.Log); err != nil {
			return err
		}
	}
	report := func(err error) { c.reporter.report(codes.JournalError, "journal", err) }
	// It makes the directories too, and their names durable.
	c.journal, err = journal.Open(filepath.Join(c.config.Dir, "journal"), &journal.Options{
		MaxBytes: c.config.JournalBytes,
		Reserve:  min(reserveBytes, c.config.JournalBytes/8),
		Report:   report,
		Synced:   c.config.Synced,
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
		Report: func(err error) { c.reporter.report(codes.LettersError, "dead letters", err) },
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
		short:     make(chan struct{}, 1),
	}
	c.store.taking, c.stopTaking = context.WithCancel(context.Background())
	if err := c.openInputs(inputs); err != nil { // before outputs, which may connect
		return err
	}
	if c.inHand, err = openInHand(c.config.Dir); err != nil { // no reason not to start: it only helps after deaths
		c.reporter.report(codes.DirectoryError, "data directory", err)
	}
	var cursors []string
	for i := range plans {
		cursors = append(cursors, plans[i].cursor)
	}
	c.inHand.keep(cursors)
	ends, err := OutputEnds(c.config.Dir)
	if err != nil {
		c.reporter.report(codes.DirectoryError, "data directory", err)
	}
	unused, err := c.openPumps(plans, ends)
	if err != nil {
		return err
	}
	if c.startBacklog, err = openStartBacklog(c.journal, c.pumps); err != nil {
		return fmt.Errorf("data directory %s: %w", c.config.Dir, err)
	}
	b := &backlogs{
		journal: c.journal, start: c.startBacklog, store: c.store, recent: c.recent, limit: c.config.JournalBytes,
		opened:  time.Now(),
		changed: make(chan struct{}, 1),
	}
	b.arrivals.marks = c.journal.Found()
	c.backlogs = b
	c.publish()
	c.store.holder = b.holder
	for _, p := range c.pumps {
		c.serveOutput(p)
	}
	// Now that nothing can fail any more: a start that comes to nothing costs no output its place,
	// nor what it knows of its files.
	for name := range unused {
		said := []any{"output", ends[name].String(), "cursor", name}
		if at, err := c.furthestBehind(map[string]bool{name: true}); err == nil {
			said = append(said, "behind_bytes", c.journal.Behind(at))
		}
		codes.OutputForgotten.Warn(c.config.Log,
			"an output of an earlier run is not configured any more; its place in the journal is given up", said...)
		if err := c.journal.RemoveCursor(name); err != nil {
			return err
		}
	}
	for _, key := range givenUp {
		codes.InputForgotten.Warn(c.config.Log,
			"an input of an earlier run is not configured any more; where it stood is given up", "input",
			strings.TrimPrefix(key, "in."))
	}
	if err := c.positions.settle(); err != nil {
		return err
	}
	c.noteNames()
	return nil
}

// Addrs returns where the collector listens, in the order of Config.Inputs; nil for an input that
// does not say.
func (c *Collector) Addrs() []net.Addr {
	c.mu.Lock()
	defer c.mu.Unlock()
	addrs := make([]net.Addr, len(c.inputs))
	for i, in := range c.inputs {
		addrs[i] = in.addr()
	}
	return addrs
}

// Close lets go of everything. It is for a Collector that is not run, since
// Run does so itself; closing twice is fine. While an Apply hangs, which uses all that is open, it
// closes nothing and returns an error.
func (c *Collector) Close() error {
	c.endCrew()
	wait, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if !c.crew.idle(wait) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.rememberLocked()
		return errChangeHangs
	}
	c.mu.Lock() // not for longer: a disk may hang
	c.rememberLocked()
	inputs, pumps, counting, known, dead, places, j, notes :=
		c.inputs, c.pumps, c.startBacklog, c.repeats, c.letters, c.positions, c.journal, c.inHand
	c.inputs, c.pumps, c.startBacklog, c.repeats, c.letters, c.positions, c.journal, c.inHand =
		nil, nil, nil, nil, nil, nil, nil, nil
	c.mu.Unlock()
	var errs []error
	if c.stopTaking != nil {
		c.stopTaking()
	}
	for _, in := range inputs {
		errs = append(errs, in.close())
	}
	for _, p := range pumps {
		if p.follower != nil {
			errs = append(errs, p.letGo())
		}
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

// errChangeHangs says that an Apply is left behind.
var errChangeHangs = errors.New("a change of the configuration does not return; it is left behind, and changes nothing")

// rememberLocked keeps what Stats returns from now on.
func (c *Collector) rememberLocked() {
	if c.last == nil && c.backlogs != nil { // else it was not opened
		s := c.stats()
		c.last = &s
	}
}
