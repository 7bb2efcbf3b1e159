// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/spillwaylog/spillway/cmd/internal/admin"
	"github.com/spillwaylog/spillway/cmd/internal/config"
	"github.com/spillwaylog/spillway/cmd/internal/expression"
	"github.com/spillwaylog/spillway/cmd/internal/kafka"
	"github.com/spillwaylog/spillway/cmd/internal/syslog"
	"github.com/spillwaylog/spillway/collector"
)

// A setup is what serve is to do: what its flags say, and a file where they say nothing.
type setup struct {
	serve     serveCmd
	file      *config.File // nil: there is none
	collector collector.Config
	admin     *admin.Plan // nil: no address

	asked *serveCmd // what the flags said, and which of them were given
	flags []string
}

// flagsOf are the flags that were given, by their names.
func flagsOf(k *kong.Context) (names []string) {
	for _, p := range k.Path {
		if p.Flag != nil {
			names = append(names, p.Flag.Name)
		}
	}
	return names
}

// setUp reads the file, if there is one. It touches nothing else. flags were given.
func (c *serveCmd) setUp(flags []string) (*setup, error) {
	s := &setup{serve: *c, asked: c, flags: flags}
	if c.Config == "" {
		err := s.plan()
		if err == nil {
			err = s.collector.Check()
		}
		if err != nil {
			err = usageError{err}
		}
		return s, err
	}
	_, err := config.Load(c.Config, &config.Options{
		Settings: &s.serve, Ends: endTables(),
		Check: func(f *config.File) error {
			s.file = f
			config.Override(&s.serve, c, flags)
			if f.Says("data") && !slices.Contains(flags, "data") {
				s.serve.Data = kong.ExpandPath(s.serve.Data) // as the flag's
			}
			var errs []error
			for _, wrong := range s.serve.limits() {
				errs = append(errs, wrong)
			}
			errs = append(errs, s.plan())
			return errors.Join(append(errs, s.collector.Check())...)
		},
	})
	return s, err
}

// plan fills in what the collector is to do, but for what belongs to the process.
func (s *setup) plan() (err error) {
	c := &s.serve
	if err := c.fill(); err != nil {
		return err
	}
	s.collector = collector.Config{
		InputKinds:    syslog.Kinds,
		OutputKinds:   map[string]collector.OutputKind{"kafka": kafka.Kind},
		Expressions:   expression.Compile,
		Dir:           c.Data,
		Ack:           collector.Ack(c.Ack),
		JournalBytes:  int64(c.JournalSize),
		LetterBytes:   int64(c.LettersSize),
		DropLetters:   c.LettersFull == "drop_oldest",
		MaxChunk:      int64(c.MaxChunk),
		MaxUnpacked:   int64(c.MaxUnpacked),
		MaxEvent:      int64(c.MaxEvent),
		Memory:        int64(c.Memory),
		RefuseInvalid: c.RefuseInvalid,
		RemovedDrain:  c.RemovedDrain,
	}
	if s.file != nil {
		s.collector.Inputs, s.collector.Outputs, s.collector.Routes = s.file.Inputs, s.file.Outputs, s.file.Routes
	}
	for _, side := range []struct {
		flag  string
		texts []string
		ends  *[]collector.End
	}{{"--listen", c.Listen, &s.collector.Inputs}, {"--to", c.To, &s.collector.Outputs}} {
		ends, err := readEnds(side.texts)
		if err != nil {
			return fmt.Errorf("%s: %w", side.flag, err)
		}
		if len(ends) > 0 {
			*side.ends = ends
		}
	}
	if s.admin, err = admin.Read(c.Admin); err != nil {
		return &config.KeyError{Key: "admin", Err: err}
	}
	return nil
}

// defaults is serve with a file and without further flags.
func defaults(path string) (*serveCmd, error) {
	serve := &serveCmd{Config: path}
	return serve, kong.ApplyDefaults(serve)
}

// fill puts defaults in the place of zeros, as the collector does: the memory limit and what prints
// the configuration need them, too.
func (c *serveCmd) fill() error {
	d, err := defaults("")
	if err != nil {
		return err
	}
	c.JournalSize = cmp.Or(c.JournalSize, d.JournalSize)
	c.LettersSize = cmp.Or(c.LettersSize, d.LettersSize)
	c.MaxChunk = cmp.Or(c.MaxChunk, d.MaxChunk)
	c.MaxUnpacked = cmp.Or(c.MaxUnpacked, d.MaxUnpacked)
	c.MaxEvent = cmp.Or(c.MaxEvent, d.MaxEvent)
	c.Memory = cmp.Or(c.Memory, d.Memory)
	c.RemovedDrain = cmp.Or(c.RemovedDrain, d.RemovedDrain)
	return nil
}

// readEnds reads flags such as NAME=URL.
func readEnds(texts []string) ([]collector.End, error) {
	var ends []collector.End
	for _, text := range texts {
		e, err := collector.ParseEnd(text)
		if err != nil {
			return nil, err
		}
		ends = append(ends, e)
	}
	return ends, nil
}

// endTables are the schemes and parameters of what a file may name by URLs.
func endTables() map[string]config.Ends {
	var s setup
	_ = s.plan() // of nothing
	return map[string]config.Ends{
		"inputs":  s.collector.InputParameters(),
		"outputs": s.collector.OutputParameters(),
		"admin":   admin.Parameters(),
	}
}
