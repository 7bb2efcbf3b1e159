// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPatternPath(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	id := identity{host: "web/1", pid: "4711"}
	const sec = 1795226584 // 2026-11-21T02:03:04Z
	for _, tt := range []struct {
		pattern, tag string
		sec          int64
		want         string
	}{
		{"/var/log/x.jsonl", "a", sec, "/var/log/x.jsonl"},
		{"/var/log/{tag}.{date}.jsonl", "app.web", sec, "/var/log/app.web.2026-11-21.jsonl"},
		{"/{tag}/{date}/{hour}.{host}.{pid}", "a", sec, "/a/2026-11-21/02.web%2F1.4711"},
		{"/{hour}{hour}", "a", sec, "/0202"},
		{"/{tag}{tag}", "a/", sec, "/a%2Fa%2F"},
		{"logs/{tag}", "..", sec, filepath.Join(here, "logs", "%2E%2E")},
		{"/a/../b//c/{tag}", "", sec, "/b/c/%"},
		{"/{tag}/x", ".", sec, "/%2E/x"},
		{"/{date}", "", -1, "/1969-12-31"},
		{"/{hour}", "", -1, "/23"},
		{"/{date}-{hour}", "", -3601, "/1969-12-31-22"},
		{"/{date}", "", math.MaxInt64, "/9999-12-31"},
		{"/{date}", "", math.MinInt64, "/0000-01-01"},
		{"/{date}.{hour}", "", maxSec, "/9999-12-31.23"},
		{"/{tag}.jsonl", strings.Repeat("x", 300), sec, ""}, // as long as may be, with a hash
	} {
		p, err := parsePattern(filepath.FromSlash(tt.pattern))
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		got := filepath.ToSlash(strings.TrimPrefix(p.path(p.route(tt.tag, tt.sec), id), filepath.VolumeName(here)))
		if tt.want == "" {
			if len(got) != 1+maxName || !strings.HasSuffix(got, ".jsonl") {
				t.Errorf("%s: got %s (%d)", tt.pattern, got, len(got))
			}
			continue
		}
		if want := filepath.ToSlash(strings.TrimPrefix(tt.want, filepath.VolumeName(here))); got != want {
			t.Errorf("%s: got %s, want %s", tt.pattern, got, want)
		}
	}
}

func TestPatternErrors(t *testing.T) {
	for _, tt := range []struct{ pattern, want string }{
		{"", "empty"},
		{"/", "names a directory"},
		{"/var/log/", "names a directory"},
		{".", "names a directory"},
		{"..", "names a directory"},
		{"/x/{tags}", "no placeholder {tags}; there are {tag}, {date}, {hour}, {host}, {pid}"},
		{"/x/{}", "no placeholder {}"},
		{"/x/{tag", "an opening brace without a closing one"},
		{"/x/{ta/g}", "an opening brace without a closing one"},
		{"/x/tag}", "a closing brace without an opening one"},
		{"/x\x00", "NUL"},
		{"/" + strings.Repeat("x", 256), "too long"},
		{"/" + strings.Repeat("x", 220) + "{tag}", "too long"},
		{"/{tag}{tag}{tag}{tag}{tag}{tag}", "too long"},
	} {
		_, err := Open(filepath.FromSlash(tt.pattern), nil, nil)
		if !errors.Is(err, ErrPattern) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v; want %s", tt.pattern, err, tt.want)
		}
		if before := Usable(filepath.FromSlash(tt.pattern), nil); before == nil || before.Error() != err.Error() {
			t.Errorf("%q: Usable says %v, Open says %v", tt.pattern, before, err)
		}
	}
}

// TestRoutes wants one route for one path, and another for another.
func TestRoutes(t *testing.T) {
	for _, pattern := range []string{
		"/x", "/{tag}", "/{date}", "/{hour}", "/{tag}{date}", "/{date}{hour}{tag}",
		"/{tag}/{hour}",
	} {
		p, err := parsePattern(pattern)
		if err != nil {
			t.Fatal(err)
		}
		paths := map[route]string{}
		routes := map[string]route{}
		for _, tag := range []string{"a", "b", "", "a2026-11-21"} {
			for _, sec := range []int64{
				math.MinInt64, -86401, -86400, -1, 0, 1, 3599, 3600, 86399, 86400, 1e9,
				1795226584, maxSec, math.MaxInt64,
			} {
				r := p.route(tag, sec)
				path := p.path(r, identity{})
				if before, ok := paths[r]; ok && before != path {
					t.Errorf("%s: %v is %s and %s", pattern, r, before, path)
				}
				if before, ok := routes[path]; ok && before != r {
					t.Errorf("%s: %s is of %v and %v", pattern, path, before, r)
				}
				paths[r], routes[path] = path, r
			}
		}
	}
}

// FuzzPath wants every tag in its place: as many names in the path as in the pattern, the literal
// ones untouched.
func FuzzPath(f *testing.F) {
	f.Add("../../etc/passwd", int64(5))
	f.Add("a/\x00b", int64(-5))
	f.Add("..", int64(math.MaxInt64))
	p, err := parsePattern("/base/{tag}/{date}.{tag}.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, tag string, sec int64) {
		path := p.path(p.route(tag, sec), identity{})
		if filepath.Clean(path) != path {
			t.Fatalf("%q: %q is not clean", tag, path)
		}
		names := strings.Split(strings.TrimPrefix(path, filepath.VolumeName(path)), string(filepath.Separator))
		if len(names) != 4 || names[1] != "base" || !strings.HasSuffix(names[3], ".jsonl") {
			t.Fatalf("%q: %q", tag, path)
		}
		for _, name := range names[1:] {
			if name == "" || len(name) > maxName {
				t.Fatalf("%q: %q", tag, path)
			}
		}
	})
}
