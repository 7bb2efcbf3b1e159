// SPDX-License-Identifier: Apache-2.0

// Command logger is a program that logs: to a collector at the default address, or to the
// destination in its argument.
//
//	go run ./cmd/spillway serve                  in one terminal, and in another
//	go run ./examples/logger
//	go run ./examples/logger 'file:///tmp/shop.jsonl'
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spillwaylog/spillway"
)

func main() {
	destination := "forward://127.0.0.1:24224"
	if len(os.Args) > 1 {
		destination = os.Args[1]
	}
	if err := run(destination); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(destination string) (err error) {
	log, err := spillway.Open(destination, &spillway.Options{Tag: "shop"})
	if err != nil {
		return err // the destination or an option is wrong; a server that is down is no error
	}
	defer func() { // without it, what is not delivered yet waits in the ring for the next process
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if e := log.Close(ctx); err == nil {
			err = e
		}
	}()
	slog.SetDefault(slog.New(log.Handler()))

	log.Info("order placed", slog.Int("id", 42)) // the fast way
	slog.Info("order paid", "id", 42)            // the standard library's
	return log.Post("shop.order", struct {       // any struct or map under any tag
		ID    int     `json:"id"`
		Total float64 `json:"total"`
	}{42, 9.5})
}
