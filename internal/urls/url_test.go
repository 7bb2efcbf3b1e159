// SPDX-License-Identifier: Apache-2.0

package urls

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		text  string
		hosts []string
		path  string
	}{
		{"forward://127.0.0.1:24224", []string{"127.0.0.1:24224"}, ""},
		{"forward://127.0.0.1:0", []string{"127.0.0.1:0"}, ""},
		{"FORWARD://logs.example", []string{"logs.example:24224"}, ""},
		{"forward://logs.example/", []string{"logs.example:24224"}, ""},
		{"forward://:24224", []string{":24224"}, ""},
		{"forward://h1,h2:1,h_3", []string{"h1:24224", "h2:1", "h_3:24224"}, ""},
		{"forward://[::1]", []string{"[::1]:24224"}, ""},
		{"forward://[::1]:5,[::2],h", []string{"[::1]:5", "[::2]:24224", "h:24224"}, ""},
		{"forward://[fe80::1%25eth0]:5", []string{"[fe80::1%eth0]:5"}, ""},
		{"forward://[fe80::1%eth0]", []string{"[fe80::1%eth0]:24224"}, ""},
		{"forward://?host=[::1]&host=h:5", []string{"[::1]:24224", "h:5"}, ""},
		{"forward://a?host=b,c", []string{"a:24224", "b:24224", "c:24224"}, ""},
		{"forward://h:00080", []string{"h:80"}, ""},
		{"forward://bücher.example", []string{"bücher.example:24224"}, ""},
		{"forward+unix:///run/spillway.sock", nil, "/run/spillway.sock"},
		{"forward+unix:spillway.sock", nil, "spillway.sock"},
		{"file:///var/log/{tag}.{date}.jsonl", nil, "/var/log/{tag}.{date}.jsonl"},
		{"file:///var/log/%7Btag%7d.jsonl", nil, "/var/log/{tag}.jsonl"},
		{"file://localhost/var/log/x", nil, "/var/log/x"},
		{"file:/var/log/x", nil, "/var/log/x"},
		{"file:logs/x.jsonl", nil, "logs/x.jsonl"},
		{"file:///a%20b%25%3f%23+c@d.jsonl", nil, "/a b%?#+c@d.jsonl"},
		{"file:///häuser/x", nil, "/häuser/x"},
		{"stdout:", nil, ""},
		{"stdout://", nil, ""},
		{"discard:", nil, ""},
	} {
		u, err := Parse(tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		scheme, _, _ := strings.Cut(strings.ToLower(tt.text), ":")
		if u.Scheme != scheme || !slices.Equal(u.Hosts, tt.hosts) || u.Path != tt.path {
			t.Errorf("%s: got %q %q %q", tt.text, u.Scheme, u.Hosts, u.Path)
		}
		if err := u.Allow(); err != nil {
			t.Error(err)
		}
		if u.String() != tt.text {
			t.Errorf("%s: shown as %s", tt.text, u)
		}
	}
}

func TestParseWindowsDrive(t *testing.T) {
	want := "/C:/logs/x.jsonl"
	if runtime.GOOS == "windows" {
		want = "C:/logs/x.jsonl"
	}
	u, err := Parse("file:///C:/logs/x.jsonl")
	if err != nil || u.Path != want {
		t.Errorf("got %v, %v", u, err)
	}
}

// TestParseErrors wants each mistake named in words.
func TestParseErrors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "empty URL"},
		{"localhost:24224", "for example forward://localhost:24224"},
		{"127.0.0.1:24224", "for example forward://127.0.0.1:24224"},
		{"[::1]:24224", "for example forward://[::1]:24224"},
		{"tcp://h", `no scheme "tcp"; known are forward, forward+tls, forward+unix, lines, lines+unix, stdin, ring, file, stdout, stderr, discard`},
		{"://h", "the scheme is missing"},
		{"logs", "the scheme is missing"},
		{"stdout", "a colon is missing behind stdout; for example stdout:"},
		{"/var/log/x", "for example file:/var/log/x"},
		{"./x", "for example file:./x"},
		{`C:\logs`, "this is a path"},
		{"forward:h", "two slashes stand before the host; for example forward://127.0.0.1:24224"},
		{"forward://", "the host is missing"},
		{"forward://?host=", `parameter "host" has no value`},
		{"forward://h?shared_key_file=", `parameter "shared_key_file" has no value; it is written shared_key_file=…`},
		{"forward+tls://h?client_ca=&cert=c", `parameter "client_ca" has no value`},
		{"forward://a,,b", "empty place in the list of hosts"},
		{"forward://h/x", "forward takes no path"},
		{"forward://h:", `port "" is no number`},
		{"forward://h:http", `port "http" is no number from 0 to 65535`},
		{"forward://h:65536", `port "65536"`},
		{"forward://h:-1", `port "-1"`},
		{"forward://::1", "an IPv6 address stands in brackets: [::1]"},
		{"forward://a:b:c", "more than one colon"},
		{"forward://[::1", "closes the IPv6 address"},
		{"forward://[::1]5", "behind the IPv6 address"},
		{"forward://[127.0.0.1]", "no IPv6 address"},
		{"forward://*:24224", "every interface of this machine is an empty host"},
		{"forward://a%20b", `"%" cannot be in the name of a host`},
		{"forward://h#x", "%23"},
		{"forward://h x", "%20"},
		{"forward://h\n", "control character"},
		{"forward://h\xff", "UTF-8"},
		{"forward://h?a", `parameter "a" has no value`},
		{"forward://h?=a", "no name"},
		{"forward://h?a=%zz", `parameter "a": "%zz" is no %-encoding`},
		{"forward+unix://", "the path is missing"},
		{"forward+unix:///" + strings.Repeat("x", 200), "at most 107 bytes"},
		{"file:", "the path is missing"},
		{"file://", "the path is missing"},
		{"file:///", "this is a directory"},
		{"file:///logs/", "this is a directory"},
		{"file://logs/x.jsonl", `behind two slashes stands a host, and "logs" is none: a path from the root has three slashes (file:///logs/x.jsonl), one from the working directory has none (file:logs/x.jsonl)`},
		{"file:///x.%Y-%m-%d.jsonl", `"%Y-" is no %-encoding: a percent sign is written %25 (the date and hour of an event are {date} and {hour})`},
		{"file:///x.%date.jsonl", "not UTF-8 text"},
		{"file:///x%00y", `"%00" is a control character`},
		{"file:///x%2", `"%2" is no %-encoding`},
		{"stdout:x", "nothing may follow stdout:"},
	} {
		u, err := Parse(tt.text)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%q: got %+v, %v; want an *Error", tt.text, u, err)
		} else if !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v\n  want %s", tt.text, err, tt.want)
		}
	}
}

// TestSecrets looks for the word in everything that is ever shown.
func TestSecrets(t *testing.T) {
	for _, text := range []string{
		"forward://user:HIDE@h",
		"forward://user:a/HIDE@h",
		"forward://user:a?HIDE@h",
		"forward://user:HIDE?a=b@h",
		"forward://user:HI#HIDE@h",
		"forward://h?shared_key=HIDE",
		"forward://h?Shared_Key=HIDE",
		"forward://h?shared_key=x@HIDE",
		"forward://h?shared%5fkey=HIDE&x=%zz",
		"forward://h?pass%zzword=HIDE",
		"forward://h?password=%zzHIDE",
		"forward://h?password=HIDE&password=HIDE",
		"forward://h:x?token=HIDE",
		"file://user:HIDE@h/x",
		"file:///x?secret=HIDE",
		"user:HIDE@h:24224",
		"kafka://user:HIDE@h",
		"kafka://h?password=HIDE",
		"forward://h?auth=HIDE",
		"forward://h?auth=HIDE x",
	} {
		u, err := Parse(text)
		if err == nil {
			p := u.Params()
			p.Int("password", 0, 0, 1)
			p.Size("token", 0)
			p.Bool("auth", false)
			p.Choice("shared_key", "a")
			p.Duration("secret", 0)
			err = p.Err()
			if strings.Contains(u.String(), "HIDE") {
				t.Errorf("%s: shown as %s", text, u)
			}
		}
		if err == nil || strings.Contains(err.Error(), "HIDE") {
			t.Errorf("%s: %v", text, err)
		}
	}
	u, err := Parse("forward://h?shared_key=a%40b+c&tls_key_file=/run/key&client_auth=require&password_env=P&key=k")
	if err != nil {
		t.Fatal(err)
	}
	if got := u.Params().String("shared_key", ""); got != "a@b+c" {
		t.Errorf("got %q", got)
	}
	if got := u.String(); got != "forward://h?shared_key=***&tls_key_file=/run/key&client_auth=require&password_env=***&key=k" {
		t.Errorf("shown as %s", got)
	}
}

// TestMisnamedSecrets: what belongs to no parameter may be a secret.
func TestMisnamedSecrets(t *testing.T) {
	u, err := Parse("forward://h?psk=HIDE&window=5&sharedkye=HIDE")
	if err != nil {
		t.Fatal(err)
	}
	p := u.Params()
	p.Int("window", 0, 0, 9)
	if err := p.Err(); err == nil || !strings.HasPrefix(err.Error(),
		`forward://h?psk=***&window=5&sharedkye=***: unknown parameter "psk"`) {
		t.Error(err)
	}
	if err := u.ErrorAbout("psk", "no %s", "psk"); err.Error() != "forward://h?psk=***&window=5&sharedkye=HIDE: no psk" {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"forward://h1:1,[::1]?host=a&x=1", "file:///var/log/{tag}.%25.jsonl?a=64MiB", "forward+unix:/x", "stdout:",
		"a@b", "file://h/x",
		"forward://[fe80::1%25eth0]", "file:%", "forward://h?a=%41&b=2#",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := Parse(text)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Reason == "" {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		p := u.Params()
		p.Size("a", 0)
		p.Duration("b", 0)
		_ = p.Err()
		s, _ := shapeOf(u.Scheme)
		if (len(u.Hosts) > 0) != (s.kind == hosts) || (u.Path != "") != (s.kind == path) {
			t.Fatalf("%q: %+v", text, u)
		}
		for i := range len(u.Path) {
			if u.Path[i] < ' ' {
				t.Fatalf("%q: control character in %q", text, u.Path)
			}
		}
		// What is shown can be read again and is shown as itself.
		v, err := Parse(u.String())
		if err != nil || v.String() != u.String() || v.Path != u.Path || !slices.Equal(u.Hosts, v.Hosts) {
			t.Fatalf("%q: %+v, again %+v, %v", text, u, v, err)
		}
	})
}
