// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/credentials"
	"github.com/spillwaylog/spillway/internal/urls"
)

// An inputPlan is an input that was understood but touches nothing yet, so that a mistake in one of
// them is told before anything is opened.
type inputPlan struct {
	end  End
	name string // as given, or the URL without its settings
	url  string
	key  string // under which its position is kept; empty for inputs that have none
	open func(c *Collector, a *account) (Input, error)

	source string       // that no other input may read; empty: that is not known
	spot   string       // a port or a path that only one may listen on; empty: none is known
	check  func() error // whether what its URL names can be used; nil: that is known when it is opened
}

// planInputs understands all inputs. Its errors are all there are, each an *EndError.
func planInputs(c *Config) ([]inputPlan, error) {
	plans := make([]inputPlan, 0, len(c.Inputs))
	var errs []error
	for i := range c.Inputs {
		p, err := planInput(c, &c.Inputs[i])
		for j := range plans {
			if err == nil {
				err = p.conflict(&plans[j])
			}
		}
		if err != nil {
			errs = append(errs, &EndError{Side: "input", End: c.Inputs[i], Err: err})
			continue
		}
		plans = append(plans, p)
	}
	return plans, errors.Join(errs...)
}

// conflict says why two inputs cannot be together.
func (p *inputPlan) conflict(q *inputPlan) error {
	if p.source != "" && p.source == q.source {
		return &urls.Error{URL: p.url, Reason: "this input is given twice"}
	}
	if p.key != "" && p.key == q.key {
		return &urls.Error{URL: p.url, Reason: "this input is given twice; where it stands is kept by its name, so give each a name"}
	}
	return nil
}

// inputSchemes are the inputs of this package.
var inputSchemes = []string{"forward", "forward+tls", "forward+unix", "lines", "lines+unix", "stdin", "ring"}

func planInput(c *Config, e *End) (p inputPlan, err error) {
	u, err := urls.ParseAmong(e.URL, inputSchemes, slices.Sorted(maps.Keys(c.InputKinds))...)
	if err != nil {
		return p, err
	}
	return c.planInputURL(u, e)
}

func (c *Config) planInputURL(u *URL, e *End) (p inputPlan, err error) {
	p.end, p.url, p.spot = *e, u.String(), spotOf(u)
	switch kind := c.InputKinds[u.Scheme]; {
	case kind != nil:
		err = p.foreign(u, e, kind)
	case strings.HasPrefix(u.Scheme, "forward"):
		err = p.forward(u, e)
	case u.Scheme == "lines", u.Scheme == "lines+unix", u.Scheme == "stdin":
		err = p.lines(u, e)
	case u.Scheme == "ring":
		err = p.rings(u, e)
	default:
		err = u.Errorf("no input of this kind; there are %s", strings.Join(slices.Concat(
			[]string{
				"forward://host:port", "forward+tls://host:port", "forward+unix:///path", "lines://host:port",
				"lines+unix:///path", "stdin:", "ring:///dev/shm",
			}, slices.Sorted(maps.Keys(c.InputKinds))), ", "))
	}
	return p, err
}

// foreign plans an input of another package.
func (p *inputPlan) foreign(u *urls.URL, e *End, kind InputKind) error {
	params := u.Params()
	open, err := kind(u, params)
	if err == nil {
		err = params.Err()
	}
	if err == nil && open == nil {
		err = fmt.Errorf("%s: its kind opens nothing", u)
	}
	without, _, _ := strings.Cut(p.url, "?")
	p.name = cmp.Or(e.Name, without)
	p.key = e.identity("in.", u.Scheme, u.Path)
	p.open = func(c *Collector, _ *account) (Input, error) {
		in, err := open(&InputEnv{Name: p.name, Log: c.config.Log.With("input", p.name)})
		if err == nil && in == nil {
			err = errors.New("its kind opens nothing")
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", p.name, err)
		}
		return in, err
	}
	return err
}

// forward plans an input of the Forward protocol.
func (p *inputPlan) forward(u *urls.URL, e *End) error {
	l := &listeners{}
	p.check = func() error { return l.unlock(&credentials.Reports{}) }
	p.open = func(c *Collector, a *account) (Input, error) {
		return l, l.open(c, a, e.Name)
	}
	return l.plan(u)
}

// lines plans an input of lines.
func (p *inputPlan) lines(u *urls.URL, e *End) error {
	l, err := planLines(u)
	if err != nil {
		return err
	}
	p.name, p.source = cmp.Or(e.Name, l.shown), l.shown
	p.open = func(c *Collector, _ *account) (Input, error) {
		if err := l.openFor(c, p.name); err != nil {
			return nil, fmt.Errorf("%s: %w", l.shown, err)
		}
		return l, nil
	}
	return nil
}

// spotOf is the port that a URL has an input listen on, or its path; empty where that is any.
func spotOf(u *urls.URL) string {
	address, is := strings.CutPrefix(u.Path, "//")
	if len(u.Hosts) > 0 {
		address, is = u.Hosts[0], true
	}
	if !is {
		return u.Path
	}
	address, _, _ = strings.Cut(address, "/")
	port := address[strings.LastIndexByte(address, ':')+1:]
	if port == "0" {
		return ""
	}
	return ":" + port
}

// rings plans an input of rings of dead processes.
func (p *inputPlan) rings(u *urls.URL, e *End) error {
	r, err := planRings(u)
	if err != nil {
		return err
	}
	shown := u.Scheme + "://" + u.Path
	p.name, p.source = cmp.Or(e.Name, shown), shown
	p.key = e.identity("in.", u.Scheme, u.Path)
	p.open = func(c *Collector, a *account) (Input, error) {
		if err := r.openFor(c, a); err != nil {
			return nil, fmt.Errorf("%s: %w", shown, err)
		}
		return r, nil
	}
	return nil
}

// An intake is an open Input with what the collector has for it.
type intake struct {
	Input
	plan     *inputPlan
	account  *account
	endpoint *forward.Endpoint // nil for an input without a forward.Server
	sink     *sink
	running  atomic.Bool
	over     atomic.Bool // it has ended by itself
	leaves   atomic.Bool // it was removed
	closing  sync.Once
	stop     context.CancelFunc // it takes no more
	mute     context.CancelFunc // the sink takes nothing more
	ended    chan struct{}      // closed when Run has returned; nil: it was not started
}

// openInputs opens the inputs. They take nothing before they run.
func (c *Collector) openInputs(plans []inputPlan) error {
	store := c.store
	c.server = &forward.Server{
		Handler:         store,
		MaxChunk:        c.config.MaxChunk,
		MaxDecompressed: c.config.MaxUnpacked,
		Memory:          c.config.Memory,
		MaxEvent:        c.config.MaxEvent,
		SetAside:        store.setAside,
		LargeTurn:       c.turn.Take,
		MaxConnections:  maxConnections(),
		RefuseInvalid:   c.config.RefuseInvalid,
		PeerError:       func(t forward.PeerError) { c.reporter.peer(t, store.accountOf(t.Sender).name) },
	}
	if c.config.Log.Enabled(context.Background(), slog.LevelDebug) {
		c.server.Connection = func(s *forward.Sender,
			open bool,
		) {
			c.reporter.connection(s, store.accountOf(s).name, open)
		}
	}
	c.lineMemory = &lineMemory{limit: c.config.Memory / 8}
	for i := range plans {
		in, err := c.openInput(&plans[i])
		if err != nil {
			return err
		}
		c.inputs = append(c.inputs, in)
		c.bookLocked(in)
	}
	return nil
}

// openInput opens one. It has an account of its own until it is booked.
func (c *Collector) openInput(p *inputPlan) (*intake, error) {
	a := &account{name: p.name, url: p.url}
	input, err := p.open(c, a)
	if err != nil {
		return nil, err
	}
	in := &intake{Input: input, plan: p, account: a, endpoint: a.endpoint}
	in.sink = &sink{
		store: c.store, account: a, index: c.crew.opened, mark: c.positions.of(p.key),
		maxUnpacked: c.config.MaxUnpacked, together: min(c.config.MaxUnpacked, c.config.JournalBytes/8),
	}
	if in.sink.mark != nil {
		in.sink.found = in.sink.mark.found
	}
	in.sink.taking, in.mute = context.WithCancel(c.store.taking)
	c.crew.opened++
	return in, nil
}

// bookLocked gives an input the account of its name, before it takes anything. With mu held, unless
// nothing runs yet.
func (c *Collector) bookLocked(in *intake) {
	old, next := c.store.books.Load(), &books{doors: map[*forward.Endpoint]*account{}}
	if old != nil {
		next.accounts, next.doors = slices.Clone(old.accounts), maps.Clone(old.doors)
	}
	mine := in.account
	i := slices.IndexFunc(next.accounts, func(a *account) bool { return a.name == mine.name })
	if i < 0 {
		next.accounts = append(next.accounts, mine)
	} else {
		next.accounts[i].url = mine.url
		mine = next.accounts[i]
	}
	in.account, in.sink.account = mine, mine
	if in.endpoint != nil {
		next.doors[in.endpoint] = mine
	}
	c.store.books.Store(next)
}

// run runs the input. One that has nothing more to give returns by itself.
func (in *intake) run(ctx context.Context, failed func(error)) {
	defer in.running.Store(false)
	err := in.Run(ctx, in.sink)
	switch {
	case err == nil:
		in.over.Store(ctx.Err() == nil)
	case ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, errTakesNothing)):
	default:
		failed(fmt.Errorf("%s: %w", in.account.name, err))
	}
}

// close lets go of what an input holds, but for one that does not return.
func (in *intake) close() (err error) {
	if in.running.Load() {
		return nil
	}
	in.mute() // it is at its end, and what its sink has in store is freed
	c, ok := in.Input.(io.Closer)
	if !ok {
		return nil
	}
	in.closing.Do(func() {
		if err = c.Close(); err != nil {
			err = fmt.Errorf("%s: %w", in.account.name, err)
		}
	})
	return err
}

// addr is where the input listens, or nil.
func (in *intake) addr() net.Addr {
	if l, ok := in.Input.(interface{ Addr() net.Addr }); ok {
		return l.Addr()
	}
	return nil
}

// spot is the port or path that the input has taken.
func (in *intake) spot() string {
	if a := in.addr(); a != nil {
		if _, port, err := net.SplitHostPort(a.String()); err == nil {
			return ":" + port
		}
	}
	return in.plan.spot
}
