// SPDX-License-Identifier: Apache-2.0

package output

import (
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"math"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spillwaylog/spillway/internal/credentials"
	"github.com/spillwaylog/spillway/internal/files"
	"github.com/spillwaylog/spillway/internal/lines"
	"github.com/spillwaylog/spillway/internal/urls"
)

// Owner is what the owner of an output adds to what the output's URL says. The zero value works.
type Owner struct {
	Stdout, Stderr io.Writer // of stdout: and stderr:; nil: there is no such output

	Params *urls.Params // those of the URL, of which the owner has read its own; nil: it has none

	// Of Forward servers:
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Values credentials.Values // what the URL must not give, too

	Prompt   bool          // calls may wait for a stream to have their lines: it has the parameter async
	Sync     bool          // Flush brings the lines of files to the disk
	OmitZero bool          // lines of JSON have no time where it is 0
	Window   int           // chunks in flight to one Forward server, where the URL says none; 0: the output's default
	Backoff  time.Duration // the first pause after an error, where the URL says none; 0: the output's default
}

// given says whether the owner gives what only Forward servers can use.
func (o *Owner) given() bool {
	return o.Values.TLS != nil || o.Values.Login != nil
}

// A Plan is the URL of an output that was understood. It has touched nothing yet.
type Plan struct {
	Place    string      // scheme and hosts or path: what makes two outputs the same, whatever their settings
	Window   int         // chunks in flight to one host, as the URL says; 0: it does not
	Flags    lines.Flags // of lines of text
	Opaque   bool        // the output does not look at entries
	Prompt   bool        // a call waits until its line is written
	Ordered  bool        // it writes chunks in the order of Submit, whatever their tags
	failures int         // that open the breaker; 0: the URL does not say
	backoff  struct{ min, max time.Duration }
	open     func(t *Trip) (Output, error)
	check    func() error                    // nil: there is nothing to check
	reach    func(ctx context.Context) error // nil: there is nothing to reach
}

// Check looks whether the output can ever work, as far as that can be seen on this machine without
// waiting. Its error is what does not pass by itself: a path that cannot be, a right that is
// missing. That a disk is full or a server down is none.
func (p *Plan) Check() error {
	if p.check == nil {
		return nil
	}
	return p.check()
}

// Open makes the output.
func (p *Plan) Open(t *Trip) (Output, error) {
	trip := *t
	trip.Failures = cmp.Or(p.failures, t.Failures)
	return p.open(&trip)
}

// kinds are the outputs of this package by the schemes of their URLs, each with what reads the
// parameters.
var kinds = map[string]func(*Plan, *urls.URL, *urls.Params, *Owner) error{
	// Each a place of its own: what was to be encrypted is not adopted by a logger that does not.
	"forward":      (*Plan).forward,
	"forward+tls":  (*Plan).forward,
	"forward+unix": (*Plan).forward,
	"file":         (*Plan).file,
	"stdout":       (*Plan).stream,
	"stderr":       (*Plan).stream,
	"discard":      (*Plan).discard,
}

// Read understands the URL of an output. Each kind reads its own parameters, and refuses others.
func Read(u *urls.URL, o *Owner) (*Plan, error) {
	kind := kinds[u.Scheme]
	if kind == nil || u.Scheme == "stdout" && o.Stdout == nil || u.Scheme == "stderr" && o.Stderr == nil {
		return nil, u.Errorf("no output of this kind")
	}
	if o.given() && !strings.HasPrefix(u.Scheme, "forward") {
		return nil, u.Errorf("Options.TLS and Login belong to Forward servers")
	}
	p := &Plan{Place: u.Scheme + ":"}
	q := o.Params
	if q == nil {
		q = u.Params()
	}
	if err := kind(p, u, q, o); err != nil {
		return nil, err
	}
	if p.backoff.min > p.backoff.max {
		return nil, u.ErrorAbout("max_backoff", "parameter %q: %v is less than min_backoff, which is %v", "max_backoff",
			p.backoff.max, p.backoff.min)
	}
	return p, nil
}

// settings reads what every output has that may fail.
func (p *Plan) settings(q *urls.Params, o *Owner) {
	shortest, longest := q.Duration("min_backoff", 0), q.Duration("max_backoff", 0)
	p.backoff.min, p.backoff.max = pauses(shortest, longest, cmp.Or(o.Backoff, minBackoff))
	p.failures = int(q.Int("breaker", 0, 1, math.MaxInt32))
}

func (p *Plan) discard(_ *urls.URL, q *urls.Params, _ *Owner) error {
	p.Opaque = true
	p.open = func(*Trip) (Output, error) { return Discard, nil }
	return q.Err()
}

func (p *Plan) forward(u *urls.URL, q *urls.Params, o *Owner) error {
	c := ForwardConfig{Network: "tcp", Hosts: u.Hosts, Dial: o.Dial}
	p.Place += "//" + strings.Join(u.Hosts, ",")
	if u.Scheme == "forward+unix" {
		c.Network, c.Hosts = "unix", []string{absolute(u.Path)}
		p.Place += c.Hosts[0]
	}
	c.NoAck = !q.Bool("ack", true)
	if c.Compress = q.Choice("compress", "none", "gzip", "zstd"); c.Compress == "none" {
		c.Compress = ""
	}
	c.Window = int(q.Int("window", 0, 1, 1<<10))
	p.Window = c.Window
	c.Window = cmp.Or(c.Window, o.Window)
	c.AckTimeout = q.Duration("ack_timeout", 0)
	c.DialTimeout = q.Duration("dial_timeout", 0)
	c.FailoverAfter = q.Duration("failover_after", 0)
	p.settings(q, o)
	c.MinBackoff, c.MaxBackoff = p.backoff.min, p.backoff.max
	secrets, err := credentials.ReadClient(u, q, &o.Values)
	by := ""
	if u.Scheme == "forward+tls" {
		by = q.String("tls", "")
	}
	p.open = func(t *Trip) (Output, error) {
		c := c
		c.Trip = *t
		if err := secrets.Open(&credentials.Reports{Warn: t.Report}); err != nil {
			return nil, err
		}
		c.GetLogin, c.NoKeepalive = secrets.GetLogin(), secrets.NoKeepalive()
		if by == "" {
			c.GetTLS = secrets.GetTLS()
		}
		return NewForward(&c), nil
	}
	p.reach = func(ctx context.Context) error { return c.reachHosts(ctx, secrets) }
	if err != nil {
		return err
	}
	if err := q.Err(); err != nil {
		return err
	}
	if by != "" {
		return dialsTLS(u, o, by)
	}
	return nil
}

// dialsTLS checks tls=dial: that Options.Dial makes connections that are TLS already.
func dialsTLS(u *urls.URL, o *Owner, by string) error {
	switch {
	case by != "dial":
		return u.Errorf("parameter \"tls\": %q is not dial", by)
	case o.Dial == nil:
		return u.Errorf("tls=dial says that Options.Dial makes the connections TLS, and there is none")
	case o.Values.TLS != (*tls.Config)(nil) || slices.ContainsFunc(credentials.TLSNames, u.Has):
		return u.Errorf("tls=dial says that Options.Dial makes the connections TLS, so nothing else can say how")
	}
	return nil
}

// newFiles is how many files an output makes in a minute where its URL does not say: more than any
// machine has services, few enough for a disk that syncs each of them.
const newFiles = 5000

// Meet reports whether the files of two places of file outputs can be the same for some tags and
// times. Of a path that cannot be used it says no: Read tells.
func Meet(a, b string) bool {
	meets, err := files.Meet(strings.TrimPrefix(a, "file:"), strings.TrimPrefix(b, "file:"))
	return err == nil && meets
}

func (p *Plan) file(u *urls.URL, q *urls.Params, o *Owner) error {
	c := FileConfig{Path: absolute(u.Path), Sync: o.Sync, OmitZero: o.OmitZero}
	p.Place += c.Path
	p.Ordered = true
	var err error
	if c.Format, c.Text, c.Envelope, err = p.format(u, q); err != nil {
		return err
	}
	c.Rotate.Size = q.Size("max_size", 0)
	c.Rotate.Every = q.Duration("every", 0)
	c.Rotate.Keep = int(q.Int("keep", 0, 0, math.MaxInt32))
	c.Rotate.MaxAge = q.Duration("max_age", 0)
	c.Rotate.MaxTotal = q.Size("max_total", 0)
	if c.Rotate.Compress = q.Choice("compress", "none", "gzip", "zstd"); c.Rotate.Compress == "none" {
		c.Rotate.Compress = ""
	}
	c.NewFiles = int(q.Int("new_files", newFiles, 0, math.MaxInt32))
	how := "none"
	if !o.Sync { // a follower's positions are too far apart
		how = q.Choice("shared", "none", "append", "lock")
	}
	c.Shared = sharing[how]
	p.settings(q, o)
	c.MinBackoff, c.MaxBackoff = p.backoff.min, p.backoff.max
	p.open = func(t *Trip) (Output, error) {
		c := c
		c.Trip = *t
		return NewFile(&c)
	}
	options := func() *files.Options {
		return &files.Options{FileMode: c.FileMode, DirMode: c.DirMode, Rotation: c.Rotate, Shared: c.Shared}
	}
	p.check = func() error { return files.Check(c.Path, options()) }
	p.reach = func(context.Context) error { return files.Try(c.Path, options()) }
	if err := q.Err(); err != nil {
		return err
	}
	if err := files.Usable(c.Path, options()); err != nil {
		return u.Errorf("%s", strings.TrimPrefix(err.Error(), "files: "))
	}
	if c.Rotate.Idle() && !files.Gathers(c.Path, c.Shared) {
		return u.Errorf("keep, max_age, max_total and compress are about rotated files, and without max_size or every there are none")
	}
	switch {
	case c.Shared != files.Unshared && files.Personal(c.Path):
		return u.Errorf("shared=%s is about a file that several processes write, and with {pid} in its path each has its own", how)
	case c.Shared == files.SharedLock && !files.CanLock:
		return u.Errorf("shared=lock: there are no such locks on this system")
	}
	return nil
}

// sharing is what the parameter shared says.
var sharing = map[string]files.Sharing{"none": files.Unshared, "append": files.SharedAppend, "lock": files.SharedLock}

func (p *Plan) stream(u *urls.URL, q *urls.Params, o *Owner) error {
	w := o.Stdout
	if u.Scheme == "stderr" {
		w = o.Stderr
	}
	c := StreamConfig{OmitZero: o.OmitZero}
	p.Ordered = true
	p.Prompt = o.Prompt && !q.Bool("async", false)
	var err error
	if c.Format, c.Text, c.Envelope, err = p.format(u, q); err != nil {
		return err
	}
	switch q.Choice("color", "auto", "always", "never") {
	case "always":
		c.Color = ColorAlways
	case "never":
		c.Color = ColorNever
	}
	p.settings(q, o)
	c.MinBackoff, c.MaxBackoff = p.backoff.min, p.backoff.max
	p.open = func(t *Trip) (Output, error) {
		c := c
		c.Trip = *t
		return NewStream(w, &c), nil
	}
	return q.Err()
}

// textFlags are what stands before the message of a line of text.
var textFlags = map[string]lines.Flags{
	"date":        lines.Date,
	"time":        lines.Time,
	"micros":      lines.Micros,
	"utc":         lines.UTC,
	"level":       lines.Level,
	"tag":         lines.Tag,
	"source":      lines.Source,
	"shortsource": lines.ShortSource,
	"none":        lines.Bare,
}

// format reads how lines look: format, flags, and how lines of JSON name and write time and tag.
func (p *Plan) format(u *urls.URL, q *urls.Params) (format Format, text lines.TextOptions, envelope lines.Options,
	err error,
) {
	if q.Choice("format", "json", "text") == "text" {
		format = FormatText
	}
	if list := q.String("flags", ""); list != "" {
		if format != FormatText {
			return format, text, envelope, u.ErrorAbout("flags", "flags belong to format=text")
		}
		for name := range strings.SplitSeq(list, ",") {
			f, ok := textFlags[name]
			if !ok {
				return format, text, envelope, u.ErrorAbout("flags", "flags: %q is none of date, time, micros, utc, level, tag, source, shortsource and none", name)
			}
			text.Flags |= f
		}
	}
	if text.Flags&lines.Bare != 0 && text.Flags != lines.Bare {
		return format, text, envelope, u.ErrorAbout("flags", "flags: none stands alone")
	}
	p.Flags = text.Flags
	envelope, err = lines.FromParams(q.String)
	switch {
	case format == FormatText && envelope != (lines.Options{}):
		err = u.Errorf("time_key, time_format and tag_key belong to format=json")
	case err != nil:
		err = u.Errorf("%v", err)
	}
	return format, text, envelope, err
}

// absolute returns path from the root where it can.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// Reach looks whether the output works now: whether each server can be connected to, with its TLS
// and login, or the files can be written. It sends nothing, and leaves nothing behind. Its error is
// all that is wrong.
func (p *Plan) Reach(ctx context.Context) error {
	if p.reach == nil {
		return nil
	}
	return p.reach(ctx)
}
