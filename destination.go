// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spillwaylog/spillway/internal/credentials"
	"github.com/spillwaylog/spillway/internal/lines"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/internal/urls"
)

// A plan is a destination's URL that was understood. Nothing is opened yet.
type plan struct {
	place  string // scheme and hosts or path: what makes two processes' destinations the same, whatever their settings
	window int
	lines  bool // writes lines, in the order in which it gets them
	trip   output.Trip
	open   func() (output.Destination, error)
}

// belongToForward are the options that only a Forward server can use.
func belongToForward(u *urls.URL, o *Options) error {
	if o.TLS != nil || o.SharedKey != "" || o.Username != "" || o.Password != "" {
		return u.Errorf("Options.TLS, SharedKey, Username and Password belong to Forward servers")
	}
	return nil
}

// settings are what every destination has.
type settings struct {
	minBackoff, maxBackoff time.Duration
	breaker                int
}

func readSettings(p *urls.Params) settings {
	return settings{
		minBackoff: p.Duration("min_backoff", 0),
		maxBackoff: p.Duration("max_backoff", 0),
		breaker:    int(p.Int("breaker", 0, 1, math.MaxInt32)),
	}
}

// planDestination reads a URL. o gets what the URL asks of the records.
func planDestination(text string, o *Options) (*plan, error) {
	u, err := urls.Parse(text)
	if err != nil {
		return nil, err
	}
	p := &plan{place: u.Scheme + ":"}
	if !strings.HasPrefix(u.Scheme, "forward") {
		if err := belongToForward(u, o); err != nil {
			return nil, err
		}
	}
	switch u.Scheme {
	case "forward", "forward+tls", "forward+unix": // each a place of its own: what was to be encrypted is not adopted by a logger that does not
		err = p.forward(u, o)
	case "file":
		err = p.file(u, o)
	case "stdout":
		err = p.stream(u, o, os.Stdout)
	case "stderr":
		err = p.stream(u, o, os.Stderr)
	case "discard":
		err = u.Allow()
		p.open = func() (output.Destination, error) { return output.Discard, nil }
	default:
		err = u.Errorf("no destination of this kind")
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (p *plan) forward(u *urls.URL, o *Options) error {
	c := output.ForwardConfig{Network: "tcp", Hosts: u.Hosts, Dial: o.Dial}
	p.place += "//" + strings.Join(u.Hosts, ",")
	if u.Scheme == "forward+unix" {
		c.Network, c.Hosts = "unix", []string{absolute(u.Path)}
		p.place += c.Hosts[0]
	}
	q := u.Params()
	c.NoAck = !q.Bool("ack", true)
	if c.Compress = q.Choice("compress", "none", "gzip", "zstd"); c.Compress == "none" {
		c.Compress = ""
	}
	c.Window = int(q.Int("window", 0, 1, 1<<10))
	p.window = c.Window
	c.AckTimeout = q.Duration("ack_timeout", 0)
	c.DialTimeout = q.Duration("dial_timeout", 0)
	c.FailoverAfter = q.Duration("failover_after", 0)
	s := readSettings(q)
	c.MinBackoff, c.MaxBackoff = s.minBackoff, s.maxBackoff
	p.trip.Failures = s.breaker
	secrets, err := credentials.ReadClient(u, q, &credentials.Values{TLS: o.TLS, SharedKey: o.SharedKey, Username: o.Username, Password: o.Password})
	by := ""
	if u.Scheme == "forward+tls" {
		by = q.String("tls", "")
	}
	p.open = func() (output.Destination, error) {
		c.Trip = p.trip
		if err := secrets.Open(&credentials.Reports{Trouble: p.trip.Report}); err != nil {
			return nil, err
		}
		c.GetLogin, c.NoKeepalive = secrets.GetLogin(), secrets.NoKeepalive()
		if by == "" {
			c.GetTLS = secrets.GetTLS()
		}
		return output.NewForward(&c), nil
	}
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
func dialsTLS(u *urls.URL, o *Options, by string) error {
	switch {
	case by != "dial":
		return u.Errorf("parameter \"tls\": %q is not dial", by)
	case o.Dial == nil:
		return u.Errorf("tls=dial says that Options.Dial makes the connections TLS, and there is none")
	case o.TLS != nil || slices.ContainsFunc(credentials.TLSNames, u.Has):
		return u.Errorf("tls=dial says that Options.Dial makes the connections TLS, so nothing else can say how")
	}
	return nil
}

func (p *plan) file(u *urls.URL, o *Options) error {
	q := u.Params()
	p.lines = true
	c := output.FileConfig{Path: absolute(u.Path)}
	p.place += c.Path
	var err error
	if c.Format, c.Text, err = readFormat(u, q, o); err != nil {
		return err
	}
	if c.Envelope, err = readEnvelope(u, q, c.Format); err != nil {
		return err
	}
	c.Rotate.Size = q.Size("max_size", 0)
	c.Rotate.Every = q.Duration("every", 0)
	c.Rotate.Keep = int(q.Int("keep", 0, 0, math.MaxInt32))
	c.Rotate.MaxAge = q.Duration("max_age", 0)
	c.Rotate.Compress = q.Choice("compress", "none", "gzip") == "gzip"
	s := readSettings(q)
	c.MinBackoff, c.MaxBackoff = s.minBackoff, s.maxBackoff
	p.trip.Failures = s.breaker
	p.open = func() (output.Destination, error) {
		c.Trip = p.trip
		return output.NewFile(&c)
	}
	if err := q.Err(); err != nil {
		return err
	}
	if r := c.Rotate; r.Size == 0 && r.Every == 0 && (r.Keep > 0 || r.MaxAge > 0 || r.Compress) {
		return u.Errorf("keep, max_age and compress are about rotated files, and without max_size or every there are none")
	}
	return nil
}

func (p *plan) stream(u *urls.URL, o *Options, w *os.File) error {
	q := u.Params()
	p.lines = true
	var c output.StreamConfig
	var err error
	if c.Format, c.Text, err = readFormat(u, q, o); err != nil {
		return err
	}
	if c.Envelope, err = readEnvelope(u, q, c.Format); err != nil {
		return err
	}
	switch q.Choice("color", "auto", "always", "never") {
	case "always":
		c.Color = output.ColorAlways
	case "never":
		c.Color = output.ColorNever
	}
	s := readSettings(q)
	c.MinBackoff, c.MaxBackoff = s.minBackoff, s.maxBackoff
	p.trip.Failures = s.breaker
	p.open = func() (output.Destination, error) {
		c.Trip = p.trip
		return output.NewStream(w, &c), nil
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

// readFormat reads format and flags. Flags that name the source ask the logger for it, too.
func readFormat(u *urls.URL, q *urls.Params, o *Options) (output.Format, lines.TextOptions, error) {
	var text lines.TextOptions
	format := output.JSON
	if q.Choice("format", "json", "text") == "text" {
		format = output.Text
	}
	list := q.String("flags", "")
	if list == "" {
		return format, text, nil
	}
	if format != output.Text {
		return format, text, u.Errorf("flags belong to format=text")
	}
	for name := range strings.SplitSeq(list, ",") {
		f, ok := textFlags[name]
		if !ok {
			return format, text, u.Errorf("flags: %q is none of date, time, micros, utc, level, tag, source, shortsource and none", name)
		}
		text.Flags |= f
	}
	if text.Flags&lines.Bare != 0 && text.Flags != lines.Bare {
		return format, text, u.Errorf("flags: none stands alone")
	}
	if o.Source == NoSource {
		switch {
		case text.Flags&lines.Source != 0:
			o.Source = LongSource
		case text.Flags&lines.ShortSource != 0:
			o.Source = ShortSource
		}
	}
	return format, text, nil
}

// readEnvelope reads how lines of JSON name and write time and tag.
func readEnvelope(u *urls.URL, q *urls.Params, format output.Format) (lines.Options, error) {
	envelope, err := lines.FromParams(q.String)
	switch {
	case format == output.Text && envelope != (lines.Options{}):
		err = u.Errorf("time_key, time_format and tag_key belong to format=json")
	case err != nil:
		err = u.Errorf("%v", err)
	}
	return envelope, err
}

// absolute returns path from the root where it can.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
