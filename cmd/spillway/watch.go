// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/spillwaylog/spillway/collector"
)

// A watch runs a collector and tells how it goes: its status now and then, its account when that is
// asked for and at the end.
type watch struct {
	collector *collector.Collector
	log       *slog.Logger
	stderr    *outbox
	show      func(string) string // what of a text may be shown
	table     bool                // the account is one, instead of JSON
	live      bool                // one line stays up to date, instead of lines in the log
	every     time.Duration       // between two of these; 0: none

	before collector.Stats
	looked time.Time
}

// refreshEvery is how often a live line is.
const refreshEvery = time.Second

func (w *watch) run(ctx context.Context, asked <-chan os.Signal) error {
	ended := make(chan error, 1)
	go func() { ended <- w.collector.Run(ctx) }()
	every := w.every
	if w.live {
		every = refreshEvery
	}
	var tick <-chan time.Time
	if every > 0 {
		t := time.NewTicker(every)
		defer t.Stop()
		tick = t.C
	}
	w.before, w.looked = w.collector.Stats(), time.Now()
	for {
		select {
		case <-tick:
			w.status()
		case <-asked:
			w.account()
		case err := <-ended:
			if w.live {
				w.stderr.show("")
			}
			w.account()
			return err
		}
	}
}

// status tells what was since the last one.
func (w *watch) status() {
	now, stats := time.Now(), w.collector.Stats()
	s := &status{before: w.before, now: stats, at: now, period: now.Sub(w.looked)}
	w.before, w.looked = stats, now
	if w.live {
		w.stderr.show(s.line())
		return
	}
	s.log(w.log)
}

// account is a table on a terminal, elsewhere one line of JSON.
func (w *watch) account() {
	s := w.collector.Stats()
	if !w.table {
		logAccount(w.stderr, &s, w.show)
		return
	}
	_ = printAccount(w.stderr, &s, time.Now()) // an outbox takes all
}
