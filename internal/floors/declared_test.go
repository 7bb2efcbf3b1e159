// SPDX-License-Identifier: Apache-2.0

package floors

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// reading reads packages as they are written, whatever their build constraints: what it reads is
// the same on each system.
type reading struct {
	t        *testing.T
	top      string
	packages map[string]*source // by folder
}

// A source is a package as it is written.
type source struct {
	dir     string
	name    string
	types   map[string][]declared // on different systems they may differ
	values  map[string][]declared
	funcs   []declared           // functions and methods
	aliases map[[2]string]string // folder and name of another package's type: its alias here
}

// declared is a name in its package, of which all is said on the page of another, perhaps.
type declared struct {
	page   *source
	at     *source
	file   *ast.File
	system string // its file's build constraint
	name   string
	kind   token.Token

	typ   *ast.TypeSpec // of a type
	fn    *ast.FuncDecl // of a function or method
	of    ast.Expr      // the type of a constant or variable, if it is written
	value ast.Expr      // of a constant or variable, if it is written
}

// in reads the package of a folder, once.
func (r *reading) in(dir string) *source {
	if p := r.packages[dir]; p != nil {
		return p
	}
	p := &source{
		dir: dir, types: map[string][]declared{}, values: map[string][]declared{}, aliases: map[[2]string]string{},
	}
	r.packages[dir] = p
	names, err := filepath.Glob(filepath.Join(r.top, filepath.FromSlash(dir), "*.go"))
	if err != nil || len(names) == 0 {
		r.t.Fatalf("%s: %d files, %v", dir, len(names), err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			r.t.Fatal(err)
		}
		p.name = f.Name.Name
		p.add(f, systemOf(name, f))
	}
	for name, all := range p.types {
		if dir, of := all[0].aliasOf(); dir != "" && ast.IsExported(name) {
			p.aliases[[2]string{dir, of}] = name
		}
	}
	return p
}

// systemOf is what a file's first lines, or its name, ask of the system.
func systemOf(name string, f *ast.File) string {
	for _, c := range f.Comments {
		if c.Pos() < f.Package && constraint.IsGoBuild(c.List[0].Text) {
			return strings.TrimPrefix(c.List[0].Text, "//go:build ")
		}
	}
	for _, system := range []string{"linux", "darwin", "windows"} {
		if strings.HasSuffix(name, "_"+system+".go") {
			return system
		}
	}
	return ""
}

// add notes what a file declares.
func (p *source) add(f *ast.File, system string) {
	for _, d := range f.Decls {
		here := declared{page: p, at: p, file: f, system: system}
		switch d := d.(type) {
		case *ast.FuncDecl:
			here.name, here.fn = d.Name.Name, d
			p.funcs = append(p.funcs, here)
		case *ast.GenDecl:
			here.kind = d.Tok
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					here.name, here.typ = spec.Name.Name, spec
					p.types[here.name] = append(p.types[here.name], here)
				case *ast.ValueSpec:
					if spec.Type != nil || spec.Values != nil { // else a constant counts on from the one above
						here.of = spec.Type
					}
					for i, name := range spec.Names {
						here.name, here.value = name.Name, nil
						if i < len(spec.Values) {
							here.value = spec.Values[i]
						}
						p.values[name.Name] = append(p.values[name.Name], here)
					}
				}
			}
		}
	}
}

// aliasOf is the folder of another package of this module, and the name there, that a type is an
// alias of.
func (d declared) aliasOf() (dir, name string) {
	if sel, ok := d.typ.Type.(*ast.SelectorExpr); ok && d.typ.Assign.IsValid() {
		return d.folder(sel.X.(*ast.Ident).Name), sel.Sel.Name
	}
	return "", ""
}

// folder is that of the package which the file calls by this name, empty if it is not of this
// module.
func (d declared) folder(called string) string {
	for _, spec := range d.file.Imports {
		to, err := strconv.Unquote(spec.Path.Value)
		if err != nil || !within(to, module) {
			continue
		}
		name := path.Base(to)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == called {
			return path.Clean(strings.TrimPrefix(strings.TrimPrefix(to, module), "/"))
		}
	}
	return ""
}

// on is the name as it is said on another package's page.
func (d declared) on(page *source) declared {
	d.page = page
	return d
}
