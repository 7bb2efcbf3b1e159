// SPDX-License-Identifier: Apache-2.0

package files

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAppendName(t *testing.T) {
	for _, tt := range []struct{ tag, want string }{
		{"app.web", "app.web"},
		{"app.web-1_x=a+b@c,d", "app.web-1_x=a+b@c,d"},
		{"日本.é", "日本.é"},
		{"", "%"},
		{".", "%2E"},
		{"..", "%2E%2E"},
		{"...", "%2E%2E%2E"},
		{".bashrc", "%2Ebashrc"},
		{"a..b", "a.%2Eb"},
		{"a.", "a%2E"},
		{"../../etc/passwd", "%2E%2E%2F.%2E%2Fetc%2Fpasswd"},
		{"/etc/passwd", "%2Fetc%2Fpasswd"},
		{`a\b`, "a%5Cb"},
		{"a\x00b\n\x7f", "a%00b%0A%7F"},
		{"100%", "100%25"},
		{"%2F", "%252F"},
		{"a b", "a%20b"},
		{"-rf", "%2Drf"},
		{"~root", "%7Eroot"},
		{"a:b*c?d\"e<f>g|h", "a%3Ab%2Ac%3Fd%22e%3Cf%3Eg%7Ch"},
		{"{tag}", "%7Btag%7D"},
		{"con", "%63on"},
		{"NUL.x.y", "%4EUL.x.y"},
		{"com1", "%63om1"},
		{"conx", "conx"},
		{"com", "com"},
		{"a\xffb", "a%FFb"},
		{"a\u202eb\u0085\u2028", "a%E2%80%AEb%C2%85%E2%80%A8"},
		{"\ufffd", "\ufffd"},
	} {
		if got := string(appendName(nil, tt.tag, maxName, true)); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.tag, got, tt.want)
		}
	}
}

func TestAppendNameLong(t *testing.T) {
	exact := strings.Repeat("a", 60)
	if got := string(appendName(nil, exact, 60, true)); got != exact {
		t.Errorf("got %q", got)
	}
	seen := map[string]string{}
	for _, tag := range []string{
		exact + "a", exact + "b", exact[:59] + "/", strings.Repeat("/", 1<<16), strings.Repeat("/", 1<<16+1),
		strings.Repeat("é", 31), strings.Repeat("日本", 20),
	} {
		got := string(appendName([]byte("x"), tag, 60, true))[1:]
		if len(got) > 60 || !utf8.ValidString(got) || got[len(got)-33] != '~' {
			t.Errorf("%.70q: got %q", tag, got)
		}
		if before, ok := seen[got]; ok {
			t.Errorf("%.70q and %.70q are both %q", before, tag, got)
		}
		seen[got] = tag
	}
}

// unescape returns the text that a name stands for; false if it is a hash's.
func unescape(name string) (string, bool) {
	if name == "%" {
		return "", true
	}
	if strings.Contains(name, "~") {
		return "", false
	}
	var b []byte
	for i := 0; i < len(name); i++ {
		if name[i] != '%' {
			b = append(b, name[i])
			continue
		}
		b = append(b, byte(strings.IndexByte(upperHex, name[i+1])<<4|strings.IndexByte(upperHex, name[i+2])))
		i += 2
	}
	return string(b), true
}

// FuzzAppendName wants names that are names, and from which the tag can be read back: so no two
// tags share one.
func FuzzAppendName(f *testing.F) {
	for _, s := range []string{
		"app.web", "../../x", "a\x00", "%2F", strings.Repeat("é/", 100), "con.x", "..",
		"\xff\xfe", "-", "~", "a\u202eb", "a-20200101T000000.000",
	} {
		f.Add(s, 255)
	}
	f.Fuzz(func(t *testing.T, tag string, limit int) {
		limit = minName + int(uint(limit)%(maxName-minName+1))
		for _, stamps := range []bool{true, false} {
			checkName(t, tag, string(appendName(nil, tag, limit, stamps)), limit)
		}
	})
}

func checkName(t *testing.T, tag, name string, limit int) {
	if name == "" || len(name) > limit || !utf8.ValidString(name) {
		t.Fatalf("%q: %q", tag, name)
	}
	if name[0] == '.' || name[0] == '-' || name[len(name)-1] == '.' || strings.Contains(name, "..") ||
		strings.ContainsAny(name, "/\\:*?\"<>| {}$&;'`") {
		t.Fatalf("%q: %q", tag, name)
	}
	for i := range len(name) {
		if name[i] < ' ' || name[i] == 0x7f {
			t.Fatalf("%q: %q", tag, name)
		}
	}
	if isDevice(name) {
		t.Fatalf("%q: %q is a device", tag, name)
	}
	if text, ok := unescape(name); ok && text != tag {
		t.Fatalf("%q became %q, which stands for %q", tag, name, text)
	} else if !ok && len(tag) <= limit/3 {
		t.Fatalf("%q: %q: hashed without need", tag, name)
	}
}
