// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spillwaylog/spillway/cmd/internal/inlet"
	"github.com/spillwaylog/spillway/internal/await"
	"github.com/spillwaylog/spillway/internal/lines"
	"github.com/spillwaylog/spillway/internal/mover"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/internal/urls"
	"github.com/spillwaylog/spillway/internal/window"
	"github.com/spillwaylog/spillway/ring"
)

// followFlags are those of send --follow.
type followFlags struct {
	Follow bool   `help:"Keep what was read in shared memory until it is acked, so that the death of this process or of the server loses nothing of it."`
	Name   string `help:"With --follow: whose memory it is (${default}). The next send --follow of that name takes over what this one leaves." default:"send" placeholder:"NAME"`
	Dir    string `help:"With --follow: folder on disk for what the memory cannot hold while the server does not take it." type:"path" placeholder:"DIR"`
	Shm    string `help:"With --follow: folder in memory (tmpfs) under which the memory lies (${default})." type:"path" default:"/dev/shm" placeholder:"DIR"`
}

// pipeName is what --name may be: it is a part of the names of files.
var pipeName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$`)

func (f *followFlags) check() error {
	switch {
	case f.Follow && !pipeName.MatchString(f.Name):
		return fmt.Errorf("--name %q: it has letters, digits, '.', '_' and '-', at most 64", f.Name)
	case !f.Follow && (f.Name != "send" || f.Dir != "" || f.Shm != "/dev/shm"):
		return errors.New("--name, --dir and --shm belong to --follow")
	}
	return nil
}

// home is the folder of rings.
func (f *followFlags) home() string {
	return filepath.Join(f.Shm, "spillway-"+strconv.Itoa(os.Geteuid()))
}

// rings is the name of the rings, which no logger has by chance.
func (f *followFlags) rings() string { return "send-" + f.Name }

// A pipeline takes lines from the inlet into a ring, from which a mover ships them.
//
//	standard input ──► inlet ──► ring ──► mover ──► the server
type pipeline struct {
	*sendCmd
	inlet  *inlet.Inlet
	mover  *mover.Mover
	reader *lines.Reader
	in     io.Reader
	line   int // of standard input, for what is told of it
	taken  int
	times  finds
	tags   finds

	hint    ring.Hint
	ring    *ring.Ring
	record  []byte
	payload []byte
}

// follow is Run with --follow.
func (c *sendCmd) follow(ctx context.Context, s *streams) (err error) {
	said := newOutbox(s.err, nil, func(w io.Writer,
		n int,
	) {
		fmt.Fprintf(w, "spillway: %d messages are left out\n", n)
	})
	defer said.close()
	report := func(err error) {
		if err != nil {
			fmt.Fprintln(said, "spillway:", strings.TrimPrefix(err.Error(), "spillway: "))
		}
	}
	p := &pipeline{sendCmd: c, in: s.in}
	if p.reader, err = c.lineReader(true); err != nil {
		return err
	}
	p.findsTo(said)
	plan, err := c.plan()
	if err != nil {
		return err
	}
	if p.inlet, err = openInlet(&c.followFlags, report); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.inlet.Close()) }()
	rings, err := p.rest(report)
	if err == nil {
		err = p.resolve(rings)
	}
	if err != nil {
		return err
	}
	if p.mover, err = c.openMover(plan, report); err != nil {
		return err
	}
	read := p.run(ctx)
	closed := p.close()
	stats := p.mover.Stats()
	_, printed := fmt.Fprintf(s.out, "%d acked\n", stats.Delivered)
	if lost := stats.Lost + stats.Dropped + stats.DeadLettered; lost > 0 {
		closed = errors.Join(closed, fmt.Errorf("%d events were refused by the server for good, or lost", lost))
	}
	return errors.Join(read, closed, printed)
}

// plan reads --to.
func (c *sendCmd) plan() (*output.Plan, error) {
	u, err := urls.ParseAmong(c.To, serverSchemes)
	if err != nil {
		return nil, err
	}
	if scheme, _, _ := strings.Cut(u.Scheme, "+"); scheme != "forward" {
		return nil, u.Errorf("cannot send there; there are forward://, forward+tls:// and forward+unix://")
	}
	return output.Read(u, &output.Owner{})
}

func openInlet(f *followFlags, report func(error)) (*inlet.Inlet, error) {
	in, err := inlet.Open(filepath.Join(f.home(), f.rings()+".inlet"), report)
	if errors.Is(err, inlet.ErrInUse) {
		return nil, fmt.Errorf("%w: give each pipe a --name of its own", err)
	}
	return in, err
}

func (c *sendCmd) openMover(plan *output.Plan, report func(error)) (*mover.Mover, error) {
	var opened atomic.Pointer[mover.Mover]
	url := plan.Place
	d, err := plan.Open(&output.Trip{Report: report, Health: func(h output.Health) {
		switch held := uint64(0); {
		case h.Err == nil && h.Tries > 0:
			report(fmt.Errorf("%s: it works again", url))
		case h.Err != nil:
			if m := opened.Load(); m != nil { // an attempt may fail before mover.Open returns
				held = m.Stats().Held
			}
			report(fmt.Errorf("%s: attempt %d failed: %w; %d events are held; the next one is in %v", url, h.Tries,
				h.Err, held, h.Pause.Round(time.Millisecond)))
		}
	}})
	if err != nil {
		return nil, err
	}
	m, err := mover.Open(&mover.Config{
		Name: c.rings(), Shm: c.home(), Dir: c.Dir, Identity: plan.Place, MaxEvent: 4 * inlet.MaxLine,
		Overflow: mover.Block, MaxWait: math.MaxInt64, Window: plan.Window, Destination: d, Diagnostics: report,
	})
	if err == nil && m.Stats().InMemory {
		err = fmt.Errorf("no ring in %s, and without one --follow keeps nothing", c.home())
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err = errors.Join(err, m.Close(ctx))
	}
	opened.Store(m)
	return m, err
}

// findsTo has the lines told in which time or tag cannot be read.
func (p *pipeline) findsTo(w io.Writer) {
	p.times = finds{what: "time", key: p.TimeKey, instead: "with the time of its reading", w: w}
	p.tags = finds{what: "tag", key: p.TagKey, instead: "under the tag " + strconv.Quote(p.Tag), w: w}
}

// resolve finds out whether the ring of the process before this one has the line that is to be
// taken next: it was killed before it could note that. That ring is not adopted yet.
func (p *pipeline) resolve(rings []*ring.Inspection) error {
	id, key := p.inlet.Last()
	line, _, ok := p.inlet.Next()
	for ; ok && len(bytes.TrimSpace(line)) == 0; line, _, ok = p.inlet.Next() {
		p.inlet.Skip()
	}
	if p.inlet.Left() == 0 {
		return nil
	}
	for _, r := range rings {
		if r.Owner.RingID != hex.EncodeToString(id[:]) {
			continue
		}
		higher := r.Cut > key
		for record := range r.AllRecords {
			higher = higher || record.Key > key
		}
		if !higher {
			return nil
		}
		if !ok { // it was the beginning of a line, when standard input had ended
			p.inlet.End()
			_, _, _ = p.inlet.Next()
		}
		p.inlet.Took(math.MaxUint64)
		return nil
	}
	return nil
}

// ringPatience is how long a ring that another process has is waited for; longer in tests.
var ringPatience = 10 * time.Second

// rest returns the rings that were left, once no process has them: of a process that was killed a
// moment ago the kernel may let go of the inlet first, and a ring that is not there yet would be
// shipped behind what is read now.
func (p *pipeline) rest(report func(error)) ([]*ring.Inspection, error) {
	told := false
	for deadline := time.Now().Add(ringPatience); ; <-time.After(10 * time.Millisecond) {
		folders, err := filepath.Glob(filepath.Join(p.home(), p.rings()+".*"))
		if err != nil {
			return nil, err
		}
		var found []*ring.Inspection
		var live error
		for _, folder := range folders {
			all, err := ring.Inspect(folder)
			switch {
			case errors.Is(err, ring.ErrNone), errors.Is(err, fs.ErrNotExist), isFile(folder): // which is an inlet
				continue
			case err != nil:
				return nil, err
			}
			if all[0].Live && all[0].Owner.Name == p.rings() {
				live = fmt.Errorf("%s is in use by another process, and waited for", folder)
			}
			found = append(found, all...)
		}
		if live == nil || time.Now().After(deadline) {
			return found, nil
		}
		if !told {
			report(live)
			told = true
		}
	}
}

func isFile(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && fi.Mode().IsRegular()
}

// run takes lines until the end of standard input. When ctx ends it goes on for --timeout: what
// writes into the pipe was told to end as well, and may have something to say.
func (p *pipeline) run(ctx context.Context) error {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { p.patience(late, cancel) })()
	pipe := inlet.Pipe{}
	file, isFile := p.in.(*os.File)
	if isFile {
		pipe = inlet.PipeOf(file)
	}
	p.inlet.From(pipe)
	for ended := false; ; {
		for line, text, ok := p.inlet.Next(); ok; line, text, ok = p.inlet.Next() {
			if err := p.take(late, line, text); err != nil {
				return err
			}
		}
		if ended {
			break
		}
		if isFile {
			if err := await.Readable(late, file); err != nil {
				return fmt.Errorf("standard input has not ended: %w", context.Cause(ctx))
			}
		}
		switch err := p.inlet.Read(p.in); {
		case errors.Is(err, io.EOF):
			ended = true
			p.inlet.End()
		case err != nil:
			return err
		}
	}
	p.times.sum(p.taken)
	p.tags.sum(p.taken)
	return nil
}

// patience waits for --timeout, or for another signal.
func (p *pipeline) patience(ctx context.Context, over func()) {
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(again)
	select {
	case <-again:
	case <-time.After(p.Timeout):
	case <-ctx.Done():
	}
	over()
}

// take brings a line into the ring, which it waits for.
func (p *pipeline) take(ctx context.Context, line []byte, text bool) error {
	p.line++
	line = bytes.TrimSuffix(line, []byte{'\r'})
	if len(bytes.TrimSpace(line)) == 0 {
		p.inlet.Skip()
		return nil
	}
	var e lines.Event
	if text {
		p.record = p.reader.AppendText(p.record[:0], line)
	} else {
		p.record, e = p.reader.AppendRecord(p.record[:0], line)
		p.times.note(p.line, e.Time)
		p.tags.note(p.line, e.Tagged)
	}
	tag, t := p.Tag, p.inlet.When().UnixNano()
	if e.Tagged == lines.FindingSaid {
		tag = string(e.Tag)
	}
	if e.Time == lines.FindingSaid {
		t = e.Sec*int64(time.Second) + int64(e.Nsec)
	}
	if p.ring != p.mover.Ring() {
		p.ring = p.mover.Ring()
		var id [16]byte
		_, _ = hex.Decode(id[:], []byte(p.ring.Owner().RingID))
		p.inlet.Enter(id)
	}
	p.payload = append(window.AppendPayload(p.payload[:0], tag), p.record...)
	_, key, err := p.mover.AppendKeyed(ctx, &p.hint, t, true, p.payload)
	if errors.Is(err, mover.ErrTooLarge) { // JSON that becomes four times as long
		p.payload = p.reader.AppendText(window.AppendPayload(p.payload[:0], tag), line)
		_, key, err = p.mover.AppendKeyed(ctx, &p.hint, t, true, p.payload)
	}
	if err != nil {
		return fmt.Errorf("what was read stays for the next send --follow --name %s: %w", p.Name, err)
	}
	p.inlet.Took(key)
	p.taken++
	return nil
}

// close waits until all is delivered, for --timeout.
func (p *pipeline) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), p.Timeout)
	defer cancel()
	err := p.mover.Close(ctx)
	if left := (*mover.UndeliveredError)(nil); errors.As(err, &left) {
		err = fmt.Errorf("%d events not acked within %v; the next send --follow --name %s sends them: %w", left.Events,
			p.Timeout, p.Name, left.Err)
	}
	return err
}
