// SPDX-License-Identifier: Apache-2.0

package fluent

import (
	"fmt"
	"sync"
	"time"

	"github.com/spillwaylog/spillway"
)

// A Fluent sends events to a server. Its methods may be called by many goroutines.
type Fluent struct {
	Config

	err    error   // why New failed for good
	sender *sender // without Async
	async  *async  // with it

	close    sync.Once
	closeErr error
}

// New returns a Fluent. Without Async it connects first; if that fails it returns the error and a
// Fluent that is usable all the same: each Post tries again. With Async it does not wait for the
// server.
func New(config Config) (*Fluent, error) { return NewWith(config, nil) }

// NewWith is New with what Config cannot say. For Async, o goes to [spillway.Open]: above all Dir,
// the folder into which events overflow when the server is away for long, and Name. Without Async
// only o.Dial counts. What compat/fluent sets itself stands in the package's documentation.
func NewWith(config Config, o *spillway.Options) (*Fluent, error) {
	limit := config.BufferLimit
	config.resolve()
	f := &Fluent{Config: config}
	dial, err := config.dialer(o)
	if err != nil {
		f.err = err
		return f, err
	}
	if !config.Async {
		f.sender = newSender(config, dial)
		_, err := f.sender.open()
		return f, err
	}
	f.async, err = newAsync(config, limit, dial, o)
	f.err = err
	return f, err
}

// Post sends an event with the present time. Message is a map with keys that are strings, a struct,
// a msgp.Marshaler that makes a map, or a pointer to one of these. Fields of structs are named by
// their tag msg, then codec, then by themselves. Message is not used after Post returned.
//
// Without Async, nil means that the server acked the event (with RequestAck), or that it is with
// the kernel. With Async it means that the event is in the ring.
func (f *Fluent) Post(tag string, message interface{}) error {
	return f.PostWithTime(tag, time.Now(), message)
}

// PostWithTime is Post with a time.
func (f *Fluent) PostWithTime(tag string, tm time.Time, message interface{}) error {
	if f == nil {
		return errNotMade
	}
	if f.TagPrefix != "" {
		tag = f.TagPrefix + "." + tag
	}
	record, err := f.asRecord(message)
	if err != nil {
		return err
	}
	return f.EncodeAndPostData(tag, tm, record)
}

// EncodeAndPostData is PostWithTime without the TagPrefix.
func (f *Fluent) EncodeAndPostData(tag string, tm time.Time, message interface{}) error {
	if f == nil {
		return errNotMade
	}
	m := messages.Get().(*msgToSend)
	defer m.free()
	encode := f.encode
	if f.async != nil {
		encode = f.encodeRecord
	}
	if err := encode(m, tag, tm, message); err != nil {
		return fmt.Errorf("fluent#EncodeAndPostData: can't convert '%T' to msgpack:%w", message, err)
	}
	return f.postRawData(m)
}

// EncodeData returns the message of an event, for PostRawData. Tag is taken as it is.
func (f *Fluent) EncodeData(tag string, tm time.Time, message interface{}) (msg *msgToSend, err error) { //nolint:revive // unexported-return: the original's signature
	msg = new(msgToSend)
	if err := f.encode(msg, tag, tm, message); err != nil {
		return nil, err
	}
	return msg, nil
}

// PostRawData sends a message of EncodeData. Nobody learns whether that worked.
//
// Deprecated: use EncodeAndPostData.
func (f *Fluent) PostRawData(msg *msgToSend) {
	_ = f.postRawData(msg)
}

func (f *Fluent) postRawData(m *msgToSend) error {
	switch {
	case f == nil:
		return errNotMade
	case m == nil:
		return errNothing
	case f.err != nil:
		return fmt.Errorf("fluent#postRawData: %w", f.err)
	case !m.isRecord():
		return errNoRecord
	case f.async != nil:
		return f.async.post(m)
	case f.sender != nil:
		return f.sender.send(m.data, m.ack)
	}
	return errNotMade
}

// Close sends what is pending and closes the connection. It always returns: without Async within a
// second, with it after as long as one event would be tried (MaxRetry, RetryWait), at most 30
// seconds, and after a second with ForceStopAsyncSend. The error wraps an
// [spillway.UndeliveredError] if events are left; they stay in the ring for the next logger of this
// program and server. Close again does nothing and returns the same.
func (f *Fluent) Close() error {
	if f == nil {
		return nil
	}
	f.close.Do(func() {
		switch {
		case f.async != nil:
			f.closeErr = f.async.close()
		case f.sender != nil:
			f.sender.close()
		}
	})
	return f.closeErr
}
