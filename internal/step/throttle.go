// SPDX-License-Identifier: Apache-2.0

package step

import (
	"errors"
	"fmt"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

// A Throttle lets so many events of a key pass in each span of time.
type Throttle struct {
	Events int64         `help:"How many events of a key pass in a span." required:"true"`
	Per    time.Duration `help:"How long a span is, by the times of events." required:"true"`
	By     []string      `help:"Fields whose values together are the key; tag is the event's tag. Without it all events have one."`
	Count  string        `help:"A field in which the next event of the key says how many were left out before it."`
	Keys   int64         `help:"How many keys are known; 4096 without it."`
}

// A Dedup lets an event pass once.
type Dedup struct {
	Window time.Duration `help:"For how long events like it are left out, by the times of events." required:"true"`
	By     []string      `help:"Fields whose values together make two events alike; tag is the event's tag. Without it tag and record are the same."`
	Count  string        `help:"A field in which the next event that is alike says how many were left out before it."`
	Keys   int64         `help:"How many events are known; 4096 without it."`
}

// Bounds of the keys that a step knows, and that all steps of an output know: each takes some 150
// bytes of memory, and at most 40 of the state that is written with the cursor, unless it is used a
// billion times.
const (
	usualKeys    = 1 << 12
	maxKeys      = 1 << 16
	maxKeysOfAll = 1 << 18
	maxEvents    = 1_000_000_000 // that may pass in a span
)

func newThrottle(a *action, s *Throttle, wrong func(error, ...any)) {
	if s.Events < 1 || s.Events > maxEvents {
		wrong(fmt.Errorf("throttle lets 1 to %d events pass", maxEvents), "events")
	}
	if s.Per <= 0 {
		wrong(errors.New("throttle has per, the length of a span, such as 1m"), "per")
	}
	a.remember(&memory{limit: uint32(min(s.Events, maxEvents)), length: int64(s.Per)}, keyOf{by: s.By}, s.Count,
		s.Keys, wrong)
}

func newDedup(a *action, s *Dedup, wrong func(error, ...any)) {
	if s.Window <= 0 {
		wrong(errors.New("dedup has a window, such as 1m"), "window")
	}
	a.remember(&memory{limit: 1, length: int64(s.Window)}, keyOf{by: s.By, whole: len(s.By) == 0}, s.Count, s.Keys,
		wrong)
}

// remember has an action let events pass as a memory says.
func (a *action) remember(m *memory, key keyOf, count string, keys int64, wrong func(error, ...any)) {
	if keys < 0 || keys > maxKeys {
		wrong(fmt.Errorf("keys is from 1 to %d", maxKeys), "keys")
	}
	if m.maxKeys = int(keys); m.maxKeys == 0 {
		m.maxKeys = usualKeys
	}
	key.read(wrong)
	m.begin(0)
	a.memory, a.keep = m, true
	a.holds = func(e *event) bool {
		if m.event != e.serial {
			sum := key.of(e)
			m.event = e.serial
			m.passes, m.leftOut = m.let(&sum, e.time())
		}
		return m.passes
	}
	if count == "" {
		return
	}
	field, err := parsePath(count)
	if err == nil && len(field) > 1 {
		err = errors.New("the field of the count is at the top of the record")
	}
	if err != nil {
		wrong(err, "count")
		return
	}
	a.do = func(e *event) error {
		if m.leftOut == 0 {
			return nil
		}
		e.scratch = msgpack.AppendUint(e.scratch[:0], m.leftOut)
		return e.set(field, e.store(e.scratch))
	}
}
