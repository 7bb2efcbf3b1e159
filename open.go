// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/mover"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/internal/record"
)

// urlVariable names the destination when Open is given none.
const urlVariable = "SPILLWAY_URL"

// Open opens a logger for a destination, which is written as a URL:
//
//	forward://h1:24224,h2         Forward servers: spread over all, acked
//	forward+tls://h1:24224        the same over TLS
//	forward+unix:///run/a.sock    the same over a unix socket
//	file:///var/log/{pid}.jsonl   a file; {tag}, {date}, {hour} of events and {host}, {pid} may stand in its path
//	stdout:   stderr:             lines on a stream
//	discard:                      nothing
//
// Settings of the destination are query parameters:
//
//	forward   ack=true|false   compress=none|gzip|zstd   window=8   ack_timeout=60s   dial_timeout=10s
//	          failover_after=10s   keepalive=true|false
//	login     shared_key_file=PATH or shared_key_env=NAME   username=NAME   password_file=PATH or password_env=NAME
//	          hostname=NAME   empty_key=true|false
//	TLS       ca=PEM   cert=PEM   key=PEM   server_name=NAME   insecure=true|false
//	          tls=dial: Options.Dial makes connections that are TLS already
//	file      format=json|text   flags=…   max_size=100MiB   every=24h   keep=7   max_age=720h   max_total=5GiB   compress=none|gzip|zstd   shared=none|append|lock
//	streams   format=json|text   flags=…   color=auto|always|never   async=true|false
//	JSON      time_key=time   time_format=rfc3339|unix|unix_ms|unix_us|unix_ns|a layout of package time   tag_key=tag
//	all these min_backoff=100ms   max_backoff=10s   breaker=3
//
// JSON is that of files and streams; the key - leaves time or tag out. flags, for text, are any of
// date,time,micros,utc,level,tag,source,shortsource, or none. What is not known is an error that
// says what is.
//
// An empty destination is what the environment variable SPILLWAY_URL says. nil options are the
// default ones.
//
// That the destination is not there, or the ring cannot be in shared memory, is no error of Open:
// the first is what the logger is for, the second goes to Options.Diagnostics. Who opens a logger
// closes it.
func Open(destination string, o *Options) (*Logger, error) {
	r, err := o.resolved()
	if err != nil {
		return nil, err
	}
	if destination == "" {
		if destination = os.Getenv(urlVariable); destination == "" {
			return nil, fmt.Errorf("spillway: no destination: Open was given none, and %s is not set", urlVariable)
		}
	}
	p, err := planDestination(destination, &r)
	if err != nil {
		return nil, plainly(fmt.Errorf("spillway: %w", err))
	}
	fallback, err := checkFallback(r.ErrorHandler, p.Place)
	if err != nil {
		return nil, err
	}
	l := newCore(&r, p.Place)
	c := l.c
	c.fallback = fallback
	trip := output.Trip{Breaker: c.breakers.tell, Report: c.diagnostics.report, Health: c.failed}
	trip.Awaited = func() ([]output.Process, error) { return mover.Owners(r.rings(), r.Dir, p.Place) }
	if r.ErrorHandler != nil {
		trip.HandleError = r.ErrorHandler.HandleError
	}
	d, err := p.Open(&trip)
	if err != nil {
		return nil, plainly(fmt.Errorf("spillway: %s: %w", p.Place, err))
	}
	delivered := r.Delivered
	if delivered != nil {
		delivered = func(ch *forward.Chunk) {
			defer func() {
				if v := recover(); v != nil { // a logger does not end the program
					c.diagnostics.report(errors.New("spillway: Options.Delivered: " + record.PanicText(v)))
				}
			}()
			r.Delivered(ch)
		}
	}
	m, err := mover.Open(&mover.Config{
		Name: r.Name, Shm: r.rings(), Dir: r.Dir, Identity: p.Place,
		RingSize: r.RingSize, MaxDisk: r.MaxDisk, MaxEvent: r.MaxEvent,
		Overflow: r.Overflow, MaxWait: r.MaxWait, FlushInterval: r.FlushInterval,
		Window: p.Window, Ordered: p.Ordered, WaitDelivered: r.WaitDelivered, Prompt: p.Prompt,
		Destination: d, Summary: c.summary, Delivered: delivered, Diagnostics: c.diagnostics.report,
	})
	if err != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = d.Close(ctx) // it has nothing yet
		return nil, plainly(fmt.Errorf("spillway: %w", err))
	}
	c.to = m
	c.opened.Store(&c.to)
	return l, nil
}
