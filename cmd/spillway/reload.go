// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spillwaylog/spillway/cmd/internal/admin"
	"github.com/spillwaylog/spillway/cmd/internal/config"
	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/internal/codes"
)

// hangups returns what delivers SIGHUP, which from now on does not end the process.
func hangups() (signals chan os.Signal, stop func()) {
	signals = make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	return signals, func() { signal.Stop(signals) }
}

// A reloader brings what runs to what the file says now, and reads credentials again.
type reloader struct {
	set       atomic.Pointer[setup] // in force
	next      atomic.Pointer[setup] // while it is put in force
	collector *collector.Collector
	tells     *admin.Server
	log       *slog.Logger

	mu sync.Mutex // one at a time
}

// newest is the setup that knows most of what is to be hidden.
func (r *reloader) newest() *setup {
	if next := r.next.Load(); next != nil {
		return next
	}
	return r.set.Load()
}

// hideFiles returns a text without what files gave, now or before.
func (r *reloader) hideFiles(text string) string { return r.newest().file.HideFiles(text) }

// inForce is the setup as a file would say it.
func (r *reloader) inForce() string { return r.set.Load().inForce() }

// on reloads at each signal, until stop is called.
func (r *reloader) on(signals <-chan os.Signal) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-signals:
				_ = r.reload() // it was told
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// reload reads the file and the credentials, and says what came of it. What is wrong changes
// nothing, whether it is a mistake in the file, a setting that cannot change while it runs, or an
// end that cannot be opened.
func (r *reloader) reload() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	set := r.set.Load()
	next, err := set.again()
	if err == nil {
		err = set.differs(next)
	}
	what := "configuration"
	if err == nil {
		next.file.Remember(set.file) // what was removed is still told of
		r.next.Store(next)
		defer r.next.Store(nil)
		if err = r.tells.Reload(); err == nil {
			err = r.collector.Apply(&next.collector)
		} else {
			what = "credentials"
		}
		if errors.Is(err, collector.ErrCredentials) {
			what = "credentials"
		}
		if err != nil {
			err = errors.New(next.file.Hide(err.Error()))
		}
	}
	if err != nil {
		codes.ReloadFailed.Error(r.log, what+" not reloaded; what was in force before stays so", "error", err)
		return err
	}
	r.set.Store(next)
	codes.Reloaded.Info(r.log, "configuration and credentials reloaded")
	return nil
}

// again reads the file once more. What came through a pipe is gone, and to open a named one would
// wait for a writer: for ever, and the end of the process with it.
func (s *setup) again() (*setup, error) {
	path := s.asked.Config
	if info, err := os.Stat(path); path != "" && err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: it is no regular file, and cannot be read again", path)
	}
	return s.asked.setUp(s.flags)
}

// differs says which settings of the command itself are others: the collector knows only its own.
func (s *setup) differs(next *setup) error {
	var errs []error
	for _, key := range config.Differences(&s.serve, &next.serve) {
		switch key {
		case "admin", "status_every", "log_format", "log_level":
			errs = append(errs, fmt.Errorf("%s: it changed; restart to change it", strings.ReplaceAll(key, "_", " ")))
		}
	}
	return errors.Join(errs...)
}

// A told is what /status tells: the account, and since when it has been counted.
type told struct {
	Version       string    `json:"version"`
	Pid           int       `json:"pid"`
	Time          time.Time `json:"time"`
	Since         time.Time `json:"since"`
	UptimeSeconds float64   `json:"uptime_seconds"`
	Ack           string    `json:"ack"`
	account
	Messages []messageAccount `json:"messages"`
}

// status makes it.
func (r *reloader) status(since time.Time) func(*collector.Stats) any {
	return func(stats *collector.Stats) any {
		s := r.newest()
		return &told{
			version(), os.Getpid(), time.Now().UTC(), since.UTC(), time.Since(since).Seconds(), s.serve.Ack,
			*accountOf(stats, s.file.Hide), messagesOf(stats, s.file.Hide),
		}
	}
}
