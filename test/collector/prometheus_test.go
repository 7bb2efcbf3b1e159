// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

var (
	rulesFile     = filepath.Join("..", "..", "deploy", "prometheus", "rules.yaml")
	dashboardFile = filepath.Join("..", "..", "deploy", "grafana", "spillway.json")
)

// TestPromtool: Prometheus's own tool finds nothing wrong with the alerts, and they fire when they
// should. Their runbooks are places in the documents.
func TestPromtool(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("promtool")
	needs.Have(t, err == nil, "promtool is missing: apt-get install prometheus")
	for _, args := range [][]string{
		{"check", "rules", "--lint-fatal", rulesFile},
		{"test", "rules", filepath.Join(filepath.Dir(rulesFile), "rules_test.yaml")},
	} {
		if out, err := exec.Command(path, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
	rules, err := os.ReadFile(rulesFile)
	rig.Must(t, err)
	alerts := regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(string(rules), -1)
	runbooks := regexp.MustCompile(`(?m)^ +runbook: (docs/[a-z-]+\.md)#([a-z-]+)$`).FindAllStringSubmatch(string(rules),
		-1)
	tests, err := os.ReadFile(filepath.Join(filepath.Dir(rulesFile), "rules_test.yaml"))
	rig.Must(t, err)
	if len(alerts) == 0 || len(alerts) != len(runbooks) {
		t.Errorf("%d alerts have %d runbooks", len(alerts), len(runbooks))
	}
	for _, a := range alerts {
		if !regexp.MustCompile(`alertname: ` + a[1] + `\b.*\n +exp_alerts:`).Match(tests) {
			t.Errorf("no test has %s fire", a[1])
		}
	}
	for _, r := range runbooks {
		text, err := os.ReadFile(filepath.Join("..", "..", r[1]))
		rig.Must(t, err)
		heading := regexp.MustCompile(`(?mi)^#+ ` + strings.ReplaceAll(r[2], "-", "[ -]+") + `$`)
		if !strings.Contains(string(text), `<a id="`+r[2]+`">`) && !heading.Match(text) {
			t.Errorf("%s has no place #%s", r[1], r[2])
		}
	}
}

// A dashboard is what of Grafana's JSON matters here.
type dashboard struct {
	UID    string
	Panels []struct {
		ID      int
		Type    string
		Title   string
		GridPos struct{ H, W, X, Y int }
		Targets []struct{ RefID, Expr string }
	}
}

func readDashboard(t *testing.T) (d dashboard, exprs []string) {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	rig.Must(t, err)
	rig.Must(t, json.Unmarshal(text, &d))
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || p.GridPos.X+p.GridPos.W > 24 || (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("panel %d: %+v", p.ID, p)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			exprs = append(exprs, strings.NewReplacer("$__rate_interval", "10s", "$instance",
				".*").Replace(target.Expr))
		}
	}
	if len(exprs) < 10 {
		t.Fatalf("%d expressions", len(exprs))
	}
	return d, exprs
}

// prometheus is a real one that scrapes a collector.
type prometheus struct {
	t    *testing.T
	base string
}

func startPrometheus(t *testing.T, target string) *prometheus {
	t.Helper()
	path, err := exec.LookPath("prometheus")
	needs.Have(t, err == nil, "prometheus is missing: apt-get install prometheus")
	rules, err := filepath.Abs(rulesFile)
	rig.Must(t, err)
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yaml")
	rig.Must(t, os.WriteFile(config, fmt.Appendf(nil, `
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - job_name: spillway
    static_configs: [{targets: [%q]}]
`, rules, target), 0o600))
	cmd := exec.Command(path, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address=127.0.0.1:0", "--log.format=logfmt")
	log := rig.NewLogBook()
	stderr, err := cmd.StderrPipe()
	rig.Must(t, err)
	rig.Must(t, cmd.Start())
	done := make(chan struct{})
	go func() {
		defer close(done)
		log.Follow(stderr)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-done
		if t.Failed() {
			t.Logf("Prometheus said:\n%s", rig.Tail(log.String(), 4000))
		}
	})
	address := regexp.MustCompile(`msg="Listening on" address=(127\.0\.0\.1:\d+)`)
	p := &prometheus{t: t}
	rig.Eventually(t, "Prometheus listens", func() bool {
		m := address.FindStringSubmatch(log.String())
		if m != nil {
			p.base = "http://" + m[1] + "/api/v1/"
		}
		select {
		case <-done:
			t.Fatal("Prometheus ended")
		default:
		}
		return m != nil
	})
	return p
}

// ask asks its API. An answer that is none yet, while it starts, is an error.
func (p *prometheus) ask(path string, to any) error {
	answer, err := rig.Scraper.Get(p.base + path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var body struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return fmt.Errorf("%s: %w", answer.Status, err)
	}
	if answer.StatusCode != http.StatusOK || body.Status != "success" {
		return fmt.Errorf("%s: %s", answer.Status, body.Error)
	}
	return json.Unmarshal(body.Data, to)
}

// query returns the values of an expression.
func (p *prometheus) query(expr string) (values []string, err error) {
	var data struct {
		Result []struct{ Value [2]any }
	}
	err = p.ask("query?query="+url.QueryEscape(expr), &data)
	for _, r := range data.Result {
		values = append(values, fmt.Sprint(r.Value[1]))
	}
	return values, err
}

// TestPrometheus: a real one scrapes a collector with an output that works and one that is down.
// It has what came in and went out, it loads the alerts, and it answers each expression of the
// dashboard. Whatever alerts and dashboard name is there.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	s, out := rig.NewSetup(t)
	s.To = append(s.To, "down=forward+unix://"+rig.SocketPath(t))
	c := rig.StartCollector(t, s)
	p := startPrometheus(t, c.Admin)
	const events = 7
	good := c.Lane()
	for i := range events {
		id := rig.NewID()
		good.Send(rig.Packed("app", id, rig.Named(fmt.Sprint("event-", i)).Append(nil)), id)
	}
	rig.WaitLines(t, out, events)

	_, exprs := readDashboard(t)
	rules, err := os.ReadFile(rulesFile)
	rig.Must(t, err)
	there := metricNames(c)
	for _, name := range regexp.MustCompile(`\b(?:spillway|process|go)_[a-z_]+\b`).FindAllString(strings.Join(exprs,
		"\n")+string(rules), -1) {
		if !there[name] {
			t.Errorf("alerts or dashboard name %s, which is not in /metrics", name)
		}
	}

	for expr, want := range map[string]string{
		`up{job="spillway"}`:                                                     "1",
		`sum(spillway_input_events_total)`:                                       fmt.Sprint(events),
		`sum(spillway_input_event_fates_total{fate="stored"})`:                   fmt.Sprint(events),
		`spillway_output_events_total{output!="down"}`:                           fmt.Sprint(events),
		`spillway_output_behind_events{output="down"}`:                           fmt.Sprint(events),
		`spillway_output_failing`:                                                "0 1",
		`spillway_output_retries_total{output="down"} > bool 0`:                  "1",
		`spillway_journal_sync_seconds_count > bool 0`:                           "1",
		`sum(spillway_input_peer_errors_total{code="peer-slow-sender"})`:         "0",
		`count by (job) (spillway_build_info) == count by (job) (go_goroutines)`: "1",
	} {
		var got []string
		rig.Eventually(t, fmt.Sprintf("Prometheus says %s is %s", expr, want), func() bool {
			got, err = p.query(expr)
			return err == nil && (strings.Join(got, " ") == want || len(got) == 2 && got[1]+" "+got[0] == want)
		})
	}
	rig.Eventually(t, "all alerts are evaluated, and none has an error", func() bool {
		var data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
		if p.ask("rules", &data) != nil {
			return false
		}
		n := 0
		for _, g := range data.Groups {
			for _, r := range g.Rules {
				if r.LastError != "" {
					t.Fatalf("alert %s: %s", r.Name, r.LastError)
				}
				if r.Health == "ok" {
					n++
				}
			}
		}
		return n == strings.Count(string(rules), "- alert: ")
	})
	for _, expr := range exprs {
		var got []string
		rig.Eventually(t, "Prometheus has an answer to "+expr, func() bool {
			got, err = p.query(expr)
			if err != nil {
				t.Fatalf("%s: %v", expr, err)
			}
			return len(got) > 0
		})
	}
	c.Settles()
	c.Kill() // its drain would wait for the output that is down
}

// metricNames are those that /metrics has, of series and of their families.
func metricNames(c *rig.Collector) map[string]bool {
	c.T.Helper()
	answer, err := rig.Scraper.Get("http://" + c.Admin + "/metrics")
	rig.Must(c.T, err)
	defer answer.Body.Close()
	names := map[string]bool{}
	var text strings.Builder
	s, err := rig.ParseScrape(io.TeeReader(answer.Body, &text))
	rig.Must(c.T, err)
	for key := range s {
		name, _, _ := strings.Cut(key, " ")
		names[name] = true
	}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\w+) `).FindAllStringSubmatch(text.String(), -1) {
		names[m[1]] = true
	}
	return names
}
