// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spillwaylog/spillway/cmd/internal/config"
	"github.com/spillwaylog/spillway/collector"
)

// checkCmd says whether serve would take a file.
type checkCmd struct {
	Config  string `short:"c" help:"File of YAML, as serve -c takes it." placeholder:"FILE" type:"existingfile"`
	Connect bool   `help:"Also look whether each output works now: connect to servers, try to write files. No event is sent." xor:"what"`
	Schema  bool   `xor:"what" help:"Print a JSON Schema of such files instead, for editors that complete and check."`
}

// Validate is called with the flags set.
func (c *checkCmd) Validate() error {
	if c.Config == "" && !c.Schema {
		return errors.New("name the file: spillway check -c FILE")
	}
	return nil
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
	set, err := serve.setUp(nil)
	if err == nil {
		err = set.file.RunTests(set.collector.Expressions)
	}
	if err == nil && c.Connect {
		err = set.reach(s.out)
	}
	return err
}

// reachFor is how long an output may take to answer.
const reachFor = 15 * time.Second

// reach looks whether the outputs work now, and says so, a line each.
func (s *setup) reach(w io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), reachFor, fmt.Errorf("in %v", reachFor))
	defer cancel()
	all, err := s.collector.Reach(ctx)
	if err != nil {
		return err
	}
	failed := 0
	for _, r := range all {
		said := "ok"
		if r.Err != nil {
			said = strings.ReplaceAll(s.file.Hide(r.Err.Error()), "\n", "; ")
			failed++
		}
		if _, err := fmt.Fprintf(w, "%s: %s\n", r.Output, said); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d outputs do not work now", failed, len(all))
	}
	return nil
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
