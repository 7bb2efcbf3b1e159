// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"maps"
	"strings"
	"testing"
)

func TestUsers(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       map[string]string
		err        string
	}{
		{"two", "web:pw\napp:p:w # x\n", map[string]string{"web": "pw", "app": "p:w # x"}, ""},
		{
			"comments, ends of Windows, no end", "\n# c:x\r\n  # d:y\nweb: pw \r\napp:pw",
			map[string]string{"web": " pw ", "app": "pw"},
			"",
		},
		{"a mark", "\xef\xbb\xbfweb:pw\n", map[string]string{"web": "pw"}, ""},
		{"bytes", "web:\xff\x00\n", map[string]string{"web": "\xff\x00"}, ""},
		{"nothing", "", nil, "no user"},
		{"comments only", "# web:pw\n", nil, "no user"},
		{"no colon", "web:pw\n\ntopsecret\n", nil, "line 3: there is no colon"},
		{"no name", ":topsecret\n", nil, "line 1: there is no name"},
		{"no password", "topsecret:\n", nil, "line 1: there is no password"},
		{"space", "topsecret :topsecret\n", nil, "line 1: there is a space"},
		{"twice", "topsecret:a\n#\ntopsecret:topsecret\n", nil, "line 3: this user is in line 1 already"},
		{"no text", "\xff:topsecret\n", nil, "line 1: the name is not UTF-8 text"},
	} {
		got, err := parseUsers([]byte(tt.text))
		if !maps.Equal(got, tt.want) || !fits(err, tt.err) {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
}

// fits reports whether err is as wanted, and without what the tests take for a secret.
func fits(err error, want string) bool {
	if err == nil || want == "" {
		return err == nil && want == ""
	}
	return strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "topsecret")
}

// plainError reports whether the text of an error is one that is written in this package: with
// numbers taken out it must be one of few.
func plainError(err error, texts map[string]bool) bool { return texts[withoutNumbers(err.Error())] }

func texts(list ...string) map[string]bool {
	m := make(map[string]bool)
	for _, s := range list {
		m[withoutNumbers(s)] = true
	}
	return m
}

func withoutNumbers(s string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, s)
}

func FuzzUsers(f *testing.F) {
	for _, s := range []string{
		"web:pw\n", "# c\r\nweb:p:w\napp:pw", "web:a\nweb:b\n", "no colon", ":", "a :b",
		"\xef\xbb\xbfa:b", "\xff:x\n",
	} {
		f.Add([]byte(s))
	}
	known := texts(
		"there is no user in it", "line : there is no colon between name and password",
		"line : there is no name before the colon",
		"line : there is a space at an end of the name", "line : the name is not UTF- text",
		"line : there is no password behind the colon",
		"line : this user is in line  already",
	)
	f.Fuzz(func(t *testing.T, data []byte) {
		users, err := parseUsers(data)
		if err != nil {
			if !plainError(err, known) {
				t.Fatalf("an error shows what it should not: %v", err)
			}
			return
		}
		count := 0
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			line = bytes.TrimSuffix(line, []byte("\r"))
			name, password, _ := strings.Cut(string(line), ":")
			if p, ok := users[strings.TrimPrefix(name, string(mark))]; ok && p == password {
				count++
			}
		}
		if count < len(users) {
			t.Fatalf("%d users come from %d lines", len(users), count)
		}
	})
}
