// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"runtime"
	"time"
)

// Schema is what a report in JSON is called. It changes when a field changes its meaning or goes
// away, which none has yet.
const Schema = "spillway-bench-forward/1"

// A Report is several runs. It is also what is written as JSON.
type Report struct {
	Schema  string    `json:"schema"`
	Started time.Time `json:"started"`
	To      string    `json:"to"`      // the server's URL, without secrets
	Version string    `json:"version"` // of spillway
	Go      string    `json:"go"`
	OS      string    `json:"os"`
	Arch    string    `json:"arch"`
	CPUs    int       `json:"cpus"` // that the generator may use
	Runs    []Result  `json:"runs"`
}

// Sweep does one run after another, and stops at the first that fails, whose result is in the
// report too. before is called before each run, if it is not nil.
func Sweep(ctx context.Context, to, version string, runs []Options, before func(i int)) (*Report, error) {
	report := &Report{
		Schema: Schema, Started: time.Now().UTC(), To: to, Version: version,
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.GOMAXPROCS(0), Runs: []Result{},
	}
	for _, o := range runs { // before anything is sent
		if err := o.Check(); err != nil {
			return report, err
		}
	}
	for i, o := range runs {
		if before != nil {
			before(i)
		}
		result, err := Run(ctx, o)
		if result.Total.Messages > 0 || err == nil {
			report.Runs = append(report.Runs, result)
		}
		if err != nil {
			return report, err
		}
	}
	return report, nil
}
