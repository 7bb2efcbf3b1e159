// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// ErrRestart is in the error of Apply for each difference that takes a restart.
var ErrRestart = errors.New("restart")

// Apply makes a running collector do what a configuration says, as far as that is possible: the
// files of all inputs' credentials are read now. They are also read when they change, so this is
// for those that want to know whether they are good: of those that are not, the old version stays
// in force and the error says why. Connections whose key, user or certificate is good no more are
// ended.
//
// Any other difference to the Config that it was opened with is refused, each by its name, and
// nothing is changed then. Zero values mean defaults in both. Log, Stdin, Stdout, InputKinds and
// OutputKinds are not compared: they are the program's, no settings.
//
// Apply may be called at any time.
func (c *Collector) Apply(config *Config) error {
	next, err := config.withDefaults()
	if err == nil {
		err = c.config.differs(&next)
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	inputs := c.inputs
	c.mu.Unlock()
	var errs []error
	for _, in := range inputs {
		l, ok := in.Input.(*listeners)
		if !ok {
			continue
		}
		if err := l.credentials.Reload(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", in.account.name, err))
		}
	}
	return errors.Join(errs...)
}

// differs returns what cannot change while the collector runs, with defaults filled in on both
// sides.
func (c *Config) differs(next *Config) error {
	errs := append(differentEnds("input", c.Inputs, next.Inputs), differentEnds("output", c.Outputs, next.Outputs)...)
	if !reflect.DeepEqual(c.Routes, next.Routes) && len(c.Routes)+len(next.Routes) > 0 {
		errs = append(errs, fmt.Errorf("routes: they changed; %w to change them", ErrRestart))
	}
	for _, f := range []struct {
		name     string
		old, new any
	}{
		{"dir", c.Dir, next.Dir},
		{"ack", c.Ack, next.Ack},
		{"journal bytes", c.JournalBytes, next.JournalBytes},
		{"letter bytes", c.LetterBytes, next.LetterBytes},
		{"drop letters", c.DropLetters, next.DropLetters},
		{"max chunk", c.MaxChunk, next.MaxChunk},
		{"max unpacked", c.MaxUnpacked, next.MaxUnpacked},
		{"max event", c.MaxEvent, next.MaxEvent},
		{"memory", c.Memory, next.Memory},
		{"refuse invalid", c.RefuseInvalid, next.RefuseInvalid},
		{"drain", c.Drain, next.Drain},
	} {
		if f.old != f.new {
			errs = append(errs, fmt.Errorf("%s: it changed from %v to %v; %w to change it", f.name, f.old, f.new, ErrRestart))
		}
	}
	return errors.Join(errs...)
}

// differentEnds compares ends by their names, or by their URLs where they have none. Their order
// does not matter.
func differentEnds(side string, old, next []End) (errs []error) {
	urls := map[string]string{}
	for i := range old {
		urls[old[i].key()] = old[i].URL
	}
	for i := range next {
		e := &next[i]
		switch url, there := urls[e.key()]; {
		case !there:
			errs = append(errs, fmt.Errorf("%s %q: it is new; %w to add it", side, e.label(), ErrRestart))
		case url != e.URL:
			errs = append(errs, fmt.Errorf("%s %q: its URL changed; %w to change it", side, e.label(), ErrRestart))
		}
		delete(urls, e.key())
	}
	for i := range old {
		if _, left := urls[old[i].key()]; left {
			errs = append(errs, fmt.Errorf("%s %q: it is gone; %w to remove it", side, old[i].label(), ErrRestart))
		}
	}
	return errs
}

// key is what makes an end the same: no name has a colon.
func (e *End) key() string {
	if e.Name != "" {
		return e.Name
	}
	return e.URL
}

// label is what an end is called: settings are left out.
func (e *End) label() string {
	label, _, _ := strings.Cut(e.key(), "?")
	return label
}
