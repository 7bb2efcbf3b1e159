// SPDX-License-Identifier: Apache-2.0

//go:build unix

package files

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// pattern1 parses one that is right.
func pattern1(t testing.TB, path string) *pattern {
	t.Helper()
	p, err := parsePattern(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFamilyOf(t *testing.T) {
	id := identity{host: "h-1", pid: "23"}
	for _, tt := range []struct {
		pattern, path string
		shared        Sharing
		want          string // "": the path is alone
	}{
		{"/log/app.{pid}.jsonl", "/log/app.23.jsonl", Unshared, "/log/app.{pid}.jsonl"},
		{"/log/app.{pid}.jsonl", "/log/app.24.jsonl", Unshared, ""},
		{"/log/app.jsonl", "/log/app.jsonl", Unshared, ""},
		{"/{pid}/{pid}.log", "/23/23.log", Unshared, "/{pid}/{pid}.log"},
		{"/log/{host}/{tag}/{pid}", "/log/h-1/a.b/23", Unshared, "/log/h-1/a.b/{pid}"},
		{"/log/{tag}.{pid}.jsonl", "/log/a.17.23.jsonl", Unshared, "/log/a.17.{pid}.jsonl"},
		{"/log/{tag}-{tag}.{pid}", "/log/web-web.23", Unshared, "/log/web-web.{pid}"},
		{"/log/{tag}{pid}.jsonl", "/log/a23.jsonl", Unshared, ""},
		{"/log/{pid}7{tag}.jsonl", "/log/237a.jsonl", Unshared, ""},
		{"/log/{tag}{hour}{pid}.jsonl", "/log/a0523.jsonl", Unshared, "/log/a{hour}23.jsonl"},
		{"/log/{tag}{date}{pid}.jsonl", "/log/a2026-11-2123.jsonl", Unshared, "/log/a{date}{pid}.jsonl"},
		{"/log/{date}/{tag}.{hour}.jsonl", "/log/2026-11-21/a.05.jsonl", Unshared, "/log/{date}/a.{hour}.jsonl"},
		{"/log/{date}/{tag}.jsonl", "/log/2026-11-21/a.jsonl", SharedAppend, ""},
		{"/log/{date}.jsonl", "/log/other.jsonl", Unshared, ""},
		{"/log/{date}.jsonl", "/elsewhere/2026-11-21.jsonl", Unshared, ""},
		{"/log/{date}.jsonl", "/log/2026-13-21.jsonl", Unshared, ""},
	} {
		m := pattern1(t, tt.pattern).familyOf(tt.path, id, tt.shared)
		want := tt.want
		if want == "" {
			want = tt.path
		}
		if got := m.name(); got != want || m.varies != (tt.want != "") {
			t.Errorf("%s, %s: %s, %v", tt.pattern, tt.path, got, m.varies)
		}
	}
}

// membersOf returns what there is of a family in a folder that has the given names, those with a
// slash at their end as folders: the path, what it is, the process, and the size.
func membersOf(t *testing.T, pattern string, names ...string) (got []string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		if strings.HasSuffix(name, "/") {
			must(t, os.MkdirAll(path, 0o700))
			continue
		}
		must(t, os.WriteFile(path, []byte("x\n"), 0o600))
	}
	p, now := pattern1(t, filepath.Join(dir, pattern)), time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)
	id := identity{pid: "1"}
	all, err := p.familyOf(p.path(p.route("web", now.Unix()), id), id, Unshared).members(now, true, nil)
	must(t, err)
	for _, it := range all {
		name, err := filepath.Rel(dir, it.path)
		must(t, err)
		if !it.current {
			name += " rotated"
		}
		if it.past {
			name += " past"
		}
		got = append(got, name+" "+strconv.Itoa(it.pid)+" "+strconv.FormatInt(it.size, 10))
	}
	slices.Sort(got)
	return got
}

func TestMembers(t *testing.T) {
	const stamp = "-20261121T020304.123"
	for _, tt := range []struct {
		pattern     string
		names, want []string
	}{
		{
			"app.{pid}.jsonl",
			[]string{
				"app.17.jsonl", "app.4194304.jsonl", "app.17" + stamp + ".jsonl", "app.17" + stamp + ".jsonl.gz",
				"app.18" + stamp + ".jsonl.gz.tmp", "app.18" + stamp + ".jsonl.zst", "app.19" + stamp + ".jsonl.zst",
			},
			[]string{
				"app.17" + stamp + ".jsonl rotated 17 4", "app.17.jsonl 17 2",
				"app.18" + stamp + ".jsonl rotated 18 4",
				"app.19" + stamp + ".jsonl rotated 19 2", "app.4194304.jsonl 4194304 2",
			},
		},
		{
			"app-{pid}.jsonl", // what others may have put there
			[]string{
				"app-123.jsonl.bak", "app-123.jsonl.gz", "app-123.jsonl.1", "app-123.jsonl~lock", "app-.jsonl",
				"app-0.jsonl", "app-007.jsonl",
				"app--1.jsonl", "app-+1.jsonl", "app-1.5.jsonl", "app-1e3.jsonl", "app-x.jsonl", "app-2147483648.jsonl",
				"app-99999999999999999999999.jsonl",
				"app-٣.jsonl", "xapp-3.jsonl", "app-3.jsonlx", "App-3.jsonl", "app-3/", "app-4.jsonl/",
				"app-5" + stamp + ".jsonl/", "app-6/app-6.jsonl",
				"app-7-20261121T020304.12.jsonl", "app-7-20261321T020304.123.jsonl", "app-7" + stamp + stamp + ".jsonl",
				"app-7" + stamp + ".jsonl.gz.gz",
				"app-7" + stamp + ".jsonl.zst.tmp", "app-7" + stamp + ".jsonl.gz.zst",
				"app-7" + stamp + ".jsonl.tmp", "app-7" + stamp, "app-7" + stamp + ".gz", "app" + stamp + ".jsonl",
			},
			nil,
		},
		{
			"app-{pid}",
			[]string{"app-17", "app-17" + stamp, "app-17" + stamp + ".gz", "app-17.gz"},
			[]string{"app-17 17 2", "app-17" + stamp + " rotated 17 4"},
		},
		{
			"app.{pid}",
			[]string{"app.17", "app" + stamp + ".17", "app" + stamp + ".17.gz", "app.17" + stamp},
			[]string{"app" + stamp + ".17 rotated 17 4", "app.17 17 2"},
		},
		{"{pid}", []string{"17", "17" + stamp, "x"}, []string{"17 17 2", "17" + stamp + " rotated 17 2"}},
		{
			"{pid}.gz",
			[]string{"17.gz", "17" + stamp + ".gz", "17" + stamp + ".gz.gz"},
			[]string{"17" + stamp + ".gz rotated 17 4", "17.gz 17 2"},
		},
		{
			"{pid}{pid}.log",
			[]string{"1717.log", "1718.log", "171.log", "11.log"},
			[]string{"11.log 1 2", "1717.log 17 2"},
		},
		{
			"{pid}.d/{tag}/x.{pid}.log",
			[]string{
				"17.d/web/x.17.log", "17.d/web/x.18.log", "17.d/api/x.17.log", "18.d/web/x.18" + stamp + ".log",
				"y.d/web/x.19.log", "20.d", "21.d/web",
			},
			[]string{"17.d/web/x.17.log 17 2", "18.d/web/x.18" + stamp + ".log rotated 18 2"},
		},
		{
			"{date}/{tag}.{hour}.jsonl",
			[]string{
				"2026-11-21/web.05.jsonl", "2026-11-21/web.04.jsonl", "2026-11-20/web.05" + stamp + ".jsonl",
				"2026-11-20/web.24.jsonl", "2026-11-20/api.05.jsonl",
				"2026-02-30/web.05.jsonl", "other/web.other.jsonl", "2026-1-20/web.05.jsonl",
			},
			[]string{
				"2026-11-20/web.05" + stamp + ".jsonl rotated past 0 2", "2026-11-21/web.04.jsonl past 0 2",
				"2026-11-21/web.05.jsonl 0 2",
			},
		},
		{
			"{tag}.{date}.{pid}.jsonl",
			[]string{
				"web.2026-11-20.17.jsonl", "web.2026-11-21.17.jsonl", "web.x.2026-11-21.17.jsonl",
				"web.17.2026-11-21.jsonl",
			},
			[]string{"web.2026-11-20.17.jsonl past 17 2", "web.2026-11-21.17.jsonl 17 2"},
		},
		{
			"app.jsonl",
			[]string{"app.jsonl", "app" + stamp + ".jsonl", "app.17.jsonl", "app" + stamp + ".jsonl.gz"},
			[]string{"app" + stamp + ".jsonl rotated 0 4", "app.jsonl 0 2"},
		},
	} {
		if got := membersOf(t, tt.pattern, tt.names...); !slices.Equal(got, tt.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", tt.pattern, got, tt.want)
		}
	}
}

// FuzzMember: what is taken for a member is called as a process would call it.
func FuzzMember(f *testing.F) {
	for _, s := range [][3]string{
		{"app.{pid}.jsonl", "web", "app.17-20261121T020304.123.jsonl.gz"},
		{"{tag}-{pid}", "a.b", "a.b-17-20261121T020304.123"},
		{"{tag}.{date}.{hour}.{pid}", "", "%.2026-11-21.05.204"},
		{"{pid}{tag}{pid}", "x", "1x1"},
		{"{date}{pid}{hour}.gz", "", "2026-11-211705.gz"},
	} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, text, tag, name string) {
		p, err := parsePattern("/log/" + text)
		if err != nil || len(p.elements) != 1 || p.base != "/log" {
			return
		}
		id := identity{host: "h", pid: "1"}
		p.reserve = rotatedRoom
		if p.check(id) != nil {
			return
		}
		m := p.familyOf(p.path(p.route(tag, 1e9), id), id, Unshared)
		if !m.varies {
			return
		}
		var v variable
		before, rotation := name, time.Time{}
		form, ok := 0, v.match(m.elements[0], name)
		if !ok {
			rotation, form, ok = unrotated(name, func(s string) bool {
				v, before = variable{}, s
				return v.match(m.elements[0], s)
			})
		}
		if !ok {
			return
		}
		if pid := parsePID(v.pid); v.pid != "" && (pid <= 0 || pid > math.MaxInt32 || strconv.Itoa(pid) != v.pid) {
			t.Errorf("%q: %q", name, v.pid)
		}
		at, err := time.Parse(dayLayout+hourLayout, orNow(v.day, "2001-09-09")+orNow(v.hour, "01"))
		if err != nil {
			t.Fatal(err)
		}
		as := identity{host: "h", pid: orNow(v.pid, "1")}
		// A tag may be cut shorter where the id is longer.
		if room, tags := p.tagRoom(p.elements[0], as); tags > 0 && len(appendName(nil, tag, maxName, false)) > room {
			return
		}
		path := p.path(p.route(tag, at.Unix()), as)
		if path != "/log/"+before {
			t.Errorf("%q of %q, tag %q: %q is made", before, text, tag, path)
		}
		if !rotation.IsZero() && rotatedName(path, rotation)+endings[form] != "/log/"+name {
			t.Errorf("%q of %q: %q is made", name, text, rotatedName(path, rotation)+endings[form])
		}
	})
}

func orNow(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
