// SPDX-License-Identifier: Apache-2.0

package config

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/internal/urls"
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
