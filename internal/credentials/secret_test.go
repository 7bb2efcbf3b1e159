// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

func TestOneLine(t *testing.T) {
	for _, tt := range []struct{ text, want, err string }{
		{"topsecret", "topsecret", ""},
		{"topsecret\n", "topsecret", ""},
		{"topsecret\r\n", "topsecret", ""},
		{" top\tsecret \n", " top\tsecret ", ""},
		{"topsecret\n\n", "", "more than one line"},
		{"topsecret\nx", "", "more than one line"},
		{"\xef\xbb\xbftopsecret\n", "", "byte order mark"},
		{"\xff\xfet\x00o\x00p\x00\r\x00\n\x00", "", "as UTF-16 does"},
		{"\n", "", ""},
		{"", "", ""},
	} {
		got, err := oneLine([]byte(tt.text))
		if got != tt.want || !fits(err, tt.err) {
			t.Errorf("%q: %q, %v", tt.text, got, err)
		}
	}
}

func TestSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	save(t, path, "topsecret\n")
	t.Setenv("CREDENTIALS_TEST_KEY", "topsecret\n")
	for _, s := range []secret{{file: file{"key_file", path}}, {env: "CREDENTIALS_TEST_KEY", name: "shared_key_env="}} {
		if got, err := s.get(&files{}); got != "topsecret" || err != nil {
			t.Errorf("%s: %q, %v", s, got, err)
		}
	}
	for want, s := range map[string]secret{
		"key_file=" + path + "2: no such file": {file: file{"key_file", path + "2"}},
		"no regular file":                      {file: file{"key_file", filepath.Dir(path)}},
		"shared_key_env= names is not set":     {env: "CREDENTIALS_topsecret", name: "shared_key_env="},
	} {
		if _, err := s.get(&files{}); !fits(err, want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	save(t, path, strings.Repeat("topsecret", maxSecret))
	if _, err := (secret{file: file{"key_file", path}}).get(&files{}); !fits(err, "larger than 65536 bytes") {
		t.Error(err)
	}
}

func FuzzSecret(f *testing.F) {
	for _, s := range []string{"key\n", "key\r\n", "\n", "", "a\nb", "\xef\xbb\xbfk"} {
		f.Add([]byte(s))
	}
	known := texts(errMark.Error(), errZero.Error(), errLines.Error())
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := oneLine(data)
		switch {
		case err != nil && !plainError(err, known):
			t.Fatal(err)
		case err == nil && (!bytes.HasPrefix(data, []byte(s)) || strings.Contains(s, "\n") || len(data)-len(s) > 2):
			t.Fatalf("%q", s)
		}
	})
}

func FuzzCertificates(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if certs, err := parseCertificates(data); err == nil && len(certs) == 0 {
			t.Fatal("no certificate and no error")
		}
	})
}
