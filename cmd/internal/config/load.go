// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/internal/urls"
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

// Load reads a file and those that it includes. The error is a Mistakes with all of them; the File
// has what could be understood.
func Load(path string, o *Options) (*File, error) {
	r := &reader{Options: o, file: &File{said: map[string]*node{}}, fields: fieldsOf(o.Settings)}
	r.load(path, true)
	r.misread = len(r.mistakes)
	if o.Check != nil {
		r.explain(o.Check(r.file))
	}
	if len(r.mistakes) > 0 {
		return r.file, r.mistakes.sorted(r.files)
	}
	return r.file, nil
}

func (r *reader) wrong(n *node, format string, args ...any) {
	r.mistakes = append(r.mistakes, n.mistake(format, args...))
}

// hide adds a value to those that are not shown.
func hide(list *[]string, value string) {
	if value == "" || slices.Contains(*list, value) {
		return
	}
	*list = append(*list, value)
	slices.SortFunc(*list, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
}

// load reads a file; first says that it is no included one.
func (r *reader) load(path string, first bool) {
	s := r.read(path, first)
	if s == nil {
		return
	}
	root, mistakes := parse(s)
	r.mistakes = append(r.mistakes, mistakes...)
	if root == nil {
		return
	}
	if root.kind != mapping {
		if len(mistakes) == 0 {
			r.wrong(root, "this is %v; a configuration is a map of keys, such as data: /var/lib/spillway", root.kind)
		}
		return
	}
	r.maskUnknown(root)
	for _, p := range root.pairs {
		switch key := p.key.value; key {
		case includeKey:
			if !first {
				r.wrong(p.key, "an included file includes no other")
			}
		case inputsKey:
			r.ends(p, "input", &r.file.Inputs)
		case outputsKey:
			r.ends(p, "output", &r.file.Outputs)
		case routesKey:
			r.part(p, &r.file.Routes)
		case testsKey:
			r.part(p, &r.file.Tests)
		default:
			r.setting(p)
		}
	}
	if n := root.get(includeKey); n != nil && first {
		r.include(n)
	}
}

// part stores the value of a key that is a list.
func (r *reader) part(p pair, to any) {
	if r.say(p.key.value, p) {
		r.into(p.value, p.key.value, reflect.ValueOf(to).Elem(), nil)
	}
}

// include reads the files of one or more patterns, in the order of their names.
func (r *reader) include(n *node) {
	patterns := []*node{n}
	if n.kind == list {
		patterns = n.items
	}
	for _, n := range patterns {
		if n.kind != text {
			r.wrong(n, "include is a pattern of files such as conf.d/*.yaml, or a list of them, not %v", n.kind)
			continue
		}
		pattern, ok := r.expand(n)
		if !ok {
			continue
		}
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(n.file.dir, pattern)
		}
		paths, err := filepath.Glob(pattern)
		switch {
		case err != nil:
			r.wrong(n, "include: this is no pattern of files")
		case len(paths) == 0 && !strings.ContainsAny(pattern, "*?["):
			r.wrong(n, "include: there is no such file")
		case len(r.files)+len(paths) > maxFiles:
			r.wrong(n, "include: these are more than %d files", maxFiles)
		default:
			for _, path := range paths {
				if slices.ContainsFunc(r.files, func(s *configFile) bool { return s.name == path }) {
					r.wrong(n, "include: %s is read twice", path)
					continue
				}
				r.load(path, false)
			}
		}
	}
}

// maskUnknown keeps the values of keys from being shown that are not known: they may be secrets
// that were given the wrong name. It also does so for what an inner map has for secrets.
func (r *reader) maskUnknown(root *node) {
	for _, p := range root.pairs {
		switch key := p.key.value; {
		case key == inputsKey || key == outputsKey || r.Ends[key] != nil:
			table := r.Ends[key]
			r.maskEnds(p.value, table)
			for _, end := range p.value.pairs {
				r.maskEnds(end.value, table)
			}
		case key == routesKey:
			maskParts(p.value, reflect.TypeFor[[]collector.Route]())
		case key == testsKey:
			maskParts(p.value, reflect.TypeFor[[]Test]())
		case key != includeKey && r.field(key) == nil:
			maskAll(p.value)
		}
	}
}

// maskEnds masks the values of a map that none of the schemes takes as a parameter.
func (r *reader) maskEnds(n *node, table Ends) {
	for _, p := range n.pairs {
		if p.value.kind == mapping || p.key.value == urlKey {
			continue
		}
		known := p.value.kind == text && strings.Contains(p.value.value, ":") // the URL of a name
		for _, list := range table {
			known = known || slices.ContainsFunc(list,
				func(q collector.Parameter) bool { return q.Name == p.key.value })
		}
		if !known || urls.Secret(p.key.value) {
			maskAll(p.value)
		}
	}
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

// say notes that the file says something for a key; false if an earlier file did.
func (r *reader) say(key string, p pair) bool {
	if before := r.file.said[key]; before != nil {
		r.wrong(p.key, "%s is given in %s:%d, too", p.key.value, before.file.name, before.line)
		return false
	}
	r.file.said[key] = p.value
	return true
}
