// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"fmt"
	"os"

	"github.com/spillwaylog/spillway/internal/credentials"
	"github.com/spillwaylog/spillway/internal/lines"
	"github.com/spillwaylog/spillway/internal/mover"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/internal/urls"
)

// schemes are those of destinations.
var schemes = []string{"forward", "forward+tls", "forward+unix", "file", "stdout", "stderr", "discard"}

// planDestination reads a URL. o gets what the URL asks of the records.
func planDestination(text string, o *Options) (*output.Plan, error) {
	u, err := urls.ParseAmong(text, schemes)
	if err != nil {
		return nil, err
	}
	p, err := output.Read(u, &output.Owner{
		Stdout: os.Stdout, Stderr: os.Stderr, Dial: o.Dial,
		Values:   credentials.Values{TLS: o.TLS, Login: o.Login},
		OmitZero: true, Prompt: true,
	})
	if err != nil {
		return nil, err
	}
	if p.Window > mover.MaxWindow {
		return nil, fmt.Errorf("%s: parameter \"window\": %d is not a number from 1 to %d, a logger's most", p.Place,
			p.Window, mover.MaxWindow)
	}
	if o.Source == NoSource { // lines that name the source ask the logger for it, too
		switch {
		case p.Flags&lines.Source != 0:
			o.Source = LongSource
		case p.Flags&lines.ShortSource != 0:
			o.Source = ShortSource
		}
	}
	return p, nil
}
