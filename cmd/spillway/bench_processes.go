// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"

	"github.com/spillwaylog/spillway/cmd/internal/processes"
)

type benchProcessesCmd struct {
	Processes int      `help:"Processes that write at once (${default})." default:"20" placeholder:"N"`
	Lines     int      `help:"Lines of each of them (${default})." default:"100000" placeholder:"N"`
	Rounds    int      `help:"How often each way is taken, by turns; medians are told (${default})." default:"1" placeholder:"N"`
	Way       []string `help:"Ways to take: ${enum}. Default: all." enum:"lock,connect,socket,open,file,json,spillway,shared-append,shared-lock,collector" placeholder:"WAY,…"`
	Dir       string   `help:"Folder for the files, which are removed again: the disk that is measured. Default: the folder for temporary files." type:"existingdir"`

	reportFlags
}

// Help tells what the ways are.
func (c *benchProcessesCmd) Help() string {
	return `Chienomi's experiment, with the article's numbers: 20 processes write 100,000 short lines each. Its five ways are lock (one file, opened and locked for each line), connect and socket (a socket that is connected for each line, or once), open and file (a file per process, opened for each line, or once). Beside them: json (a file per process, JSON lines built by hand), spillway (the logger, a file per process), shared-append and shared-lock (the logger, one file that all processes write) and collector (loggers, and a collector that writes all of it to one file).

The time goes from the first start of a process to the exit of the last. After that every line is looked for: what is missing, torn, repeated or out of the order of its process is told.`
}

// Validate is called with the flags set.
func (c *benchProcessesCmd) Validate() error {
	if min(c.Processes, c.Lines, c.Rounds) < 1 {
		return errors.New("--processes, --lines and --rounds have to be at least 1")
	}
	return nil
}

// Run measures and prints.
func (c *benchProcessesCmd) Run(ctx context.Context, s *streams) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	o := &processes.Options{
		Processes: c.Processes, Lines: c.Lines, Rounds: c.Rounds, Ways: c.Way, Dir: c.Dir,
		Writer: func(ctx context.Context, way string, number, lines int, dir string) *exec.Cmd {
			return exec.CommandContext(ctx, self, "bench", "process", way, strconv.Itoa(number), strconv.Itoa(lines),
				dir)
		},
		Collector: func(ctx context.Context, arguments ...string) *exec.Cmd {
			return exec.CommandContext(ctx, self, append([]string{"serve"}, arguments...)...)
		},
	}
	if len(o.Ways) == 0 {
		o.Ways = processes.Ways()
	}
	if o.Dir == "" {
		o.Dir = os.TempDir()
	}
	if screen := openTerminal(s.err); screen != nil && screen.draws() && c.Progress == "auto" {
		o.Progress = func(p processes.Progress) { screen.set(p.String()) }
		defer screen.set("")
	} else if c.watched(s.err) {
		o.Progress = func(p processes.Progress) { _, _ = s.err.Write([]byte(p.String() + "\n")) }
	}
	return c.print(s, func() (report, error) {
		r, err := processes.Run(ctx, o)
		if !r.Measured() {
			return nil, err
		}
		return r, err
	})
}

type benchProcessCmd struct {
	Way    string `arg:""`
	Number int    `arg:""`
	Lines  int    `arg:""`
	Dir    string `arg:""`
}

// Run writes the lines.
func (c *benchProcessCmd) Run() error { return processes.Write(c.Way, c.Number, c.Lines, c.Dir) }
