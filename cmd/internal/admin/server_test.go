// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/internal/testcert"
)

func TestRead(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "",
		"127.0.0.1:24220":                     "",
		"[::1]:24220":                         "",
		"localhost:24220":                     "",
		"http://127.0.0.1:24220/":             "",
		"0.0.0.0:24220":                       "others than this machine",
		":24220":                              "others than this machine",
		"logs.example:24220":                  "others than this machine",
		"10.0.0.1:1?anonymous=true":           "",
		"10.0.0.1:1?anonymous=yes":            `"yes" is not true or false`,
		"10.0.0.1:1?token_file=/t":            "",
		"https://:1?cert=c&key=k":             "others than this machine",
		"127.0.0.1":                           "host:port",
		"127.0.0.1:":                          "host:port",
		"ftp://127.0.0.1:1":                   "no scheme",
		"forward://127.0.0.1:1":               "it is host:port",
		"127.0.0.1:1?tokn_file=x":             `unknown parameter "tokn_file"`,
		"127.0.0.1:1?stalled_after=":          "no value",
		"127.0.0.1:1?stalled_after=1ms":       "at least 1s",
		"https://:1?cert=c&key=k&client_ca=a": "",
		"https://:1?cert=c&key=k&client_ca=a&client_auth=request": "others than this machine",
	} {
		p, err := Read(text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if err == nil && text != "" && p == nil {
			t.Errorf("%s: no plan", text)
		}
	}
	if table := Parameters(); len(table["http"]) >= len(table["https"]) || len(table["http"]) == 0 {
		t.Errorf("%v", table)
	}
}

// hooks tell of so many outputs.
func hooks(outputs int) *Hooks {
	s := collector.Stats{}
	for i := range outputs {
		s.Outputs = append(s.Outputs, collector.OutputStats{
			Name: fmt.Sprintf("output-%d", i), Out: int64(i),
			Dropped: map[string]int64{"behind": 3},
		})
	}
	for i := range 10 {
		s.Inputs = append(s.Inputs, collector.InputStats{Name: fmt.Sprintf("input-%d", i)})
	}
	return &Hooks{
		Version: "v1", Stats: func() collector.Stats { return s }, Status: func(
			s *collector.Stats,
		) any {
			return s.Outputs
		},
		Config: func() string { return "data: x\n" }, Reload: func() error { return errors.New("line 3 is wrong") },
	}
}

func start(t *testing.T, text string, from *Hooks) *Server {
	t.Helper()
	p, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Listen(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s.Serve(from)
	t.Cleanup(s.Close)
	return s
}

// ask returns the status and the body of an answer.
func ask(t *testing.T, c *http.Client, method, url string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func TestServer(t *testing.T) {
	s := start(t, "127.0.0.1:0", hooks(2))
	base := "http://" + s.Addr().String()
	for _, tt := range []struct {
		method, path string
		header       []string
		code         int
		want         string
	}{
		{"GET", "/healthz", nil, 200, "ok"},
		{"GET", "/readyz", nil, 200, "ok"},
		{"GET", "/status", nil, 200, `"Name":"output-1"`},
		{"GET", "/config", nil, 200, "data: x\n"},
		{"GET", "/metrics", nil, 200, `spillway_output_events_total{output="output-1"} 1`},
		{"GET", "/metrics", nil, 200, "\ngo_goroutines "},
		{"GET", "/", nil, 404, ""},
		{"GET", "/debug/pprof/", nil, 404, ""},
		{"GET", "/reload", nil, 405, ""},
		{"POST", "/status", nil, 405, ""},
		{"POST", "/reload", nil, 409, "line 3 is wrong"},
		{"POST", "/reload", []string{"Origin", "https://evil.example"}, 403, ""},
		{"POST", "/reload", []string{"Sec-Fetch-Site", "cross-site"}, 403, ""},
		{"GET", "/status", []string{"Host", "evil.example"}, 421, ""},
		{"GET", "/healthz", []string{"Host", "evil.example"}, 200, ""},
		{"GET", "/status", []string{"Host", "localhost"}, 200, ""},
		{"GET", "/status", []string{"Host", "[::1]:24220"}, 200, ""},
	} {
		if code, body := ask(t, http.DefaultClient, tt.method, base+tt.path, tt.header...); code != tt.code ||
			!strings.Contains(body, tt.want) {
			t.Errorf("%s %s %v: %d %.200s", tt.method, tt.path, tt.header, code, body)
		}
	}
	if none, err := (*Plan)(nil).Listen(nil); err != nil || none != nil {
		t.Error(none, err)
	} else {
		none.Serve(nil)
		none.Close()
		if none.Addr() != nil || none.Reload() != nil {
			t.Error("what is not there")
		}
	}
	p, err := Read(s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Listen(slog.New(slog.DiscardHandler)); err == nil ||
		!strings.HasPrefix(err.Error(), "admin http://127.0.0.1:") {
		t.Errorf("an address that is taken: %v", err)
	}
}

// TestServerGuarded: TLS, and a token that only probes do without.
// TestCrowd: connections that say nothing more keep none from being answered.
func TestCrowd(t *testing.T) {
	s := start(t, "127.0.0.1:0", hooks(1))
	for range maxConnections {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // one by one, for a connection of its own
		client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
		if code, body := ask(t, client, http.MethodGet, "http://"+s.Addr().String()+"/healthz"); code != http.StatusOK {
			t.Errorf("%d %s", code, body)
		}
	}
}

func TestServerGuarded(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ca := testcert.New(t)
	s := start(t, "https://127.0.0.1:0?cert="+filepath.ToSlash(ca.Server.Cert)+"&key="+filepath.ToSlash(ca.Server.Key)+
		"&token_file="+filepath.ToSlash(token), hooks(1))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool}}}
	defer client.CloseIdleConnections()
	base := "https://" + s.Addr().String()
	for _, tt := range []struct {
		path, token string
		code        int
	}{
		{"/metrics", "", 401},
		{"/status", "Bearer wrong", 401},
		{"/config", "secret", 401},
		{"/config", "Bearer secret", 200},
		{"/healthz", "", 200},
		{"/readyz", "", 200},
		{"/nothing", "", 401},
	} {
		if code, body := ask(t, client, "GET", base+tt.path, "Authorization", tt.token); code != tt.code {
			t.Errorf("%s with %q: %d %s", tt.path, tt.token, code, body)
		}
	}
	if err := os.WriteFile(token, []byte("another\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(); err != nil {
		t.Error(err)
	}
	if code, _ := ask(t, client, "GET", base+"/status", "Authorization", "Bearer another"); code != 200 {
		t.Errorf("the new token: %d", code)
	}
	if err := os.Remove(token); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(); err == nil {
		t.Error("without its file")
	}
}

// TestReadyz says which output does not move.
func TestReadyz(t *testing.T) {
	from := hooks(2)
	stats := from.Stats
	from.Stats = func() collector.Stats {
		s := stats()
		s.Outputs[1].Behind, s.Outputs[1].BehindFor = 5, time.Hour
		return s
	}
	s := start(t, "127.0.0.1:0?stalled_after=1s", from)
	limit := time.Now().Add(time.Minute)
	for {
		code, body := ask(t, http.DefaultClient, "GET", "http://"+s.Addr().String()+"/readyz")
		if code == 503 && strings.HasPrefix(body, "output output-1: nothing has moved for ") &&
			!strings.Contains(body, "output-0") {
			return
		}
		if code != 200 || time.Now().After(limit) {
			t.Fatalf("%d %s", code, body)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// TestPromtool: Prometheus's own tool finds nothing wrong with the names.
func TestPromtool(t *testing.T) {
	path, err := exec.LookPath("promtool")
	needs.Have(t, err == nil, "promtool is missing: apt-get install prometheus")
	s := start(t, "127.0.0.1:0", hooks(3))
	_, text := ask(t, http.DefaultClient, "GET", "http://"+s.Addr().String()+"/metrics")
	cmd := exec.Command(path, "check", "metrics")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// BenchmarkMetrics is a scrape of a collector with 100 outputs.
func BenchmarkMetrics(b *testing.B) {
	c := &collector.Config{
		Inputs: collector.Ends("forward://127.0.0.1:0"), Dir: filepath.Join(b.TempDir(), "data"),
		Log: slog.New(slog.DiscardHandler),
	}
	for i := range 100 {
		c.Outputs = append(c.Outputs, collector.End{Name: fmt.Sprintf("output-%d", i), URL: "discard:"})
	}
	col, err := collector.Open(c)
	if err != nil {
		b.Fatal(err)
	}
	defer col.Close()
	p, err := Read("127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	if err := p.security.Open(nil); err != nil {
		b.Fatal(err)
	}
	from := hooks(0)
	from.Stats = col.Stats
	h := (&Server{plan: p, syncs: newSyncs()}).handler(from)
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest("GET", "http://127.0.0.1/metrics", nil)
		r.Header.Set("Accept-Encoding", "gzip") // as Prometheus does
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != 200 {
			b.Fatal(w.Code, w.Body)
		}
	}
}
