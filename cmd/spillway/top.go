// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spillwaylog/spillway/cmd/internal/admin"
)

// adminFlags say which collector is asked.
type adminFlags struct {
	Admin string `help:"Address at which the collector tells, as serve has it: host:port, or a URL with token_file= or token_env=, and of https:// ca=, cert=, key=, server_name=, insecure= (${default})." default:"${admin}" placeholder:"ADDRESS"`
}

// adminHelp is about the address.
const adminHelp = `The address is that of admin in the collector's file, or of serve --admin. What it asks of its clients are parameters of a URL, put in quotes for the shell: 'https://logs.example:24220?ca=ca.pem&token_file=token'

ca= names those who vouch for the server (default: those of the system), cert= and key= this client's certificate and key, server_name= the name that the server's certificate has to have; insecure=true takes any certificate. token_file= or token_env= say where the token stands.`

// dial is the way to the collector.
func (f *adminFlags) dial(warnings io.Writer) (*admin.Client, error) {
	return admin.Dial(f.Admin, func(err error) { fmt.Fprintln(warnings, "spillway:", err) })
}

type topCmd struct {
	adminFlags
	Every time.Duration `help:"How often it looks." default:"1s"`
	Once  bool          `help:"Print one table, of two looks, and end. That is also what happens where standard output is no terminal."`
}

// Help tells what does not fit behind a flag.
func (c *topCmd) Help() string {
	return `Keys: q and Ctrl-C end it. Events and bytes a second are those since the look before; refused, invalid and dead letters are counts since the collector's start, and yellow while they grow. WAITING is what an output has not confirmed, AGE how long the oldest of that has waited.

` + adminHelp
}

// Validate is called with the flags set.
func (c *topCmd) Validate() error {
	if c.Every < minEvery {
		return fmt.Errorf("--every: %v is too often; at least %v", c.Every, minEvery)
	}
	return nil
}

const minEvery = 100 * time.Millisecond

// Bounds of a look.
const (
	maxStatus   = 16 << 20
	maxLookTime = 10 * time.Second
)

// A look is what a collector told, and when it was asked.
type look struct {
	told
	at time.Time
}

func lookAt(ctx context.Context, c *admin.Client) (*look, error) {
	ctx, cancel := context.WithTimeout(ctx, maxLookTime)
	defer cancel()
	body, err := c.Get(ctx, "/status", nil)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	l := &look{at: time.Now()}
	if err := json.NewDecoder(io.LimitReader(body, maxStatus)).Decode(&l.told); err != nil {
		return nil, fmt.Errorf("%s: what it tells of its status is not understood: %w", c.Address(), err)
	}
	return l, nil
}

// Run shows what a collector does, until ctx ends.
func (c *topCmd) Run(ctx context.Context, s *streams) error {
	client, err := c.dial(s.err)
	if err != nil {
		return err
	}
	defer client.Close()
	first, err := lookAt(ctx, client) // a wrong address is told where it stays readable
	if err != nil {
		return err
	}
	table := &topTable{address: client.Address(), now: first}
	out := openTerminal(s.out)
	if c.Once || out == nil || !out.draws() {
		return c.once(ctx, s, client, table)
	}
	in, _ := s.in.(*os.File)
	screen, err := openScreen(out.file, in)
	if err != nil {
		return err
	}
	defer screen.close()
	return c.live(ctx, client, table, screen)
}

// once prints one table.
func (c *topCmd) once(ctx context.Context, s *streams, client *admin.Client, table *topTable) error {
	select {
	case <-time.After(c.Every):
	case <-ctx.Done():
		return ctx.Err()
	}
	next, err := lookAt(ctx, client)
	if err != nil {
		return err
	}
	table.take(next)
	for _, l := range table.lines(onceWidth, 0) {
		if _, err := fmt.Fprintln(s.out, l.text); err != nil {
			return err
		}
	}
	return nil
}

// live keeps a screen up to date. What is looked for is one goroutine's, so that keys are heard
// while a collector does not answer.
func (c *topCmd) live(ctx context.Context, client *admin.Client, table *topTable, screen *screen) error {
	ctx, cancel := context.WithCancel(ctx)
	type answer struct {
		*look
		err error
	}
	answers, ended := make(chan answer), make(chan struct{})
	go func() {
		defer close(ended)
		defer screen.guard()
		tick := time.NewTicker(c.Every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			l, err := lookAt(ctx, client)
			select {
			case answers <- answer{l, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() {
		cancel()
		<-ended
	}()
	for {
		width, height := screen.size()
		if err := screen.draw(table.lines(width, height)); err != nil {
			return err
		}
		select {
		case a := <-answers:
			if a.err != nil {
				table.fail(a.err, time.Now())
			} else {
				table.take(a.look)
			}
		case <-screen.resized:
		case <-screen.ended:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}
