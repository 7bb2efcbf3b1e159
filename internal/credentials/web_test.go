// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/internal/urls"
)

// readWeb reads a URL with the token and the certificate, if it names them, in dir.
func readWeb(t *testing.T, text string) (*Web, error) {
	t.Helper()
	u, err := urls.Parse(text, "http", "https")
	if err != nil {
		t.Fatal(err)
	}
	p := u.Params()
	w, err := ReadWeb(u, p)
	if err == nil {
		err = p.Err()
	}
	return w, err
}

func TestWeb(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one\n")
	w, err := readWeb(t, "http://h:1?token_file="+filepath.ToSlash(path))
	if err != nil || !w.Guarded() {
		t.Fatal(err)
	}
	if err := w.Open(&Reports{}); err != nil {
		t.Fatal(err)
	}
	if w.TLS() != nil || !w.Allows("one") || w.Allows("") || w.Allows("one\n") || w.Allows("two") {
		t.Error("the token")
	}
	write("two")
	if err := w.Reload(); err != nil || !w.Allows("two") || w.Allows("one") {
		t.Errorf("the new token: %v", err)
	}
	write("")
	if err := w.Reload(); err == nil || !w.Allows("two") || w.Allows("") {
		t.Errorf("an empty token: %v", err)
	}
	open, err := readWeb(t, "http://h:1")
	if err != nil || open.Guarded() || open.Open(&Reports{}) != nil || !open.Allows("") || open.Reload() != nil {
		t.Error("without a token", err)
	}
	for text, want := range map[string]string{
		"http://h:1?cert=x": `parameter "cert" belongs to TLS: https://`,
		"https://h:1":       "cert= and key=",
		"https://h:1?cert=a&key=b&client_auth=none": "",
		"http://h:1?token=x":                        `unknown parameter "token"`,
		"http://h:1?token_file=a&token_env=B":       "say the same thing",
	} {
		if _, err := readWeb(t, text); (err == nil) != (want == "") || err != nil &&
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if guarded, err := readWeb(t, "https://h:1?cert=a&key=b&client_ca=c"); err != nil || !guarded.Guarded() {
		t.Errorf("clients' certificates: %v", err)
	}
}
