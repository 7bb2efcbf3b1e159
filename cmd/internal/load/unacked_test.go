// SPDX-License-Identifier: Apache-2.0

package load

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestFlights(t *testing.T) {
	f := newUnacked(4)
	id := func(i int) []byte { return fmt.Appendf(nil, "%024d", i) }
	start := time.Unix(0, 0)
	for i := range 4 {
		f.push(id(i), start.Add(time.Duration(i)))
	}
	for _, step := range []struct {
		ack  int
		room int64
		err  error
	}{
		{ack: 9, room: 0, err: errStrange},
		{ack: 2, room: 0},
		{ack: 2, room: 0, err: errStrange},
		{ack: 0, room: 1},
		{ack: 1, room: 3},
		{ack: 1, room: 3, err: errStrange},
		{ack: 3, room: 4},
		{ack: 3, room: 4, err: errStrange},
	} {
		due, err := f.take(id(step.ack))
		if !errors.Is(err, step.err) || err == nil && due != start.Add(time.Duration(step.ack)) {
			t.Errorf("ack %d: due %v, %v", step.ack, due, err)
		}
		if f.room() != step.room {
			t.Errorf("ack %d: room for %d, want %d", step.ack, f.room(), step.room)
		}
	}
	for i := 10; i < 14; i++ {
		f.push(id(i), start)
	}
	if _, err := f.take(id(13)); err != nil {
		t.Error(err)
	}
	if _, err := f.take(nil); !errors.Is(err, errStrange) {
		t.Error(err)
	}
}
