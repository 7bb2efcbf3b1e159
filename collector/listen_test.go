// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/internal/testcert"
	"github.com/spillwaylog/spillway/internal/urls"
)

func TestPlanInput(t *testing.T) {
	for _, tt := range []struct{ url, want string }{ // what the error has in it, or nothing
		{"forward://h", ""},
		{"forward://h?tag=a.b&tag_prefix=c&address_key=address&host_key=host", ""},
		{"forward+tls://h?cert=c&key=k&client_ca=ca&subject_key=s", ""},
		{"forward+unix:///s?shared_key_file=k&users_file=u&host_key=h&user_key=u", ""},
		{"forward://h1,h2", "an input listens on one address"},
		{"stdout:", "no input of this kind"},
		{"stdou:", `no scheme "stdou"; known are forward, forward+tls, forward+unix, lines, lines+unix, stdin, ring; for example`},
		{"forward://h?tags=x", `unknown parameter "tags"; forward takes shared_key_file`},
		{"forward://h?shared_key=topsecret", `unknown parameter "shared_key"`},
		{"forward://h?shared_key_file=k&user_key=u", "without users_file= there is none"},
		{"forward+tls://h?cert=c&key=k&subject_key=s", "without client_ca= nobody is asked"},
		{"forward://h?tag=" + strings.Repeat("x", 1025), "at most 1024 bytes"},
	} {
		_, err := planInput(&Config{}, &End{URL: tt.url})
		var bad *urls.Error
		if err == nil && tt.want != "" || err != nil &&
			(tt.want == "" || !errors.As(err, &bad) || !strings.Contains(err.Error(), tt.want) ||
				strings.Contains(err.Error(), "topsecret")) {
			t.Errorf("%s: %v, want %s", tt.url, err, tt.want)
		}
	}
}

// TestNothingIsTouched: a mistake in one URL is told before anything is opened.
func TestNothingIsTouched(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := Open(&Config{Dir: dir, Inputs: Ends("forward://127.0.0.1:0",
		"forward+tls://127.0.0.1:0")}); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestApplyCredentials: what is broken is told with its input, and each input is told of.
func TestApplyCredentials(t *testing.T) {
	ca := testcert.New(t)
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	write := func(text string) {
		if err := os.WriteFile(key, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("topsecret\n")
	o := &Config{Dir: filepath.Join(dir, "data"), Outputs: Ends("discard:"), Inputs: Ends(
		"forward+tls://127.0.0.1:0?cert="+ca.Server.Cert+"&key="+ca.Server.Key,
		"forward://127.0.0.1:0?shared_key_file="+key,
	)}
	c, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Apply(o); err != nil {
		t.Error(err)
	}
	write("topsecret\ntopsecret\n")
	if err := c.Apply(o); err == nil || !strings.HasPrefix(err.Error(),
		c.inputs[1].account.url+": shared_key_file="+key+": it has more than one line") {
		t.Error(err)
	}
	e := c.inputs[1].endpoint
	if s := e.GetSecurity(nil); s == nil || s.SharedKey != "topsecret" {
		t.Error("the old key is not in force")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Apply(o); err == nil {
		t.Error("a collector that is closed was changed")
	}
}
