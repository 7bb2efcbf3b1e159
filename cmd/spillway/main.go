// SPDX-License-Identifier: Apache-2.0

// Command spillway collects log events, sends them, and looks into journals.
//
//	serve    inputs ──► journal ──► outputs          package collector
//	check    a configuration file ──► its mistakes   package cmd/internal/config
//	config   a configuration file ──► what is in force
//	top      a collector's address ──► a terminal    package cmd/internal/admin
//	tail     the same, of events
//	send     standard input ──► a Forward server     package forward; with --follow through a ring
//	replay   dead letters ──► a Forward server       package internal/letters
//	merge    files of lines ──► one, by time          package cmd/internal/merge
//	journal  looks into a data directory             package journal
//	bench    made events ──► any Forward server      package cmd/internal/load
//	         processes ──► one log, in several ways   package cmd/internal/processes
//
// It exits with 0 when done, 1 when something failed, 2 when the command line
// cannot be understood.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/spillwaylog/spillway/cmd/internal/admin"
	"github.com/spillwaylog/spillway/cmd/internal/config"
	"github.com/spillwaylog/spillway/collector"
)

type cli struct {
	Serve      serveCmd      `cmd:"" help:"Run the collector: take events in, keep them in a journal, hand them on."`
	Check      checkCmd      `cmd:"" help:"Say what is wrong with a configuration file; start nothing."`
	Config     configCmd     `cmd:"" help:"Print a configuration as it would be in force, without its secrets."`
	Top        topCmd        `cmd:"" help:"Show what a running collector does: flows, what waits, what went wrong."`
	Tail       tailCmd       `cmd:"" help:"Show events as a running collector stores them."`
	Send       sendCmd       `cmd:"" help:"Send the lines of standard input to a Forward server, with acks."`
	Replay     replayCmd     `cmd:"" help:"Send the events that an output refused to a Forward server, with acks, each once."`
	Merge      mergeCmd      `cmd:"" help:"Merge files of lines by time."`
	Journal    journalCmd    `cmd:"" help:"Look into a journal."`
	Bench      benchCmd      `cmd:"" help:"Measure servers, and ways to log."`
	Completion completionCmd `cmd:"" help:"Print a script that completes this command line: for bash, zsh or fish."`
	Help       helpCmd       `cmd:"" help:"Tell about a command, as its --help does."`
	Version    versionCmd    `cmd:"" help:"Print version, commit, Go and platform."`

	ShowVersion kong.VersionFlag `name:"version" help:"Print what the command version prints."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], &streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, s *streams) int {
	var c cli
	exited := -1
	parser, err := kong.New(&c,
		kong.Name("spillway"),
		kong.Description("Logging that never makes the application wait and never loses a line."),
		kong.UsageOnError(),
		kong.Writers(s.out, s.err),
		kong.Exit(func(code int) { exited = code }),
		kong.Vars{
			"version": strings.TrimSuffix(versionText(buildInfo()), "\n"), "admin": admin.DefaultAddress,
			"tail": strconv.Itoa(collector.TailRate), "maxTail": strconv.Itoa(collector.MaxTailRate),
		},
	)
	if err != nil {
		fmt.Fprintln(s.err, "spillway:", err)
		return exitFailed
	}
	if len(args) > 0 && args[0] == completeName {
		if err := complete(parser.Model.Node, args[1:]).write(s.out); err != nil {
			return exitFailed
		}
		return 0
	}
	k, err := parser.Parse(helpArgs(args))
	if exited >= 0 { // --help, --version
		return exited
	}
	if err != nil {
		fmt.Fprintln(s.err, "spillway:", err)
		var parseErr *kong.ParseError
		if errors.As(err, &parseErr) && parseErr.Context != nil {
			fmt.Fprintln(s.err, "Run \"spillway --help\" for the commands and their flags.")
		}
		return exitUsage
	}
	k.BindTo(ctx, (*context.Context)(nil))
	if err := k.Run(s); err != nil {
		if mistakes := config.Mistakes(nil); errors.As(err, &mistakes) {
			fmt.Fprintln(s.err, mistakes) // each begins with file and line, as editors want it
			return exitCode(err)
		}
		if cause := context.Cause(ctx); errors.Is(err, context.Canceled) && cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", err, cause) // which signal it was
		}
		fmt.Fprintln(s.err, "spillway:", err)
		return exitCode(err)
	}
	return 0
}
