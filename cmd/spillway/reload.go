// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spillwaylog/spillway/collector"
)

// hangups returns what delivers SIGHUP, which from now on does not end the process.
func hangups() (signals chan os.Signal, stop func()) {
	signals = make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	return signals, func() { signal.Stop(signals) }
}

// reloadOn reloads the credentials of col at each signal, until stop is called.
func reloadOn(signals <-chan os.Signal, col *collector.Collector, conf *collector.Config, log *slog.Logger) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-signals:
				if err := col.Apply(conf); err != nil {
					log.Error("credentials not reloaded; what was in force before stays so", "error", err)
				} else {
					log.Info("credentials reloaded")
				}
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
