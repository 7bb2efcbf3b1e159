// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"fmt"
	"time"
)

// A Reached says whether an output works now.
type Reached struct {
	Output string // its name, or its URL
	Err    error
}

// Reach looks whether the outputs of a configuration work now: it connects to servers, with TLS and
// logins, and tries whether files can be written. It starts nothing, sends no event, touches no
// data directory, and leaves nothing behind. All are tried at once; what has no answer when ctx is
// done is an error, and a file system that hangs keeps a goroutine. Its own error is that of Check.
func (c *Config) Reach(ctx context.Context) ([]Reached, error) {
	next, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	planned, err := next.plan(nil)
	if err != nil {
		return nil, err
	}
	plans := planned.outputs
	all := make([]Reached, len(plans))
	answers := make([]chan error, len(plans))
	for i := range plans {
		p := &plans[i]
		all[i] = Reached{Output: p.name}
		answers[i] = make(chan error, 1)
		go func() { answers[i] <- p.reachNow(ctx) }()
	}
	grace, stop := context.WithCancel(context.Background())
	defer stop()
	context.AfterFunc(ctx, func() { time.AfterFunc(reachGrace, stop) })
	for i := range plans {
		select {
		case all[i].Err = <-answers[i]:
		case <-grace.Done():
			select {
			case all[i].Err = <-answers[i]:
			default:
				all[i].Err = fmt.Errorf("no answer: %w", context.Cause(ctx))
			}
		}
	}
	return all, nil
}

// reachGrace is how long an output may take to say why it has no answer.
const reachGrace = time.Second

// reachNow tries one output.
func (p *plannedOutput) reachNow(ctx context.Context) (err error) {
	if p.reach == nil {
		return nil
	}
	defer func() { // its code may not be known
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return p.reach(ctx)
}
