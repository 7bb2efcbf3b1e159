// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/spillwaylog/spillway/collector"
)

// Ends are the schemes of an end, each with the parameters that its URL takes.
type Ends map[string][]collector.Parameter

// Options say what a file may say.
type Options struct {
	// Settings points to a struct of flags, as kong has them. Each field is a key: the flag's name
	// with underscores. A field with the tag config:"-" is none, and one with config:"end" may be
	// a URL or its parts, with the parameters of Ends. What the file says is stored in the fields.
	Settings any
	// Ends are those of inputs, outputs, and of fields, by their keys.
	Ends map[string]Ends
	// Check looks for mistakes in the whole: a *collector.EndError and a *KeyError are put to their
	// place in the file. nil: there is nothing more to look for.
	Check func(*File) error
}

// A File is what was read.
type File struct {
	Inputs, Outputs []collector.End
	Routes          []collector.Route
	Tests           []Test

	said  map[string]*node // by key, and by inputs.NAME and outputs.NAME
	given []string         // by variables and files, the longest first
	files []string         // of these, by files
}

// Says reports whether the file says something for a key.
func (f *File) Says(key string) bool { return f != nil && f.said[key] != nil }

// A KeyError is what is wrong with the value of a key.
type KeyError struct {
	Key string
	Err error
}

// Error names the flag, for a value that came by it.
func (e *KeyError) Error() string {
	return "--" + strings.ReplaceAll(e.Key, "_", "-") + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *KeyError) Unwrap() error { return e.Err }

// A reader reads the files of one configuration.
type reader struct {
	*Options
	file     *File
	fields   []field
	files    []*configFile
	bytes    int
	mistakes Mistakes
	misread  int // how many of them were there before Check
}

const (
	includeKey = "include"
	inputsKey  = "inputs"
	outputsKey = "outputs"
	routesKey  = "routes"
	testsKey   = "tests"
)

func (r *reader) wrong(n *node, format string, args ...any) {
	r.mistakes = append(r.mistakes, n.mistake(format, args...))
}

// say notes that the file says something for a key; false if an earlier file did.
func (r *reader) say(key string, p pair) bool {
	if before := r.file.said[key]; before != nil {
		r.wrong(p.key, "%s is given in %s:%d, too", p.key.value, before.file.name, before.line)
		return false
	}
	r.file.said[key] = p.value
	return true
}

// hide adds a value to those that are not shown.
func hide(list *[]string, value string) {
	if value == "" || slices.Contains(*list, value) {
		return
	}
	*list = append(*list, value)
	slices.SortFunc(*list, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
}

// maskAll keeps a value and all within it from being shown.
func maskAll(n *node) {
	if n.kind != null && n.kind <= boolean {
		n.file.masks[n.line] = append(n.file.masks[n.line], mask{n.column, n.value})
	}
	for _, item := range n.items {
		maskAll(item)
	}
	for _, p := range n.pairs {
		maskAll(p.value)
	}
}

// A Test is some events, and what outputs get of them by the routes.
type Test struct {
	Name   string           `help:"What is tested." required:"true"`
	Input  []TestEvent      `help:"An event that comes in, or a list of them, in their order." required:"true"`
	Expect collector.Values `help:"By output: how many events it gets, what the one that it gets has become, as far as it is said, or a list of these. Other outputs are not looked at." required:"true"`
}

// A TestEvent is an event as it is written in a test.
type TestEvent struct {
	Tag    string           `help:"Its tag."`
	Time   string           `help:"Its time, such as 2026-11-25T12:00:00Z."`
	Record collector.Values `help:"Its fields."`
}

// A field is one of the struct of settings.
type field struct {
	key     string
	end     bool // a URL, or its parts
	about   string
	choices []string
	value   reflect.Value
}
