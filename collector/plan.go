// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/internal/step"
	"github.com/spillwaylog/spillway/internal/urls"
)

// URL is what an end's URL says: its scheme, what stands behind the colon, and its parameters.
// Params reads these; a parameter that is not read is refused.
type URL = urls.URL

// Params are the parameters of a URL.
type Params = urls.Params

// Output is where events go: see there for the rules that one of another package has to keep.
// It may implement [Resumer] or [Transactional], and [Waiter], too.
type Output = output.Output

// Resumer is an Output with a state that the collector keeps with its position.
type Resumer = output.Resumer

// Transactional is an Output that keeps the position itself.
type Transactional = output.Transactional

// Waiter is an Output that can tell that all that it waits for is an answer.
type Waiter = output.Waiter

// Refuse is what a Transactional output has rejected entries made dead letters by.
type Refuse = output.Refuse

// Result says what became of a chunk.
type Result = output.Result

// Rejected is an entry that an output refuses for good.
type Rejected = output.Rejected

// AllEntries stands for the whole chunk, as the index of a rejected entry.
const AllEntries = output.AllEntries

// What an Output answers.
var (
	// ErrClosed is the Err of a Result whose chunk was given up by Close, or submitted after it.
	ErrClosed = output.ErrClosed
	// ErrReopen says that the output cannot go on as it is: it is closed, and another one opened.
	ErrReopen = output.ErrReopen
	// ErrLeft says that Close could not end something and left it behind. It touches nothing of the
	// collector's any more.
	ErrLeft = output.ErrLeft
)

// An OutputPlan is the URL of an output of another package that was understood.
type OutputPlan struct {
	// Open opens the output, each time that it has to be opened. That fails for now, and the
	// collector starts all the same, where the error wraps ErrReopen.
	Open func(*OutputEnv) (Output, error)
	// Reach looks whether the other side is there and would take events, without sending any, or
	// leaving anything behind. Its error is all that is wrong. Nil: there is nothing to look at.
	Reach func(ctx context.Context) error
	// Transactional says that what Open returns is a [Transactional].
	Transactional bool
	// Bytes is how much the output gets before it is done with something, 4 MiB if 0. It may
	// get less: its share of a quarter of Config.Memory, see OutputEnv.
	Bytes int64
}

// OutputKind understands the URL of an output. It touches nothing yet, so that a mistake in one
// URL is told before anything is opened.
type OutputKind func(u *URL, p *Params) (*OutputPlan, error)

// OutputEnv is what an output gets from the collector.
type OutputEnv struct {
	Name string       // of the output, or its URL
	Log  *slog.Logger // its messages
	// Identity is the output's own in all the world, for as long as it has its place in the data
	// directory; empty where that has none. What keeps its position elsewhere knows it so.
	Identity string
	// Chunks and Bytes are how much the output gets before it is done with something.
	Chunks int
	Bytes  int64
	// Failed says that the output fails at present, and when it tries again; Works that it does
	// not. They show in Stats and in the log. Neither blocks.
	Failed func(err error, next time.Duration)
	Works  func()
	// Throttled counts in Stats that the other side holds the output up, for a quota is used up. It
	// does not block.
	Throttled func()
}

// A plannedOutput is an output that was understood but touches nothing yet.
type plannedOutput struct {
	end     End
	among   int    // outputs that there are
	name    string // as given, or the URL
	url     string
	place   string // what it writes to, however that was written
	cursor  string // name of its cursor in the journal
	unnamed string // the same, if the output had no name
	opaque  bool   // the output does not look at entries
	wants   wants  // what it looks at
	ids     bool   // the output sends ids
	file    bool
	guard   bool // the output's code is not known
	limit   behindLimit
	sifter  *step.Sifter                    // what it gets; nil: everything
	check   func() error                    // whether it can ever work; nil: that is not known
	reach   func(ctx context.Context) error // whether it works now; nil: there is nothing to look at
	whole   bool                            // it takes records of the journal whole: it keeps its position itself
	window  int64                           // as OutputPlan.Bytes
	open    func(p *pump) (Output, error)
}

// planOutputs understands all outputs. Its errors are all there are, each an *EndError.
func planOutputs(c *Config) ([]plannedOutput, error) {
	plans := make([]plannedOutput, 0, len(c.Outputs))
	var errs []error
	for i := range c.Outputs {
		e := &c.Outputs[i]
		p, err := planOutput(c, e)
		for j := range plans {
			if err == nil {
				err = p.conflict(e, &plans[j])
			}
		}
		if err != nil {
			errs = append(errs, &EndError{Side: "output", End: *e, Err: err})
			continue
		}
		plans = append(plans, p)
	}
	return plans, errors.Join(errs...)
}

// conflict says why two outputs cannot be together. Two files that are one get every event twice;
// elsewhere names say that it is meant.
func (p *plannedOutput) conflict(e *End, q *plannedOutput) error {
	if p.place == q.place && (p.file || e.Name == "" || q.name == q.url) {
		return &urls.Error{URL: p.url, Reason: "this output is given twice"}
	}
	if p.file && q.file && output.Meet(p.place, q.place) {
		return &urls.Error{URL: p.url, Reason: fmt.Sprintf("it may write files of the output %s, for some tags or times: each needs its own", q.name)}
	}
	return nil
}

// outputSchemes are the outputs of this package.
var outputSchemes = []string{"forward", "forward+tls", "forward+unix", "file", "stdout", "discard"}

func planOutput(c *Config, e *End) (plannedOutput, error) {
	u, err := urls.ParseAmong(e.URL, outputSchemes, slices.Sorted(maps.Keys(c.OutputKinds))...)
	if err != nil {
		return plannedOutput{}, err
	}
	return c.planOutputURL(u, e)
}

func (c *Config) planOutputURL(u *URL, e *End) (p plannedOutput, err error) {
	p = plannedOutput{
		end: *e, among: len(c.Outputs), url: u.String(),
		place: u.Scheme + ":" + u.Path, // which has no secrets
	}
	p.name = cmp.Or(e.Name, p.url)
	path, params := u.Path, u.Params()
	if p.limit, err = readLimit(u, params); err != nil {
		return plannedOutput{}, err
	}
	switch kind := c.OutputKinds[u.Scheme]; {
	case kind != nil:
		err = p.foreign(u, params, kind)
	case slices.Contains(outputSchemes, u.Scheme):
		path, err = p.own(u, params, c)
	default:
		err = u.Errorf("no output of this kind; there are %s", strings.Join(schemes(c), ", "))
	}
	if err != nil {
		return plannedOutput{}, err
	}
	p.cursor = e.identity("out.", u.Scheme, path)
	p.unnamed = (&End{}).identity("", u.Scheme, path)
	return p, nil
}

// identity is what an end is known by over restarts: its name, or scheme and path. Parameters are
// no part of it: an output whose lines look different goes on where it was.
func (e *End) identity(side, scheme, path string) string {
	if e.Name != "" {
		return side + e.Name
	}
	sum := sha256.Sum256([]byte(scheme + "\x00" + path))
	return strings.ReplaceAll(scheme, "+", "-") + "-" + hex.EncodeToString(sum[:6])
}

// schemes are the outputs that there are.
func schemes(c *Config) []string {
	return slices.Concat([]string{
		"file:///path", "forward://host:port", "forward+tls://host:port",
		"forward+unix:///path", "stdout:", "discard:",
	},
		slices.Sorted(maps.Keys(c.OutputKinds)))
}

// relayWindow is how many chunks may be in flight to one server: the journal's records leave one by
// one, small ones too, and a server that acks many with one sync is kept busy.
const relayWindow = 64

// own plans an output of package output. path is what its place is known by.
func (p *plannedOutput) own(u *urls.URL, params *urls.Params, c *Config) (path string, err error) {
	o, err := output.Read(u, &output.Owner{
		Stdout: c.Stdout, Params: params, Sync: true, Window: relayWindow,
		Backoff: retryPause,
	})
	if err != nil {
		return "", err
	}
	p.check, p.reach = o.Check, o.Reach
	p.place, p.opaque, p.file = o.Place, o.Opaque, u.Scheme == "file"
	if !p.opaque {
		p.wants = wantEntries
	}
	if p.ids = strings.HasPrefix(u.Scheme, "forward"); p.ids {
		p.wants |= wantBody // it may travel as it came
	}
	p.open = func(pump *pump) (Output, error) {
		pump.dead.Store(false)
		return o.Open(&output.Trip{Health: pump.health, Report: pump.report, Breaker: pump.turned})
	}
	if u.Path != "" || !p.ids {
		return u.Path, nil
	}
	return o.Place, nil
}

// foreign plans an output of another package.
func (p *plannedOutput) foreign(u *urls.URL, params *urls.Params, kind OutputKind) error {
	plan, err := kind(u, params)
	if err == nil {
		err = params.Err()
	}
	if err == nil && (plan == nil || plan.Open == nil) {
		err = fmt.Errorf("%s: its kind opens nothing", u)
	}
	if err == nil && plan.Bytes < 0 {
		err = fmt.Errorf("%s: its kind asks for %d bytes", u, plan.Bytes)
	}
	if err != nil {
		return err
	}
	p.reach, p.whole, p.window = plan.Reach, plan.Transactional, plan.Bytes
	p.ids, p.wants, p.guard = true, wantEntries, true
	p.open = func(pump *pump) (Output, error) {
		out, err := plan.Open(&OutputEnv{
			Name: pump.name, Log: pump.reporter.log.With("output", pump.name),
			Identity: pump.identity, Chunks: windowChunks, Bytes: pump.window,
			Failed: func(err error, next time.Duration) { pump.fail(err, next) }, Works: pump.works,
			Throttled: func() { pump.throttled.Add(1) },
		})
		if err == nil && out == nil {
			err = errors.New("its kind opens nothing")
		}
		return out, err
	}
	return nil
}

// try looks whether an output can ever work, before anything is opened.
func (p *plannedOutput) try(ack Ack, log *slog.Logger) error {
	if ack == AckDelivered && p.limit.gives() {
		codes.OutputAcksDrops.Warn(log, "an ack will also go out for what this output gives up", "output", p.name,
			"when_behind", p.limit.when)
	}
	if p.check == nil {
		return nil
	}
	if err := p.check(); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}
