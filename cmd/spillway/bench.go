// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spillwaylog/spillway/cmd/internal/load"
)

type benchCmd struct {
	Forward   benchForwardCmd   `cmd:"" help:"Send events to any Forward server at given rates, and tell what it kept up with and what that cost it."`
	Processes benchProcessesCmd `cmd:"" help:"Have many processes write one log in several ways, and tell how long each took and what was lost."`
	Process   benchProcessCmd   `cmd:"" hidden:"" help:"Be one of these processes."`
}

// reportFlags are those of every benchmark.
type reportFlags struct {
	Progress string `help:"A line each second to standard error: auto (if that is a terminal), always, never." enum:"auto,always,never" default:"auto"`
	Format   string `help:"What is printed at the end: table, json, svg." enum:"table,json,svg" default:"table"`
	Out      string `help:"Where to instead of to standard output." type:"path" placeholder:"FILE"`
}

// watched tells whether progress is shown.
func (c *reportFlags) watched(w io.Writer) bool {
	if c.Progress != "auto" {
		return c.Progress == "always"
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// A report is what a benchmark measured.
type report interface {
	WriteTable(w io.Writer) error
	WriteJSON(w io.Writer) error
	WriteSVG(w io.Writer) error
}

// print has a benchmark run and prints its report, if there is one: an error comes after it.
func (c *reportFlags) print(s *streams, run func() (report, error)) error {
	var file *os.File
	if c.Out != "" { // before the time is spent; what it holds stays until there is something else
		var err error
		if file, err = os.OpenFile(c.Out, os.O_WRONLY|os.O_CREATE, 0o666); err != nil {
			return err
		}
		defer file.Close()
	}
	r, err := run()
	if r == nil {
		return err
	}
	write := r.WriteTable
	switch c.Format {
	case "json":
		write = r.WriteJSON
	case "svg":
		write = r.WriteSVG
	}
	if file == nil {
		return errors.Join(err, write(s.out))
	}
	if info, e := file.Stat(); e == nil && info.Mode().IsRegular() { // and no pipe, which has no length
		err = errors.Join(err, file.Truncate(0))
	}
	return errors.Join(err, write(file), file.Close())
}

type benchForwardCmd struct {
	To          string        `help:"Server: forward://host:port, forward+tls://host:port?ca=PEM or forward+unix:///path, with the parameters of send (${default})." default:"forward://127.0.0.1:24224" placeholder:"URL"`
	Rate        []float64     `help:"Events per second, on all connections together; several make a table. 0, the default: as many as the server takes." default:"0" placeholder:"N,…"`
	Sweep       bool          `help:"Rates from 400,000 to 2,600,000 and without a limit, in every mode; --rate, --mode and --compress choose others."`
	Connections int           `help:"Connections (${default})." default:"4" placeholder:"N"`
	Mode        []string      `help:"How events travel: message, forward, packed (the default)." enum:"message,forward,packed" placeholder:"MODE,…"`
	Compress    []string      `help:"How packed entries are compressed: none (the default), gzip, zstd." enum:"none,gzip,zstd" placeholder:"HOW,…"`
	Fresh       bool          `help:"Compress every message anew, with numbers of its own; costs the generator far more than all else."`
	Batch       int           `help:"Events per message. Default: 1000 packed, 100 in forward mode; in message mode it is 1." placeholder:"N"`
	Size        size          `help:"Bytes of an event, time and record." default:"140"`
	Events      string        `help:"Send these records, JSON objects, one a line, in turn." type:"existingfile" placeholder:"FILE"`
	Tag         string        `help:"Tag of the events." default:"bench"`
	Ack         bool          `help:"Ask for an ack for each message."`
	Depth       int           `help:"Messages of a connection that may wait for their acks (${default})." default:"16" placeholder:"N"`
	Duration    time.Duration `help:"How long is measured, for each rate." default:"10s"`
	Warmup      time.Duration `help:"How long is sent before that." default:"1s"`
	Drain       time.Duration `help:"How long the server may take at the end for what it was sent." default:"10s"`
	Pid         []int         `help:"Process of the server, whose CPU and memory are measured. May be repeated." placeholder:"PID"`
	PidFile     string        `help:"File with that number in it." type:"existingfile" placeholder:"FILE"`
	Processors  int           `help:"Processors that the generator may use at once. Default: all." placeholder:"N"`

	reportFlags
}

// articleRates are the events per second of a well-known table: from 400,000 to 2,600,000, and then
// without a limit.
var articleRates = []float64{4e5, 6e5, 8e5, 1e6, 1.2e6, 1.4e6, 1.6e6, 1.8e6, 2e6, 2.2e6, 2.4e6, 2.6e6, 0}

// Run measures and prints.
func (c *benchForwardCmd) Run(ctx context.Context, s *streams) error {
	if c.Processors > 0 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.Processors))
	}
	runs, to, err := c.runs(s)
	if err != nil {
		return err
	}
	for i := range runs {
		if err := runs[i].Check(); err != nil {
			return usageError{err}
		}
	}
	var before func(int)
	if c.watched(s.err) {
		before = func(i int) {
			o := runs[i]
			fmt.Fprintf(s.err, "run %d of %d: %s %s\n", i+1, len(runs), o.Mode, o.Compress)
		}
		for i := range runs {
			runs[i].Progress = func(p load.Progress) { fmt.Fprintln(s.err, p) }
		}
	}
	return c.print(s, func() (report, error) {
		r, err := load.Sweep(ctx, to, version(), runs, before)
		if len(r.Runs) == 0 {
			return nil, err
		}
		return r, err
	})
}

// runs are the runs that the flags ask for.
func (c *benchForwardCmd) runs(s *streams) (runs []load.Options, to string, err error) {
	dial, to, err := c.dial(s)
	if err != nil {
		return nil, "", err
	}
	o := load.Options{
		Dial: dial, Connections: c.Connections, Fresh: c.Fresh, Batch: c.Batch, Size: int(c.Size), Tag: c.Tag,
		Ack: c.Ack, Depth: c.Depth, Warmup: c.Warmup, Duration: c.Duration, Drain: c.Drain,
		Processes: slices.Clone(c.Pid),
	}
	if c.PidFile != "" {
		text, err := os.ReadFile(c.PidFile)
		if err != nil {
			return nil, "", err
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			return nil, "", fmt.Errorf("no process number in %s", c.PidFile)
		}
		o.Processes = append(o.Processes, pid)
	}
	if c.Events != "" {
		f, err := os.Open(c.Events)
		if err != nil {
			return nil, "", err
		}
		defer f.Close()
		if o.Records, err = load.ReadRecords(f); err != nil {
			return nil, "", fmt.Errorf("%s: %w", c.Events, err)
		}
	}
	rates, modes, compress := c.Rate, c.Mode, c.Compress
	if c.Sweep {
		if slices.Equal(rates, []float64{0}) {
			rates = articleRates
		}
		if len(modes) == 0 {
			modes = []string{"packed", "forward", "message"}
		}
		if len(compress) == 0 {
			compress = []string{"none", "gzip"}
		}
	}
	if len(modes) == 0 {
		modes = []string{"packed"}
	}
	if len(compress) == 0 {
		compress = []string{"none"}
	}
	for _, mode := range modes {
		for _, how := range compress {
			if mode != string(load.ModePacked) && how != "none" && slices.Contains(compress, "none") {
				continue // it cannot be compressed, but is sent plain
			}
			for _, rate := range rates {
				o.Mode, o.Compress, o.Rate = load.Mode(mode), how, rate
				if o.Mode == load.ModeMessage {
					o.Batch = 0
				} else {
					o.Batch = c.Batch
				}
				runs = append(runs, o)
			}
		}
	}
	return runs, to, nil
}

// dial returns what makes connections, and the URL as it may be shown.
func (c *benchForwardCmd) dial(s *streams) (func(context.Context) (net.Conn, error), string, error) {
	client, shown, err := clientTo(c.To, "bench", s.err)
	if err != nil {
		return nil, "", err
	}
	if client.NoKeepalive {
		return nil, "", usageError{fmt.Errorf("%s: bench keeps its connections: keepalive=false is not for it", shown)}
	}
	d := &load.Dialer{Network: client.Network, Address: client.Address, TLS: client.GetTLS, Login: client.GetLogin}
	return d.Dial, shown, nil
}
