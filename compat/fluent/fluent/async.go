// SPDX-License-Identifier: Apache-2.0

package fluent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// maxCloseTime is the longest that a Close of an Async logger waits.
const maxCloseTime = 30 * time.Second

// With a BufferLimit the ring is as large as so many events of eventSize, within bounds. A ring is
// memory taken beforehand, and some programs open a logger for each of their many clients.
const (
	eventSize = 512
	ringLeast = 4 << 20
	maxRing   = 16 << 20
)

// async posts into a spillway.Logger. What makes this more than a call: the original's errors, its
// limit on the number of events, its callback, and the connections, which are made and wrapped
// here.
type async struct {
	config Config
	logger *spillway.Logger

	limit uint64       // most events held, besides those that an earlier logger left; 0: the ring's size alone
	room  atomic.Int64 // so many may come before the logger is asked what it holds
	ask   sync.Mutex   // one asks
}

func newAsync(config Config, limit int, dial func(context.Context) (net.Conn, error), o *spillway.Options) (*async,
	error,
) {
	a := &async{config: config, limit: uint64(max(limit, 0))}
	var options spillway.Options
	if o != nil {
		options = *o
	}
	if options.Dir == "" {
		options.Dir = os.Getenv("SPILLWAY_DIR")
	}
	if options.Shm == "" {
		options.Shm = os.Getenv("SPILLWAY_SHM")
	}
	if options.RingSize == 0 && a.limit > 0 {
		options.RingSize = max(int64(min(a.limit, maxRing/eventSize))*eventSize, ringLeast)
	}
	wrap := config.wrapper()
	options.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		nc, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		return wrap(nc), nil
	}
	if config.AsyncResultCallback != nil {
		delivered := options.Delivered
		options.Delivered = func(c *forward.Chunk) {
			a.tell(c, nil)
			if delivered != nil {
				delivered(c)
			}
		}
		if options.ErrorHandler == nil {
			options.ErrorHandler = spillway.ErrorHandlerFunc(func(err error, c *forward.Chunk) error {
				a.tell(c, err)
				return nil // the callback has the event
			})
		}
	}
	destination, err := config.destination()
	if err != nil {
		return nil, err
	}
	if a.logger, err = spillway.Open(destination, &options); err != nil {
		return nil, err
	}
	return a, nil
}

// destination is the logger's URL.
func (c *Config) destination() (string, error) {
	u := url.URL{Scheme: "forward", Host: c.address()}
	switch c.FluentNetwork {
	case "tls":
		u.Scheme = "forward+tls"
	case "unix":
		path, err := filepath.Abs(c.FluentSocketPath)
		if err != nil {
			return "", err
		}
		u = url.URL{Scheme: "forward+unix", Path: path}
	}
	q := url.Values{}
	if c.FluentNetwork == "tls" {
		q.Set("tls", "dial") // what wraps the connection looks at messages, so TLS is below it
	}
	q.Set("ack", strconv.FormatBool(c.RequestAck))
	q.Set("dial_timeout", c.Timeout.String())
	if c.ReadTimeout > 0 {
		q.Set("ack_timeout", c.ReadTimeout.String())
	}
	q.Set("min_backoff", max(c.pause(1), time.Millisecond).String())
	q.Set("max_backoff", max(c.pause(1), time.Duration(c.MaxRetryWait)*time.Millisecond, time.Millisecond).String())
	if c.AsyncResultCallback != nil {
		q.Set("breaker", strconv.Itoa(c.attempts()))
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// post puts an event into the ring.
func (a *async) post(m *msgToSend) error {
	if a.limit > 0 && a.room.Add(-1) < 0 && !a.more() {
		return full(a.config.BufferLimit, spillway.ErrFull)
	}
	record := m.record()
	if m.json {
		var err error
		if record, err = appendJSONRecord(nil, record); err != nil {
			return fmt.Errorf("fluent#appendBuffer: %w", err)
		}
	}
	t := m.time
	if !a.config.SubSecondPrecision {
		t = time.Unix(t.Unix(), 0)
	}
	err := a.logger.PostRaw(m.tag, t, record)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, spillway.ErrClosed):
		return errClosedAsync
	case errors.Is(err, spillway.ErrFull):
		return full(a.config.BufferLimit, err)
	}
	return fmt.Errorf("fluent#appendBuffer: %w", err)
}

// more asks the logger how many events it holds, and reports whether one more may come.
func (a *async) more() bool {
	a.ask.Lock()
	defer a.ask.Unlock()
	if a.room.Load() > 0 && a.room.Add(-1) >= 0 { // somebody else has asked
		return true
	}
	s := a.logger.Stats() // what was left may be found long after the logger was opened
	room := int64(a.limit+s.Adopted.Events) - int64(s.Held)
	a.room.Store(max(room-1, 0))
	return room > 0
}

// close closes the logger.
func (a *async) close() error {
	limit := a.config.patience(maxCloseTime)
	if a.config.ForceStopAsyncSend {
		limit = grace
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := a.logger.Close(ctx); err != nil {
		return fmt.Errorf("fluent#Close: %w", err)
	}
	return nil
}

// tell calls the callback for each event of a chunk, with the message that would have been sent for
// it alone.
func (a *async) tell(c *forward.Chunk, err error) {
	r := forward.ReadEntries(c.Entries)
	for e, ok := r.Next(); ok; e, ok = r.Next() {
		a.config.AsyncResultCallback(a.config.message(c.Tag, &e), err)
	}
}

// message makes the message of an entry.
func (c *Config) message(tag string, e *forward.Entry) []byte {
	if c.MarshalAsJSON {
		return appendJSONEntry(nil, tag, e, nil)
	}
	b := msgpack.AppendArrayHeader(nil, 4)
	b = msgpack.AppendString(b, tag)
	if c.SubSecondPrecision {
		b = forward.AppendEventTime(b, e.Sec, e.Nsec)
	} else {
		b = msgpack.AppendInt(b, e.Sec)
	}
	b = append(b, e.Record...)
	return msgpack.AppendMapHeader(b, 0)
}
