// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/files"
	"github.com/spillwaylog/spillway/internal/lines"
)

// FileConfig says where lines go and how. Only Path is needed.
type FileConfig struct {
	Path     string            // with the placeholders {tag}, {date}, {hour}, {host}, {pid}; see package files
	Format   Format            // JSON or Text
	Text     lines.TextOptions // of Text
	Envelope lines.Options     // of JSON
	OmitZero bool              // a line of JSON has no time where it is 0
	Rotate   files.Rotation
	Shared   files.Sharing
	NewFiles int         // in a minute; see files.Options. 0: as many as come
	FileMode fs.FileMode // of new files, before umask; default 0644
	DirMode  fs.FileMode // of new directories, before umask; default 0755

	// Sync has Flush bring lines to the disk. States come only where all that was submitted is
	// written, and count when Flush has returned. Without it lines survive the process alone, and
	// each chunk has a state.
	Sync bool

	MinBackoff, MaxBackoff time.Duration // between attempts; defaults 100 ms and 10 s
	Trip
}

// fileOutput appends lines to files.
type fileOutput struct {
	*sinkQueue
	files *fileSink
}

// fileBuffer is how much is rendered before it is written: what the cache of a core holds, so that
// the kernel copies from there.
const fileBuffer = 256 << 10

// NewFile returns an output that appends lines to files; it is a Resumer. A chunk is delivered when
// all its lines are with the kernel, so that they survive the process, not a power cut; with Sync a
// flush brings them to the disk.
func NewFile(c *FileConfig) (Output, error) {
	r, err := c.Format.renderer(c.Envelope, &c.Text, c.OmitZero)
	if err != nil {
		return nil, err
	}
	s := &fileSink{config: *c, renderer: r, opening: make(chan struct{}, 1)}
	s.render = func(dst []byte) []byte { return s.appendRun(dst, fileBuffer) }
	if s.set, err = s.open(nil); err != nil {
		return nil, err
	}
	s.sinkQueue = newQueue(c.Path, s, &c.Trip, c.MinBackoff, c.MaxBackoff)
	o := &fileOutput{s.sinkQueue, s}
	if c.Shared != files.Unshared {
		s.together = sharedTogether
	}
	if files.Personal(c.Path) || c.Shared != files.Unshared {
		return personalOutput{o}, nil
	}
	return o, nil
}

// Resume implements Resumer.
func (o *fileOutput) Resume(save func(state []byte) error, states ...[]byte) error {
	return o.files.resume(Origin{states, save})
}

// Submit implements Output.
func (o *fileOutput) Submit(c *forward.Chunk, done func(Result)) { o.SubmitLong(nil, c, nil, done) }

// SubmitAt implements Placed.
func (o *fileOutput) SubmitAt(token []byte, c *forward.Chunk, done func(Result)) {
	o.SubmitLong(token, c, nil, done)
}

// SubmitLong implements Longer.
func (o *fileOutput) SubmitLong(token []byte, c *forward.Chunk, l *forward.Long, done func(Result)) {
	o.submit(ticket{chunk: c, long: l, place: token, origin: len(o.files.origins) - 1}, done)
}

// Waiting implements Waiter: all lines are made, and the disk has yet to take them.
func (o *fileOutput) Waiting() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.jobs) > 0 && o.files.made.Load() == o.seq
}

// Close implements Output.
func (o *fileOutput) Close(ctx context.Context) error {
	if end, ok := ctx.Deadline(); ok {
		o.files.deadline.CompareAndSwap(nil, &end)
	}
	return o.sinkQueue.Close(ctx)
}

// fileSink is the sink of a fileOutput.
type fileSink struct {
	*sinkQueue
	config   FileConfig
	renderer renderer
	render   func(dst []byte) []byte   // appendRun, until enough waits
	set      *files.Set                // of the origin whose chunks come
	own      *files.Set                // of the last origin
	origins  []fileOrigin              // none without Resume
	from     int                       // of origins, that which set is of
	opening  chan struct{}             // holds one: resume, or close, which may come while it runs
	made     atomic.Uint64             // the last job whose lines are made
	closing  sync.WaitGroup            // over sets of other origins
	deadline atomic.Pointer[time.Time] // of Close

	job  *job // what appendRun renders
	rest []byte
	line []byte // room for one that is left out
}

// resume goes on where several origins stand. The last one's set is opened.
func (s *fileSink) resume(all ...Origin) error {
	s.opening <- struct{}{}
	defer func() { <-s.opening }()
	if s.isClosed() {
		return ErrClosed
	}
	for i, from := range all {
		state, err := files.Merge(from.States...)
		if err != nil {
			if s.config.Sync {
				return err // nothing was opened: the position goes with the state
			}
			s.tell(fmt.Errorf("%s: %w; lines may be written twice", s.name, err))
		}
		s.origins, s.from = append(s.origins, fileOrigin{state, from.Save}), i
		// One of several states may go with what it was kept in, before the next is kept.
		if len(state) > 0 && !s.config.Sync && (len(from.States) > 1 || len(all) == 1) {
			if err := s.store(state); err != nil {
				return err
			}
		}
	}
	set, err := s.open(s.origins[s.from].state)
	if err != nil {
		return err
	}
	err = s.set.Close()
	s.set, s.own = set, set
	return err
}

// A fileOrigin is an Origin with its states as one.
type fileOrigin struct {
	state []byte // from which its set is opened
	save  func(state []byte) error
}

func (s *fileSink) open(state []byte) (*files.Set, error) {
	set, err := s.openAt(state)
	if errors.Is(err, files.ErrState) && !s.config.Sync { // the parameter shared was another one
		s.tell(fmt.Errorf("%s: %w; lines may be written twice", s.name, err))
		return s.openAt(nil)
	}
	return set, err
}

func (s *fileSink) openAt(state []byte) (*files.Set, error) {
	return files.Open(s.config.Path, state, &files.Options{
		MaxOpen: s.config.maxOpen(), Buffer: fileBuffer, FileMode: s.config.FileMode, DirMode: s.config.DirMode,
		NoSync: !s.config.Sync, Shared: s.config.Shared, Distinct: s.config.distinct(), Rotation: s.config.Rotate,
		NewFiles: s.config.NewFiles,
		Awaited:  s.config.Awaited,
		Record:   s.store,
		Report:   func(err error) { s.tell(err) },
	})
}

// store records a state. That it cannot be stored is no reason to write nothing: the lines come at
// least once then.
func (s *fileSink) store(state []byte) error {
	if len(s.origins) == 0 || s.origins[s.from].save == nil {
		return nil
	}
	if !s.acquire() {
		return errGone
	}
	defer s.give()
	err := s.origins[s.from].save(state)
	if s.config.Sync {
		return err
	}
	if err != nil {
		s.tell(fmt.Errorf("%s: its state cannot be stored; after a crash lines may be written twice: %w", s.name, err))
	}
	return nil
}

func (s *fileSink) write(jobs []*job, last bool) (state []byte, err error) {
	for _, j := range jobs {
		if err := s.turn(j.origin); err != nil {
			return nil, reopen(err)
		}
		if err := s.renderRest(j); err != nil {
			return nil, reopen(err)
		}
		s.made.Store(j.seq)
	}
	if s.config.Sync {
		return s.written(jobs, last)
	}
	state, err = s.set.Sync() // and nothing else before it is stored; it waits for no disk
	jobs[len(jobs)-1].torn += s.set.Torn()
	return state, err
}

// turn goes on with the chunks of an origin. What an earlier process wrote behind its last state is
// expected to come again with its own chunks, and at the first line that differs no more. So each
// origin has a set of its own.
func (s *fileSink) turn(origin int) error {
	if origin == s.from || len(s.origins) == 0 {
		return nil
	}
	if err := s.set.Write(); err != nil { // the rest of a line
		return err
	}
	before, next := s.set, s.own
	s.origins[s.from].state = before.State()
	if origin != len(s.origins)-1 {
		var err error
		if next, err = s.open(s.origins[origin].state); err != nil {
			return err
		}
	}
	s.set, s.from = next, origin
	if before != s.own {
		s.closing.Go(func() { // it may compress files, and waits for the disk
			if err := before.Close(); err != nil {
				s.tell(fmt.Errorf("%s: %w", s.name, err))
			}
		})
	}
	return nil
}

// renderRest renders a job to its end.
func (s *fileSink) renderRest(j *job) error {
	if err := s.skip(j); err != nil {
		return err
	}
	for !j.rendered {
		full, err := s.more(j)
		if err == nil && full {
			err = s.set.Write()
		}
		if len(j.place) > 0 && (errors.Is(err, files.ErrCrowded) || err == nil && s.set.Crowded()) {
			err = s.set.Checkpoint(files.Point{Place: string(j.place), Events: j.entry})
		}
		if err != nil {
			return err
		}
	}
	s.set.Cut()
	return nil
}

// skip leaves out what of a job the state covers that the output was resumed with: it was made in
// the middle of this chunk, or of a later one. Its lines are made all the same, since they say
// which entries are refused.
func (s *fileSink) skip(j *job) error {
	point := s.set.Resumed()
	if point == (files.Point{}) || len(j.place) == 0 || j.begun {
		return nil
	}
	events := point.Events
	switch strings.Compare(string(j.place), point.Place) {
	case -1:
		events = math.MaxInt
	case 1:
		events = 0
	}
	if !s.acquire() {
		return errGone
	}
	defer s.give()
	s.job, s.rest, j.begun = j, j.rest, true
	for len(s.rest) > 0 && j.entry < events {
		s.line = s.appendRun(s.line[:0], 0)
	}
	j.rest, s.job, s.rest = s.rest, nil, nil
	j.rendered = len(j.rest) == 0 && (j.long == nil || events > 0)
	if string(j.place) >= point.Place {
		s.set.Reached()
	}
	return nil
}

// written writes what waits, and gives a state if nothing waits behind it.
func (s *fileSink) written(jobs []*job, last bool) (state []byte, err error) {
	if err := s.set.Write(); err != nil {
		return nil, reopen(err)
	}
	jobs[len(jobs)-1].soon = s.set.WantSync()
	if last {
		state = s.set.State()
	}
	return state, nil
}

// flush brings all lines to the disk, where that was asked for.
func (s *fileSink) flush() error {
	if !s.config.Sync {
		return nil
	}
	_, err := s.set.Sync()
	return reopen(err)
}

// reopen marks the errors after which a set stays failed.
func reopen(err error) error {
	if errors.Is(err, files.ErrSync) {
		return fmt.Errorf("%w; %w", err, ErrReopen)
	}
	return err
}

// maxOpen is how many files are open at once: a logger shares its process's limit with the
// application.
func (c *FileConfig) maxOpen() int {
	if c.Sync {
		return 256
	}
	return 64
}

// more renders entries of a job, or its long one.
func (s *fileSink) more(j *job) (full bool, err error) {
	if j.long == nil {
		return s.extend(j)
	}
	s.set.Checkpoints(len(j.place) > 0)
	diverted := s.set.Rest()
	n, err := s.set.Long(j.chunk.Tag, j.long.Sec, s.longLine(j, s.renderer))
	j.begun = true
	j.diverted += s.set.Rest() - diverted
	if errors.Is(err, files.ErrBetween) || errors.Is(err, errRecord) {
		s.tell(fmt.Errorf("%s: %w", s.name, err))
		j.rejected, n, err = append(j.rejected, Rejected{Entry: 0, Err: err}), 0, nil
		if s.config.Shared == files.Unshared { // else nothing of it waits, but what is before it does
			s.set.Drop()
		}
	}
	if err == nil {
		j.bytes += n
		j.entry, j.rendered = 1, true
	}
	return false, err
}

// extend renders the entries of a job until enough waits in the set.
func (s *fileSink) extend(j *job) (full bool, err error) {
	if !s.acquire() {
		return false, errGone
	}
	defer s.give()
	s.job, s.rest, j.begun = j, j.rest, true
	s.set.Checkpoints(len(j.place) > 0)
	for !full && len(s.rest) > 0 && err == nil {
		lines, diverted := j.lines(), s.set.Rest()
		full, err = s.set.Extend(j.chunk.Tag, secondOf(s.rest), s.render)
		if s.set.Rest() > diverted {
			j.diverted += j.lines() - lines
		}
	}
	j.rest, s.job, s.rest = s.rest, nil, nil
	j.rendered = err == nil && len(j.rest) == 0
	return full, err
}

// secondOf returns the time of the first of packed entries.
func secondOf(entries []byte) int64 {
	sec, _, ok := lines.TimeOf(entries)
	if !ok {
		r := forward.ReadEntries(entries)
		e, _ := r.Next()
		sec = e.Sec
	}
	return sec
}

// appendRun appends the lines of the next entries that are of one second, and so for one file,
// until dst has limit bytes.
func (s *fileSink) appendRun(dst []byte, limit int) []byte {
	dst, n, err := s.job.render(s.renderer, dst, limit, s.rest)
	if err != nil {
		s.tell(fmt.Errorf("%s: what follows cannot be read and is left out: %w", s.name, err))
	}
	s.rest = s.rest[n:]
	return dst
}

func (s *fileSink) drop() { s.set.Drop() }

// tick closes files that were not used for long, and rotates those whose time has come. With Sync,
// Flush does that: between Flush and the moment at which its caller has kept the state nothing may
// change.
func (s *fileSink) tick() bool {
	if s.config.Sync {
		return false
	}
	if err := s.set.Write(); err != nil {
		s.tell(fmt.Errorf("%s: %w", s.name, err))
	}
	return s.set.Open() > 0
}

// close gives the rotated files half of the time that Close has, so that a compression never makes
// it fail.
func (s *fileSink) close() error {
	grace := files.CloseGrace
	if end := s.deadline.Load(); end != nil {
		grace = min(grace, time.Until(*end)/2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	select {
	case s.opening <- struct{}{}:
	case <-time.After(max(grace, time.Second)): // a disk that hangs
		return fmt.Errorf("output: %s: %w: it is still being resumed", s.name, ErrLeft)
	}
	defer func() { <-s.opening }()
	s.set.Drop()
	_ = s.set.Write() // the rest of a torn line, if there is room for it now; its chunk is known to have failed
	err := s.set.CloseContext(ctx)
	if s.own != nil {
		err = errors.Join(err, s.own.CloseContext(ctx)) // it may be closed already
	}
	s.closing.Wait()
	return err
}
