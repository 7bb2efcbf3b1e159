// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"runtime"

	"github.com/spillwaylog/spillway/collector"
)

// asking returns what delivers the signal that asks for the account (SIGUSR1,
// where that exists), which from now on does not end the process.
func asking() (asked chan os.Signal, stop func()) {
	asked = make(chan os.Signal, 1)
	notifyAccount(asked)
	return asked, func() { signal.Stop(asked) }
}

// account runs a collector and logs what it has counted as one line: at the
// end, and when it is asked.
func account(ctx context.Context, c *collector.Collector, asked <-chan os.Signal, log *slog.Logger) error {
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	for {
		select {
		case <-asked:
			logAccount(c, log)
		case err := <-ended:
			logAccount(c, log)
			return err
		}
	}
}

func logAccount(c *collector.Collector, log *slog.Logger) {
	log.Info("account", slog.Any("", c.Stats()), slog.Int("goroutines", runtime.NumGoroutine()))
}
