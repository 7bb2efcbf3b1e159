// SPDX-License-Identifier: Apache-2.0

package floors

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/api.md anew")

// shown are the packages of docs/api.md, in its order.
var shown = []string{root, "forward", "collector", "journal", "ring", "msgpack"}

// apiHead opens docs/api.md.
const apiHead = `# What programs may use

Each exported name of the six packages of the root module, one line each, in the order of the names;
a type's fields and methods follow it. ` + "`go doc`" + ` says what each is for, and its errors and units.
A type of a package below ` + "`internal`" + ` has that package's name before its own: programs meet it, and
cannot write it. Behind a name that some systems alone have stand their names.

A change of this page is a change of what programs may use. A test holds it to the code;
` + "`go test ./internal/floors -run TestAPI -update`" + ` writes it anew.
`

// TestAPI: docs/api.md has each exported name with its signature, and no other.
func TestAPI(t *testing.T) {
	top := repository(t)
	r := &reading{t: t, top: top, packages: map[string]*source{}}
	page := apiHead
	for _, dir := range shown {
		page += r.section(dir)
	}
	file := filepath.Join(top, "docs", "api.md")
	if *update {
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	was, is := strings.Split(string(b), "\n"), strings.Split(page, "\n")
	for _, line := range was {
		if !slices.Contains(is, line) {
			t.Errorf("the code has this no more: %s", line)
		}
	}
	for _, line := range is {
		if !slices.Contains(was, line) {
			t.Errorf("the page lacks: %s", line)
		}
	}
	if string(b) != page {
		t.Error("docs/api.md is not what the code says; -update writes it")
	}
}

// A line is one of a page.
type line struct {
	text    string
	same    string   // what it says but for the names of parameters
	systems []string // the build constraints of the files that say it
}

// lines are those of a page, by name.
type lines map[string][]line

// add adds a line, unless another file has said the same.
func (l lines) add(name, text, same, system string) {
	for i, have := range l[name] {
		if have.same == same {
			l[name][i].systems = append(have.systems, system)
			if len(text) > len(have.text) { // its parameters have names
				l[name][i].text = text
			}
			return
		}
	}
	l[name] = append(l[name], line{text: text, same: same, systems: []string{system}})
}

// section is the part of the page for a package.
func (r *reading) section(dir string) string {
	p := r.in(dir)
	all := lines{}
	for name, types := range p.types {
		for _, d := range types {
			if ast.IsExported(name) {
				r.addType(all, name, d)
			}
		}
	}
	for name, values := range p.values {
		for _, d := range values {
			if ast.IsExported(name) {
				text := fmt.Sprintf("%-6s %s%s", d.kind, name, r.value(d))
				all.add(name, text, text, d.system)
			}
		}
	}
	for _, d := range p.funcs {
		if d.fn.Recv == nil && ast.IsExported(d.name) {
			text := "func   " + d.name
			all.add(d.name, text+r.signature(d, d.fn.Type), text+r.unnamed(d, d.fn.Type), d.system)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n\n```\n", p.name)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, l := range all[name] {
			b.WriteString(l.text)
			if len(l.systems) == 1 && l.systems[0] != "" {
				b.WriteString(" // " + l.systems[0])
			}
			b.WriteByte('\n')
		}
	}
	b.WriteString("```\n")
	return b.String()
}

// addType adds a type that a page shows under a name, with its members.
func (r *reading) addType(all lines, name string, d declared) {
	if dir, of := d.aliasOf(); dir != "" {
		for _, other := range r.in(dir).types[of] {
			r.addType(all, name, other.on(d.page))
		}
		return
	}
	kind := ""
	switch typ := d.typ.Type.(type) {
	case *ast.StructType:
		kind = "struct"
	case *ast.InterfaceType:
		kind = "interface"
	default:
		kind = r.text(d, typ)
	}
	text := fmt.Sprintf("type   %s %s", name, kind)
	all.add(name, text, text, d.system)
	r.addMembers(all, name, d)
}

// addMembers adds the fields and methods of a type under a name: its own, or that of the type in
// which it is embedded.
func (r *reading) addMembers(all lines, name string, d declared) {
	method := func(star, method string, m declared, typ *ast.FuncType) {
		text := fmt.Sprintf("method (%s%s) %s", star, name, method)
		all.add(name+"."+method, text+r.signature(m, typ), text+r.unnamed(m, typ), m.system)
	}
	switch typ := d.typ.Type.(type) {
	case *ast.StructType:
		for _, f := range typ.Fields.List {
			for _, n := range f.Names {
				if ast.IsExported(n.Name) {
					text := fmt.Sprintf("field  %s.%s %s", name, n.Name, r.text(d, f.Type))
					all.add(name+"."+n.Name, text, text, d.system)
				}
			}
			if f.Names == nil {
				r.embed(all, name, d, f.Type)
			}
		}
	case *ast.InterfaceType:
		for _, f := range typ.Methods.List {
			for _, n := range f.Names {
				method("", n.Name, d, f.Type.(*ast.FuncType))
			}
			if f.Names == nil {
				r.embed(all, name, d, f.Type)
			}
		}
	}
	for _, m := range d.at.funcs {
		if m.fn.Recv == nil || !ast.IsExported(m.name) {
			continue
		}
		recv, star := m.fn.Recv.List[0].Type, ""
		if s, ok := recv.(*ast.StarExpr); ok {
			recv, star = s.X, "*"
		}
		if of, ok := recv.(*ast.Ident); ok && of.Name == d.name {
			method(star, m.name, m.on(d.page), m.fn.Type)
		}
	}
}

// embed adds what a type has of an embedded one: its name, if programs can write that, else its
// members.
func (r *reading) embed(all lines, name string, d declared, typ ast.Expr) {
	text := r.text(d, typ)
	if s, ok := typ.(*ast.StarExpr); ok {
		typ = s.X
	}
	dir, of := d.at.dir, ""
	switch typ := typ.(type) {
	case *ast.Ident:
		of = typ.Name
	case *ast.SelectorExpr:
		dir, of = d.folder(typ.X.(*ast.Ident).Name), typ.Sel.Name
	}
	_, _, far := strings.Cut(text, ".")
	if ast.IsExported(of) && (!far || dir == "" || slices.Contains(shown, dir)) {
		all.add(name+"."+text, fmt.Sprintf("embeds %s: %s", name, text), text, d.system)
		return
	}
	for _, inner := range r.in(dir).types[of] {
		r.addMembers(all, name, inner.on(d.page))
	}
}

// value is what stands behind the name of a constant or variable.
func (r *reading) value(d declared) string {
	if sel, ok := d.value.(*ast.SelectorExpr); ok {
		if dir := d.folder(sel.X.(*ast.Ident).Name); dir != "" {
			return r.value(r.in(dir).values[sel.Sel.Name][0].on(d.page))
		}
	}
	typ, text := "", ""
	if d.of != nil {
		typ = " " + r.text(d, d.of)
	}
	if d.value != nil {
		text = r.text(d, d.value)
	}
	if d.kind == token.CONST && text != "" && !strings.Contains(text, "iota") {
		return typ + " = " + text
	}
	if call, ok := d.value.(*ast.CallExpr); ok && typ == "" {
		called := r.text(d, call.Fun)
		if called == "errors.New" || called == "fmt.Errorf" {
			return " error"
		}
		for _, f := range d.at.funcs {
			if f.name == called {
				return " " + r.text(f.on(d.page), f.fn.Type.Results.List[0].Type)
			}
		}
	}
	if typ == "" {
		r.t.Errorf("%s.%s: what type has it?", d.at.name, d.name)
	}
	return typ
}

// signature is a function's, without its name.
func (r *reading) signature(d declared, typ *ast.FuncType) string {
	return strings.TrimPrefix(r.text(d, typ), "func")
}

// unnamed is a function's signature without the names of its parameters.
func (r *reading) unnamed(d declared, typ *ast.FuncType) string {
	var b strings.Builder
	for _, list := range []*ast.FieldList{typ.Params, typ.Results} {
		if list != nil {
			for _, f := range list.List {
				b.WriteString(strings.Repeat(" "+r.text(d, f.Type), max(1, len(f.Names))))
			}
		}
		b.WriteByte(';')
	}
	return b.String()
}

// named is a name that may be a type's, with its package or without.
var named = regexp.MustCompile(`(?:\b([a-z]\w*)\.)?\b([A-Z]\w*)\b`)

// text is a type or value as the page's package would write it, on one line.
func (r *reading) text(d declared, e ast.Expr) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, token.NewFileSet(), e); err != nil {
		r.t.Fatal(err)
	}
	return named.ReplaceAllStringFunc(strings.Join(strings.Fields(b.String()), " "), func(s string) string {
		m := named.FindStringSubmatch(s)
		dir, of := d.at.dir, d.at.name
		if m[1] != "" {
			dir, of = d.folder(m[1]), m[1]
		} else if d.at.types[m[2]] == nil {
			return s
		}
		if alias := d.page.aliases[[2]string{dir, m[2]}]; alias != "" {
			return alias
		}
		if dir == d.page.dir {
			return m[2]
		}
		return of + "." + m[2]
	})
}
