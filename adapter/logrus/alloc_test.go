// SPDX-License-Identifier: Apache-2.0

//go:build !race

package spillwaylogrus

import (
	"bytes"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/internal/alike"
)

// TestAllocations counts them: the race detector lets sync.Pool forget at random, so this is not
// for it.
func TestAllocations(t *testing.T) {
	log := alike.Open(t, "discard:", &spillway.Options{Shm: "none"})
	hook := NewHook(log)
	entry := &logrus.Entry{
		Level: logrus.InfoLevel, Message: "m", Time: time.Now(),
		Data: logrus.Fields{"a": 1, "b": "text", "c": time.Second, "task_id": "t"},
	}
	for _, c := range []struct {
		name   string
		want   float64
		buffer *bytes.Buffer
		f      func()
	}{
		{"hook", 0, nil, func() { _ = hook.Fire(entry) }},
		{"formatter", 1, nil, format(entry, &Formatter{})},
		{"service formatter", 1, nil, format(entry, NewServiceFormatter("s"))},
		{"formatter with a buffer", 0, new(bytes.Buffer), format(entry, &Formatter{})},
	} {
		entry.Buffer = c.buffer
		c.f()
		if n := testing.AllocsPerRun(200, c.f); n > c.want {
			t.Errorf("%s: %v allocations, want %v", c.name, n, c.want)
		}
	}
}

func format(entry *logrus.Entry, f logrus.Formatter) func() {
	return func() {
		if entry.Buffer != nil {
			entry.Buffer.Reset()
		}
		_, _ = f.Format(entry)
	}
}
