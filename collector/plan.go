// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"

	"github.com/spillwaylog/spillway/internal/lines"
	"github.com/spillwaylog/spillway/internal/urls"
)

// A plan is an output URL that was understood but touches nothing yet, so that
// a mistake in one of them is told before anything is opened.
type plan struct {
	url    string
	place  string // what it writes to, however that was written
	cursor string // name of its cursor in the journal
	opaque bool   // the output does not look at entries
	open   func(p *pump, o *Options) (output, error)
}

func planOutputs(texts []string) ([]plan, error) {
	plans := make([]plan, 0, len(texts))
	taken := map[string]bool{}
	for _, text := range texts {
		p, err := planOutput(text)
		if err != nil {
			return nil, err
		}
		if taken[p.place] {
			return nil, &urls.Error{URL: text, Reason: "this output is given twice"}
		}
		taken[p.place] = true
		plans = append(plans, p)
	}
	return plans, nil
}

func planOutput(text string) (plan, error) {
	u, err := urls.Parse(text)
	if err != nil {
		return plan{}, err
	}
	p := plan{url: text, place: u.Scheme}
	var envelope lines.Options
	switch u.Scheme {
	case "stdout":
		envelope, err = readEnvelope(u)
		p.open = func(p *pump, o *Options) (output, error) { return openStreamOutput(p, &envelope, o.Stdout) }
	case "discard":
		err = u.Allow()
		p.opaque = true
		p.open = func(*pump, *Options) (output, error) { return discardOutput{}, nil }
	case "file":
		if abs, err := filepath.Abs(u.Path); err == nil { // "file:a" and "file:./a" are one file, and two outputs would write every event to it
			p.place += ":" + abs
		} else {
			p.place += ":" + u.Path
		}
		envelope, err = readEnvelope(u)
		p.open = func(p *pump, _ *Options) (output, error) { return openFileOutput(p, &envelope, u.Path) }
	default:
		err = u.Errorf("no output of this kind; there are file:///path, stdout: and discard: so far")
	}
	if err != nil {
		return plan{}, err
	}
	// Parameters are no part of it: an output whose lines look different goes on where it was.
	sum := sha256.Sum256([]byte(u.Scheme + "\x00" + u.Path))
	p.cursor = u.Scheme + "-" + hex.EncodeToString(sum[:6])
	return p, nil
}

// readEnvelope reads how an output names and writes time and tag.
func readEnvelope(u *urls.URL) (lines.Options, error) {
	q := u.Params()
	o, err := lines.FromParams(q.String)
	if err != nil {
		err = u.Errorf("%v", err)
	}
	return o, cmp.Or(q.Err(), err)
}
