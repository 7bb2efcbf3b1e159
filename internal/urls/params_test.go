// SPDX-License-Identifier: Apache-2.0

package urls

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParams(t *testing.T) {
	u, err := Parse("file:///x?size=64MiB&wait=1m30s&n=-5&on=true&kind=b&name=a%26b+c&list=1&list=2&")
	if err != nil {
		t.Fatal(err)
	}
	p := u.Params()
	if got := p.Size("size", 1); got != 64<<20 {
		t.Errorf("size %d", got)
	}
	if got := p.Duration("wait", 1); got != 90*time.Second {
		t.Errorf("wait %v", got)
	}
	if got := p.Int("n", 1, -10, 10); got != -5 {
		t.Errorf("n %d", got)
	}
	if !p.Bool("on", false) || !p.Bool("off", true) {
		t.Error("bool")
	}
	if got := p.Choice("kind", "a", "b"); got != "b" {
		t.Errorf("kind %q", got)
	}
	if got := p.Choice("other", "a", "b"); got != "a" {
		t.Errorf("other %q", got)
	}
	if got := p.String("name", ""); got != "a&b+c" {
		t.Errorf("name %q", got)
	}
	if got := p.Strings("list"); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("list %q", got)
	}
	if p.Size("s", 7) != 7 || p.Duration("d", 7) != 7 || p.Int("i", 7, 0, 9) != 7 || p.String("t", "7") != "7" {
		t.Error("defaults")
	}
	if err := p.Err(); err != nil {
		t.Error(err)
	}
}

func TestParamsErrors(t *testing.T) {
	for _, tt := range []struct{ query, want string }{
		{"sise=1", `unknown parameter "sise"; file takes size, wait, n, on, kind, name`},
		{"host=h", `unknown parameter "host"`},
		{"size=64M", `parameter "size": "64M" is not a size such as 64MiB`},
		{"size=-1", `"-1" is not a size`},
		{"wait=10", `parameter "wait": "10" is not a duration such as 10s, 500ms or 1m30s`},
		{"wait=-1s", `"-1s" is not a duration`},
		{"n=11", `parameter "n": "11" is not a number from 0 to 10`},
		{"on=yes", `parameter "on": "yes" is not true or false`},
		{"kind=c", `parameter "kind": "c" is not one of a, b`},
		{"name=a&name=b", `parameter "name" is given twice`},
	} {
		u, err := Parse("file:///x?" + tt.query)
		if err != nil {
			t.Fatal(err)
		}
		p := u.Params()
		p.Size("size", 0)
		p.Duration("wait", 0)
		p.Int("n", 0, 0, 10)
		p.Bool("on", false)
		p.Choice("kind", "a", "b")
		p.String("name", "")
		if err := p.Err(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v\n  want %s", tt.query, err, tt.want)
		}
	}
	u, err := Parse("stdout:?x=1")
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Allow(); err == nil || !strings.Contains(err.Error(), `unknown parameter "x"; stdout takes none`) {
		t.Error(err)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "4096": 4096, "1B": 1, "1KiB": 1024, "64MiB": 64 << 20, "3GiB": 3 << 30, "2TiB": 2 << 40,
		"1kB": 1000, "1KB": 1000, "5MB": 5e6, "1GB": 1e9, "1TB": 1e12, "9223372036854775807": 1<<63 - 1,
		"": -1, "MiB": -1, "1M": -1, "1 MiB": -1, "-1": -1, "+1": -1, "1.5GiB": -1, "9223372036854775808": -1,
		"8388608TiB": -1, "1mib": -1,
	} {
		got, err := ParseSize(text)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q: got %d, %v; want %d", text, got, err, want)
		}
	}
}
