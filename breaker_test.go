// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"errors"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/output"
)

func TestSubscribe(t *testing.T) {
	l, _ := NewTest(nil)
	a, b := l.Subscribe(), l.Subscribe()
	boom := errors.New("boom")
	tell := &l.c.breakers
	tell.tell(output.BreakerEvent{State: output.BreakerOpen, Err: boom, At: time.Unix(1, 0)})
	tell.tell(output.BreakerEvent{State: output.BreakerHalfOpen})
	tell.tell(output.BreakerEvent{State: output.BreakerClosed})
	for _, ch := range []<-chan BreakerEvent{a, b} {
		first := <-ch
		if first.State != BreakerOpen || first.Err != boom || first.At.Unix() != 1 { //nolint:errorlint // the very one
			t.Errorf("%+v", first)
		}
		if s := (<-ch).State; s != BreakerHalfOpen {
			t.Error(s)
		}
		if s := (<-ch).State; s != BreakerClosed {
			t.Error(s)
		}
	}
	for i := range 2 * backlog { // nobody reads: the newest stay
		tell.tell(output.BreakerEvent{At: time.Unix(int64(i), 0)})
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	tell.tell(output.BreakerEvent{}) // late
	want := int64(backlog)
	for e := range a {
		if e.At.Unix() != want {
			t.Errorf("event %d, want %d", e.At.Unix(), want)
		}
		want++
	}
	if want != 2*backlog {
		t.Errorf("the last event is %d", want)
	}
	for s, want := range map[BreakerState]string{
		BreakerClosed: "closed", BreakerOpen: "open",
		BreakerHalfOpen: "half-open", 9: "unknown",
	} {
		if s.String() != want {
			t.Error(s)
		}
	}
}
