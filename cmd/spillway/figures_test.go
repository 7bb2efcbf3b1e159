// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/msgpack"
)

// figures are what /metrics says, by name and the values of its labels in their order, such as
// spillway_input_event_fates_total stored apps.
type figures map[string]float64

func readFigures(t *testing.T, address string) figures {
	t.Helper()
	_, body := fetch(t, "http://"+address+"/metrics")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	f := figures{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			key := name
			for _, l := range m.GetLabel() {
				key += " " + l.GetValue()
			}
			switch family.GetType() {
			case dto.MetricType_COUNTER:
				f[key] = m.GetCounter().GetValue()
			case dto.MetricType_GAUGE:
				f[key] = m.GetGauge().GetValue()
			}
		}
	}
	return f
}

func fetch(t *testing.T, url string) (int, string) {
	t.Helper()
	return ask(t, http.MethodGet, url)
}

func ask(t *testing.T, method, url string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(b)
}

// sum is of all figures that begin so.
func (f figures) sum(prefix string) (n float64) {
	for key, value := range f {
		if strings.HasPrefix(key, prefix) {
			n += value
		}
	}
	return n
}

// check asserts the laws of collector.Stats from the figures alone: for these inputs and outputs.
func (f figures) check(t *testing.T, inputs, outputs []string) {
	t.Helper()
	stored := 0.0
	for _, in := range inputs {
		fates, chunks := 0.0, 0.0
		for _, fate := range []string{"stored", "repeated", "skipped", "invalid", "oversize", "refused"} {
			fates += f["spillway_input_event_fates_total "+fate+" "+in]
			chunks += f["spillway_input_chunk_fates_total "+fate+" "+in]
		}
		stored += f["spillway_input_event_fates_total stored "+in]
		if n := f["spillway_input_events_total "+in]; n != fates || n == 0 {
			t.Errorf("input %s: %v events came, and something became of %v", in, n, fates)
		}
		if n := f["spillway_input_chunks_total "+in]; n != chunks {
			t.Errorf("input %s: %v chunks came, and something became of %v", in, n, chunks)
		}
	}
	for _, out := range outputs {
		had := f["spillway_output_found_events "+out] + stored
		became := f["spillway_output_events_total "+out] + f["spillway_output_filtered_events_total "+
			out] + f.sum("spillway_output_dropped_events_total "+out+" ") +
			f["spillway_output_dead_lettered_events_total "+out] + f["spillway_output_behind_events "+out]
		if had != became {
			t.Errorf("output %s: it had %v events, and something became of %v: %v", out, had, became, f)
		}
	}
}

// TestFiguresAddUp: events of every fate, an output that works, one that is down and one that gives
// up, before and after a restart: the laws hold in /metrics.
func TestFiguresAddUp(t *testing.T) {
	t.Parallel()
	rounds := 1 // each ends with a drain in vain
	if needs.Long() {
		rounds = 2
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "spillway.yaml")
	text := `
data: DIR/data
admin: 127.0.0.1:0
max_event: 64KiB
inputs:
  apps: forward://127.0.0.1:0
  pipe: {url: "lines://127.0.0.1:0", parse: json}
outputs:
  works: file:DIR/out.jsonl
  down: forward+unix:DIR/none.sock
  gives: forward+unix:DIR/none.sock?max_behind=1MiB&when_behind=drop
routes:
  - {match: t, to: [works, gives], continue: true, do: [{sample: {share: 0.9}}]}
  - {match: "**", to: [down]}
`
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "DIR", filepath.ToSlash(dir))), 0o600); err != nil {
		t.Fatal(err)
	}
	const enough = 3 << 20 // bytes, so that one output gives up
	for round := range rounds {
		s := startServe(t, "-c", file, "--log-level", "info")
		address, _ := s.next("telling")["address"].(string)
		url, _ := s.next("listening")["url"].(string)
		client := &forward.Client{Network: "tcp", Address: strings.TrimPrefix(url, "forward://")}
		sent := 0
		for bytes := 0; bytes < enough; {
			entries, events := mixedEntries(200)
			if err := client.Send(t.Context(),
				&forward.Chunk{Tag: "t", ID: forward.NewID(), Entries: entries, Events: events}); err != nil {
				t.Fatal(err)
			}
			sent += events
			bytes += len(entries)
		}
		_ = client.Close()
		again := &forward.Client{Network: "tcp", Address: client.Address}
		id := forward.NewID()
		entries, events := mixedEntries(1)
		for range 2 { // on another connection, the same id: a repeat
			if err := again.Send(t.Context(),
				&forward.Chunk{Tag: "t", ID: id, UniqueID: true, Entries: entries, Events: events}); err != nil {
				t.Fatal(err)
			}
			sent += events
		}
		_ = again.Close()
		deadline := time.Now().Add(4 * time.Minute)
		var f figures
		for {
			f = readFigures(t, address)
			settled := f["spillway_counting"] == 0 && f["spillway_output_behind_events works"] == 0 &&
				f.sum("spillway_output_dropped_events_total gives behind") > 0
			if settled || time.Now().After(deadline) {
				break
			}
			<-time.After(50 * time.Millisecond)
		}
		f.check(t, []string{"apps"}, []string{"works", "down", "gives"})
		for key, want := range map[string]bool{
			"spillway_input_event_fates_total stored apps": true, "spillway_input_event_fates_total invalid apps": true,
			"spillway_input_event_fates_total oversize apps": true,
			"spillway_input_event_fates_total skipped apps":  true,
			"spillway_input_event_fates_total repeated apps": true, "spillway_output_behind_events down": true,
			"spillway_output_found_events down": round > 0, "spillway_output_failing works": false,
			"spillway_dead_letters":                       true,
			"spillway_output_filtered_events_total works": true, "spillway_output_filtered_events_total down": false,
		} {
			if (f[key] > 0) != want {
				t.Errorf("round %d: %s is %v", round, key, f[key])
			}
		}
		if got := f["spillway_input_events_total apps"]; got != float64(sent) {
			t.Errorf("round %d: %v events came, %d were sent", round, got, sent)
		}
		s.end()
		if code := <-s.code; code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
}

// mixedEntries are n good events, and one that is invalid, one that is skipped, and one that is too
// large.
func mixedEntries(n int) (entries []byte, events int) {
	add := func(record []byte) {
		entries = msgpack.AppendArrayHeader(entries, 2)
		entries = msgpack.AppendUint(entries, uint64(1_800_000_000+events))
		entries = append(entries, record...)
		events++
	}
	for range n {
		add(msgpack.AppendString(msgpack.AppendString(msgpack.AppendMapHeader(nil, 1), "msg"),
			strings.Repeat("x", 200)))
	}
	add(msgpack.AppendString(nil, "no record"))
	add(msgpack.AppendNil(nil))
	add(msgpack.AppendString(msgpack.AppendString(msgpack.AppendMapHeader(nil, 1), "msg"), strings.Repeat("x", 70_000)))
	return entries, events
}

// TestStatusHides: /status and /config have what variables and files gave nowhere, and say which
// output does not work.
func TestStatusHides(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("HIDDEN-value\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "spillway.yaml")
	text := "data: DIR/data\nadmin: 127.0.0.1:0\ninputs:\n  in: {url: 'forward://127.0.0.1:0', tag: \"${file:secret}\"}\n" +
		"outputs:\n  out: {url: 'forward+unix:DIR/${file:secret}.sock'}\n"
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "DIR", filepath.ToSlash(dir))), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServe(t, "-c", file)
	address, _ := s.next("telling")["address"].(string)
	url, _ := s.next("listening")["url"].(string)
	if got := command(t, "one\n", "send", "--to", url); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	var told struct {
		Version string
		Outputs []struct {
			Name, URL string
			Behind    int64
			Failure   *struct{ Error string }
		}
		Inputs []struct{ Name, URL string }
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for told.Outputs == nil || told.Outputs[0].Failure == nil {
		_, body := fetch(t, "http://"+address+"/status")
		if err := json.Unmarshal([]byte(body), &told); err != nil || ctx.Err() != nil {
			t.Fatal(err, body)
		}
		if strings.Contains(body, "HIDDEN") {
			t.Fatal(body)
		}
		<-time.After(20 * time.Millisecond)
	}
	if told.Version != version() || told.Outputs[0].Name != "out" || told.Inputs[0].Name != "in" ||
		told.Outputs[0].Behind != 1 {
		t.Errorf("%+v", told)
	}
	if _, body := fetch(t, "http://"+address+"/config"); strings.Contains(body, "HIDDEN") ||
		!strings.Contains(body, "\n  out: \"forward+unix:") || !strings.Contains(body, "***.sock") {
		t.Error(body)
	}
	s.end()
	for line := range s.lines {
		if text, err := json.Marshal(line); err != nil || strings.Contains(string(text), "HIDDEN") {
			t.Errorf("%s %v", text, err)
		}
	}
}
