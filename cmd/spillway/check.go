// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"github.com/spillwaylog/spillway/cmd/internal/config"
	"github.com/spillwaylog/spillway/collector"
)

// checkCmd says whether serve would take a file.
type checkCmd struct {
	Config string `short:"c" help:"File of YAML, as serve -c takes it." placeholder:"FILE" type:"existingfile"`
	Schema bool   `help:"Print a JSON Schema of such files instead, for editors that complete and check."`
}

// Run prints nothing when all is well.
func (c *checkCmd) Run(s *streams) error {
	serve, err := defaults(c.Config)
	if err != nil {
		return err
	}
	if c.Schema {
		schema, err := config.Schema(&config.Options{Settings: serve, Ends: endTables()})
		if err == nil {
			_, err = fmt.Fprintf(s.out, "%s\n", schema)
		}
		return err
	}
	if c.Config == "" {
		return errors.New("name the file: spillway check -c FILE")
	}
	set, err := serve.setUp(nil)
	if err == nil {
		err = set.file.RunTests(set.collector.Expressions)
	}
	return err
}

// configCmd prints what serve would do with a file.
type configCmd struct {
	Config string `short:"c" required:"" help:"File of YAML, as serve -c takes it." placeholder:"FILE" type:"existingfile"`
}

// Run prints it.
func (c *configCmd) Run(s *streams) error {
	serve, err := defaults(c.Config)
	if err != nil {
		return err
	}
	set, err := serve.setUp(nil)
	if err == nil {
		_, err = io.WriteString(s.out, set.inForce())
	}
	return err
}

// defaults is serve with a file and without further flags.
func defaults(path string) (*serveCmd, error) {
	serve := &serveCmd{Config: path}
	return serve, kong.ApplyDefaults(serve)
}

// inForce is the setup as a file would say it.
func (s *setup) inForce() string {
	inputs, outputs := s.collector.Inputs, s.collector.Outputs
	if len(inputs) == 0 {
		inputs = collector.Ends(collector.DefaultInput)
	}
	if len(outputs) == 0 {
		outputs = collector.Ends(collector.DefaultOutput)
	}
	return s.file.Print(&s.serve, inputs, outputs)
}
