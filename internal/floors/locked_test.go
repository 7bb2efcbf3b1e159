// SPDX-License-Identifier: Apache-2.0

package floors

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestLocked: no function lets go of a lock that its caller holds. What a function does with a
// field mu begins with taking it; only a method named lock or unlock, which is called in place of
// that of the field, may begin otherwise. (Tests may take what has such methods by a helper.)
func TestLocked(t *testing.T) {
	top := repository(t)
	files := token.NewFileSet()
	read, locks := 0, 0
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata") {
			return skipDir(err)
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		test := strings.HasSuffix(path, "_test.go")
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		read++
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if name := n.Name.Name; n.Body != nil && name != "lock" && name != "unlock" {
					locks += lockedFirst(t, files, name, n.Body, test)
				}
			case *ast.FuncLit:
				locks += lockedFirst(t, files, "a function literal", n.Body, test)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if read < 500 || locks < 500 {
		t.Errorf("only %d files and %d locks were looked at", read, locks)
	}
}

// lockedFirst fails the test for each mutex that a body unlocks before it locks it, and returns how
// many it has. A function literal in it is a body of its own.
func lockedFirst(t *testing.T, files *token.FileSet, name string, body *ast.BlockStmt, test bool) int {
	seen := map[string]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if _, literal := n.(*ast.FuncLit); literal || !ok {
			return !literal
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		mutex, does := types.ExprString(method.X), method.Sel.Name
		if (does == "lock" || does == "unlock") && len(call.Args) == 0 && !test {
			mutex += ".mu"
		}
		if !strings.HasSuffix(mutex, "mu") || seen[mutex] {
			return true
		}
		switch does {
		case "Unlock", "RUnlock", "unlock":
			t.Errorf("%v: %s unlocks %s, which it has not locked", files.Position(call.Pos()), name, mutex)
		case "Lock", "RLock", "TryLock", "lock":
		default:
			return true
		}
		seen[mutex] = true
		return true
	})
	return len(seen)
}
