// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"errors"
	"fmt"
)

// Omit as the name of an envelope key leaves the key out.
const Omit = "-"

// Options says how the envelope is written. The zero value works.
type Options struct {
	Time     string // key of the time; default "time"
	Tag      string // key of the tag; default "tag"
	Metadata string // key of the metadata; default "metadata"

	TimeFormat string // rfc3339, unix, unix_ms, unix_us, unix_ns or a layout of package time; default rfc3339

	OmitZero bool // the time is left out where it is 0, which for a logger means none
}

// FromParams returns the options that parameters of a URL ask for. param returns the value of one,
// or otherwise. The error is that of NewEncoder.
func FromParams(param func(name, otherwise string) string) (Options, error) {
	o := Options{Time: param("time_key", ""), TimeFormat: param("time_format", ""), Tag: param("tag_key", "")}
	_, err := NewEncoder(&o)
	return o, err
}

// ErrKey says that an envelope key cannot be used.
var ErrKey = errors.New("unusable envelope key")

func (o Options) resolved() Options {
	for _, k := range []struct {
		name      *string
		otherwise string
	}{{&o.Time, "time"}, {&o.Tag, "tag"}, {&o.Metadata, "metadata"}} {
		switch *k.name {
		case "":
			*k.name = k.otherwise
		case Omit:
			*k.name = ""
		}
	}
	return o
}

// check returns why resolved options cannot be used.
func (o Options) check() error {
	seen := map[string]bool{}
	for _, name := range []string{o.Time, o.Tag, o.Metadata} {
		if name == "" {
			continue
		}
		if seen[name] {
			return fmt.Errorf("%w: %q stands for two things", ErrKey, name)
		}
		seen[name] = true
		for i := range len(name) {
			if c := name[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
				return fmt.Errorf("%w: %q: it may hold printable ASCII without quotes and backslashes", ErrKey, name)
			}
		}
	}
	return nil
}
