// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/ring"
)

// under is what each file below a directory holds.
func under(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			var b []byte
			b, err = os.ReadFile(path)
			all[path] = string(b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestMergeDirs: events of a journal and of rings, in use and left, are in one order with lines of
// a file, and nothing there changes.
func TestMergeDirs(t *testing.T) {
	top := t.TempDir()
	rings := filepath.Join(top, "rings")
	at := func(n int) time.Time { return time.Date(2026, 11, 21, 2, 3, n, 0, time.UTC) }
	var path string
	for i := range 2 {
		r, err := ring.Open(&ring.Options{Dir: rings, Name: "app", Size: 256 << 10})
		needs.Have(t, !errors.Is(err, ring.ErrUnsupported), "%v", err)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var h ring.Hint
		for n := range 3 {
			if _, err := r.Append(&h, at(10*i+3*n).UnixNano(), ringPayload("ring", fmt.Sprint(i, n))); err != nil {
				t.Fatal(err)
			}
		}
		if path = r.Path(); i == 0 {
			if err := r.Leave(); err != nil {
				t.Fatal(err)
			}
		}
	}
	url, data, stop := serve(t)
	var in strings.Builder
	for _, n := range []int{14, 2, 5, 11} { // as they came, not in order
		fmt.Fprintf(&in, `{"time":%q,"n":%d}`+"\n", at(n).Format(time.RFC3339), n)
	}
	if got := command(t, in.String(), "send", "--to", url, "--tag", "journal", "--time-key", "time"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	stop()
	file := filepath.Join(top, "app.jsonl")
	if err := os.WriteFile(file, []byte(`{"time":"2026-11-21T02:03:04Z","tag":"file"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := under(t, top)
	journal := under(t, data)

	var all []string
	all = append(all, `{"time":"2026-11-21T02:03:04Z","tag":"file"}`)
	for i := range 2 {
		for n := range 3 {
			all = append(all, fmt.Sprintf(`{"time":"%s.000000000Z","tag":"ring","message":"%d %d"}`,
				at(10*i+3*n).Format("2006-01-02T15:04:05"), i, n))
		}
	}
	for _, n := range []int{14, 2, 5, 11} {
		all = append(all, fmt.Sprintf(`{"time":"%s.000000000Z","tag":"journal","n":%d}`,
			at(n).Format("2006-01-02T15:04:05"), n))
	}
	slices.SortFunc(all, func(a, b string) int { return strings.Compare(a[:28], b[:28]) })
	for _, c := range []struct {
		args []string
		want func(line string) bool
	}{
		{[]string{file, rings, data}, func(string) bool { return true }},
		{
			[]string{file, rings, filepath.Join(data, "journal"), "--tag", "journal"},
			func(l string) bool { return strings.Contains(l, `"journal"`) },
		},
		{
			[]string{path, "--since", at(12).Format(time.RFC3339)},
			func(l string) bool { return strings.Contains(l, `"message":"1 `) && !strings.Contains(l, `"1 0"`) },
		},
	} {
		want := ""
		for _, l := range all {
			if c.want(l) {
				want += l + "\n"
			}
		}
		if got := command(t, "", append([]string{"merge"}, c.args...)...); got.code != 0 || got.out != want ||
			got.err != "" {
			t.Errorf("%q: %+v; want %s", c.args, got, want)
		}
	}
	for what, is := range map[string][2]map[string]string{
		"rings":       {before, under(t, top)},
		"the journal": {journal, under(t, data)},
	} {
		if fmt.Sprint(is[0]) != fmt.Sprint(is[1]) {
			t.Errorf("%s changed", what)
		}
	}
	bad := filepath.Join(rings, "app.1.0123456789abcdef") // before the others
	if err := os.MkdirAll(bad, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"owner", "ring"} {
		if err := os.WriteFile(filepath.Join(bad, name), []byte("nonsense"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := command(t, "", "merge", rings)
	if n := strings.Count(got.out, "\n"); got.code != 1 || n != 6 || !strings.Contains(got.err, "0123456789abcdef") {
		t.Errorf("with one that is broken: %+v", got)
	}
	none := t.TempDir()
	if got := command(t, "", "merge", none); got.code != 1 || got.out != "" ||
		!strings.Contains(got.err, fmt.Sprintf("spillway: %q: ", none)) {
		t.Errorf("a directory of nothing: %+v", got)
	}
}

func TestNanosOf(t *testing.T) {
	for _, c := range []struct {
		e    forward.Entry
		want int64
	}{
		{forward.Entry{Sec: 1, Nsec: 2}, 1_000_000_002},
		{forward.Entry{Sec: -1, Nsec: 2}, -999_999_998},
		{forward.Entry{Sec: math.MaxInt64, Nsec: 2}, math.MaxInt64},
		{forward.Entry{Sec: math.MinInt64}, math.MinInt64},
	} {
		if got := nanosOf(c.e); got != c.want {
			t.Errorf("%+v: %d, want %d", c.e, got, c.want)
		}
	}
}
