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
	"syscall"

	"github.com/spillwaylog/spillway/cmd/internal/admin"
	"github.com/spillwaylog/spillway/cmd/internal/config"
	"github.com/spillwaylog/spillway/collector"
)

// hangups returns what delivers SIGHUP, which from now on does not end the process.
func hangups() (signals chan os.Signal, stop func()) {
	signals = make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	return signals, func() { signal.Stop(signals) }
}

// A reloader brings what runs to what the file says now, and reads credentials again.
type reloader struct {
	set       *setup // in force
	collector *collector.Collector
	tells     *admin.Server
	log       *slog.Logger

	mu sync.Mutex // one at a time
}

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

// reload reads the file and the credentials, and says what came of it. A file with a mistake
// changes nothing, and neither does one that says what cannot change while it runs.
func (r *reloader) reload() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	next, err := r.set.again()
	if err == nil {
		err = r.set.differs(next)
	}
	what := "configuration"
	if err == nil {
		if err = r.collector.Apply(&next.collector); !errors.Is(err, collector.ErrRestart) {
			what = "credentials"
		}
		if err == nil {
			err = r.tells.Reload()
		}
		if err != nil {
			err = errors.New(r.set.file.Hide(next.file.Hide(err.Error())))
		}
	}
	if err != nil {
		r.log.Error(what+" not reloaded; what was in force before stays so", "error", err)
		return err
	}
	r.log.Info("credentials reloaded")
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
