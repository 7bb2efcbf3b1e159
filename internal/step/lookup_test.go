// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// tableFile writes a table, older than a moment.
func tableFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
}

const hosts = "\xef\xbb\xbfid,name,team\r\n7,web,\"shop, \"\"north\"\"\"\n1.5,half,\ntrue,yes,x\na@b.c,mail,é\n"

// TestLookup has events get fields of rows. Nothing else of them changes.
func TestLookup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hosts.csv")
	tableFile(t, path, hosts)
	for _, tt := range []struct {
		do   Lookup
		more string // fields that full gets at its end
	}{
		{Lookup{Field: "user.id"}, `,"name":"web","team":"shop, \"north\""`},
		{Lookup{Field: "user.mail", Columns: []string{"team", "id"}}, `,"team":"é","id":"a@b.c"`},
		{Lookup{Field: "ok", Into: "who.host", Columns: []string{"name"}}, `,"who":{"host":{"name":"yes"}}`},
		{Lookup{Field: "level", Column: "name"}, ""},
		{
			Lookup{Field: "level", Default: Values{{"team", "none"}, {"n2", int64(0)}}, Into: "of"},
			`,"of":{"team":"none","n2":0}`,
		},
		{Lookup{Field: "none", Default: Values{{"team", "none"}}}, `,"team":"none"`},
		{Lookup{Field: "user", Default: Values{{"team", "none"}}}, `,"team":"none"`},
		{Lookup{Field: "missing", Default: Values{{"team", "none"}}}, ""},
		{Lookup{Field: "user.id", Into: "n"}, `,"spillway_error":"lookup: n.name: what it leads through is no map"`},
	} {
		for _, head := range [][]byte{plainHead, metaHead, longHead} {
			tt.do.File = path
			var got Sifted
			s := sifterOf(t, "", Step{Lookup: &tt.do})
			if err := s.Sift(&got, "app.web", entryOf(t, head, full), 1, 0); err != nil {
				t.Fatal(err)
			}
			want := "app.web " + strings.TrimSuffix(full, "}") + tt.more + "}"
			if lines := strings.Join(linesOf(t, &got, head), "\n"); lines != want {
				t.Errorf("%+v:\n%s\nwant\n%s", tt.do, lines, want)
			}
		}
	}
}

// TestTableMistakes: what is wrong with a file is told with its place.
func TestTableMistakes(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.csv")
	for _, tt := range []struct {
		text string
		do   Lookup
		want string
	}{
		{"", Lookup{}, "it has no line with the names of its columns"},
		{"a,b\n1\n", Lookup{}, "line 2: wrong number of fields"},
		{"a,b\n1,\"2\n", Lookup{}, "line 2: extraneous or missing"},
		{"a,b\n1,2\n3,4\n1,5\n", Lookup{}, `line 4: "1" stands in column a twice`},
		{"a,a\n", Lookup{}, "two columns are called a"},
		{"a,,b\n", Lookup{}, "column 2 has no name"},
		{"a,b\n", Lookup{Column: "c"}, "it has no column c"},
		{"a,b\n", Lookup{Columns: []string{"b", "d"}}, "it has no column d"},
		{strings.Repeat("x", maxTable+1), Lookup{}, "it is larger than 32 MiB"},
	} {
		tableFile(t, path, tt.text)
		tt.do.File, tt.do.Field = path, "f"
		_, err := Read([]Route{{Match: "**", Do: []Step{{Lookup: &tt.do}}, To: []string{"x"}}}, []string{"x"}, 1<<20,
			nil)
		if err == nil || !strings.Contains(err.Error(), "routes[0].do[0].lookup.file: "+path+": "+tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
	for file, want := range map[string]string{
		filepath.Join(dir, "missing"): "no such file",
		dir:                           "it is no regular file",
	} {
		_, err := Read([]Route{{Match: "**", Do: []Step{{Lookup: &Lookup{File: file, Field: "f"}}}, To: []string{"x"}}},
			[]string{"x"}, 1<<20, nil)
		if err == nil || !strings.Contains(err.Error(), want) && want != "no such file" {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A rewritten file is written anew in place while it is read, so often.
type rewritten struct {
	*os.File
	t     *testing.T
	times int
}

func (f *rewritten) ReadAt(b []byte, off int64) (n int, err error) {
	if n, err = f.File.ReadAt(b[:min(len(b), 6)], off); f.times > 0 && off > 0 {
		f.times--
		at := time.Now().Add(-time.Duration(f.times+1) * time.Hour)
		if err := errors.Join(os.WriteFile(f.Name(), []byte("k,v\nnew,2\nmore,3\n"), 0o600),
			os.Chtimes(f.Name(), at, at)); err != nil {
			f.t.Fatal(err)
		}
	}
	return n, err
}

// TestTableRewritten: a file that is rewritten while it is read is read again, and what does not
// settle is no table.
func TestTableRewritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.csv")
	for _, times := range []int{0, 1, readTries - 1, 1000} {
		tableFile(t, path, "k,v\nold,1\n")
		in, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		data, info, err := readSettled(&rewritten{in, t, times})
		in.Close()
		switch want := map[bool]string{true: "k,v\nold,1\n", false: "k,v\nnew,2\nmore,3\n"}[times == 0]; {
		case times > readTries && (err == nil || info != nil):
			t.Errorf("%d times: %q, %v", times, data, err)
		case times <= readTries && (err != nil || string(data) != want || info.Size() != int64(len(want))):
			t.Errorf("%d times: %q, %v", times, data, err)
		}
	}
}

// TestTableChanges: another file comes into force with the next record, and changes what chunks are
// called; a broken one does not, and is told once; routes that follow share the table.
func TestTableChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.csv")
	list := []Route{{Match: "**", Do: []Step{{Lookup: &Lookup{File: path, Field: "f"}}}, To: []string{"x"}}}
	tableFile(t, path, "k,v\na,1\n")
	routes, err := Read(list, []string{"x"}, 1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := routes.For("x")
	finds := func(first int, want string) {
		t.Helper()
		var out Sifted
		if err := s.Sift(&out, "t", entryOf(t, plainHead, `{"f":"a"}`), 1, first); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(linesOf(t, &out, plainHead)); got != "[t "+want+"]" {
			t.Errorf("%s, want %s", got, want)
		}
	}
	refresh := func(want string) {
		t.Helper()
		if err := routes.Refresh(); fmt.Sprint(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	finds(0, `{"f":"a","v":"1"}`)
	mark := bytes.Clone(s.Mark())
	refresh("<nil>")
	tableFile(t, path, "k,v\na,22\n")
	finds(0, `{"f":"a","v":"1"}`)
	refresh("<nil>")
	finds(1, `{"f":"a","v":"1"}`) // in the middle of a record
	if !bytes.Equal(s.Mark(), mark) {
		t.Error("the mark has changed in the middle of a record")
	}
	finds(0, `{"f":"a","v":"22"}`)
	if bytes.Equal(s.Mark(), mark) {
		t.Error("other chunks are called the same")
	}
	tableFile(t, path, "k,v\na\n")
	broken := "lookup: " + path + ": line 2: wrong number of fields; what was read before stays in force"
	refresh(broken)
	refresh("<nil>")
	finds(0, `{"f":"a","v":"22"}`)
	if _, err := ReadAfter(routes, list, []string{"x"}, 1<<20, nil); err == nil {
		t.Error("new routes take a broken table")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := routes.Refresh(); err == nil {
		t.Error("a file that is gone is not told")
	}
	refresh("<nil>")
	tableFile(t, path, "k,v\na,1\n")
	next, err := ReadAfter(routes, list, []string{"x"}, 1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	finds(0, `{"f":"a","v":"1"}`)
	if !bytes.Equal(s.Mark(), mark) || !bytes.Equal(next.For("x").Mark(), mark) || len(next.tables) != 1 {
		t.Error("the same table makes another mark")
	}
	refresh("<nil>")
	other := []Route{{
		Match: "**", Do: []Step{{Lookup: &Lookup{File: path, Field: "f", Default: Values{{"a", 1}}}}},
		To: []string{"x"},
	}}
	if o, err := Read(other, []string{"x"}, 1<<20, nil); err != nil || o.For("x").Same(s) {
		t.Error(err)
	}
}

// FuzzTable reads any file, beside one that is slow.
func FuzzTable(f *testing.F) {
	f.Add([]byte(hosts), "id", "name\n")
	f.Add([]byte("a,b\n\n1,2\r\n\"x\ny\",\"\"\"\"\n"), "", "")
	f.Add([]byte("a\n1\n1\n"), "a", "")
	f.Fuzz(func(t *testing.T, data []byte, key, column string) {
		of := &tableOf{key: key}
		if column = strings.TrimSuffix(column, "\n"); column != "" && !strings.Contains(column, "\n") {
			of.columns = column + "\n"
		} else {
			column = ""
		}
		r, err := of.read(data)
		all, bad := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))).ReadAll()
		if bad != nil || len(all) == 0 {
			if err == nil {
				t.Fatalf("it is taken: %v", bad)
			}
			return
		}
		head, k := all[0], 0
		wrong := slices.Contains(head, "") || len(slices.Compact(slices.Sorted(slices.Values(head)))) != len(head)
		if key != "" {
			k = slices.Index(head, key)
		}
		wrong = wrong || k < 0 || column != "" && !slices.Contains(head, column)
		want := map[string]string{}
		for _, line := range all[1:] {
			if wrong {
				break
			}
			if _, is := want[line[k]]; is {
				wrong = true
			}
			text := ""
			for i, v := range line {
				if i != k && column == "" || head[i] == column {
					text += fmt.Sprintf("%q %q ", head[i], v)
				}
			}
			want[line[k]] = text
		}
		if wrong != (err != nil) {
			t.Fatalf("%q: %v", data, err)
		}
		if wrong {
			return
		}
		if len(r.known) != len(want) {
			t.Fatalf("%d rows, want %d", len(r.known), len(want))
		}
		for text, want := range want {
			fields, ok := r.find([]byte(text))
			got := ""
			for len(fields) > 0 {
				a, b := pair(fields)
				fields = fields[len(a)+len(b):]
				name, _ := textOf(a)
				value, _ := textOf(b)
				got += fmt.Sprintf("%q %q ", name, value)
			}
			if !ok || got != want {
				t.Errorf("%q finds %s, want %s", text, got, want)
			}
		}
	})
}
