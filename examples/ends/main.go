// SPDX-License-Identifier: Apache-2.0

// Command ends is a collector with two ends of its own: an input that follows a file of JSON lines,
// and an output that posts such lines to a server. Each is less than 60 lines.
//
//	cd examples/ends && GOWORK=off go run . 'tail:/var/log/app.jsonl?tag=app' http://127.0.0.1:8080/logs /var/lib/ends
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/spillwaylog/spillway/collector"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: ends INPUT OUTPUT DIR")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(input, output, dir string) error {
	c, err := collector.Open(&collector.Config{
		Inputs:      []collector.End{{Name: "tail", URL: input}},
		Outputs:     []collector.End{{Name: "post", URL: output}},
		InputKinds:  map[string]collector.InputKind{"tail": tailKind},
		OutputKinds: map[string]collector.OutputKind{"http": postKind, "https": postKind},
		Dir:         dir,
	})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return c.Run(ctx)
}
