// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/internal/testcert"
)

// TestClient: a token and TLS, as the server asks for them, and errors that name the address.
func TestClient(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	slash := filepath.ToSlash
	ca := testcert.New(t)
	s := start(t, "https://127.0.0.1:0?cert="+slash(ca.Server.Cert)+"&key="+slash(ca.Server.Key)+"&client_ca="+
		slash(ca.File)+"&token_file="+slash(token), hooks(1))
	plain := start(t, "127.0.0.1:0", hooks(1))
	guarded := start(t, "127.0.0.1:0?token_file="+slash(token), hooks(1))
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/status" {
			http.Redirect(w, r, "http://"+plain.Addr().String(), http.StatusFound)
			return
		}
		http.Error(w, "\x1b[2J gone\xff\n", http.StatusTeapot)
	}))
	defer evil.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	https := "https://" + s.Addr().String() + "?ca=" + slash(ca.File) + "&cert=" + slash(ca.Client.Cert) + "&key=" +
		slash(ca.Client.Key)
	for _, tt := range []struct{ address, path, want string }{
		{plain.Addr().String(), "/status", ""},
		{"http://" + plain.Addr().String() + "/", "/config", ""},
		{guarded.Addr().String() + "?token_file=" + slash(token), "/status", ""},
		{https + "&token_file=" + slash(token), "/status", ""},
		{plain.Addr().String(), "/nothing", "404 Not Found: it knows no /nothing"},
		{guarded.Addr().String(), "/status", "401 Unauthorized: a token is needed"},
		{https, "/status", "401 Unauthorized: a token is needed"},
		{"https://" + s.Addr().String(), "/status", "certificate"},
		{"https://" + s.Addr().String() + "?ca=" + slash(ca.File), "/status", "certificate"},
		{"http://" + s.Addr().String(), "/status", "400 Bad Request"},
		{closed.Addr().String(), "/status", "refused"},
		{evil.URL, "/status", "302 Found"},
		{evil.URL, "/tail", `418 I'm a teapot: \x1b[2J gone\xff`},
		{plain.Addr().String() + "?token_file=" + slash(filepath.Join(dir, "none")), "", "no such file"},
		{plain.Addr().String() + "?ca=x", "", "ca"},
		{plain.Addr().String() + "?stalled_after=3s", "", `unknown parameter "stalled_after"`},
		{"127.0.0.1", "", "write host:port, such as 127.0.0.1:24220"},
		{"forward://127.0.0.1:1", "", "it is host:port, http://host:port or https://host:port"},
	} {
		c, err := Dial(tt.address, func(err error) { t.Error(err) })
		if err == nil {
			body, failed := c.Get(t.Context(), tt.path, nil)
			if err = failed; err == nil {
				_, err = io.Copy(io.Discard, body)
				_ = body.Close()
			} else if !strings.HasPrefix(err.Error(), c.Address()+": ") {
				t.Errorf("%s: %v", tt.address, err)
			}
			c.Close()
		}
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s %s: %v, want %q", tt.address, tt.path, err, tt.want)
		}
	}
}
