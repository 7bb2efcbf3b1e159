// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/spillwaylog/spillway/collector"
)

// families asks for /metrics in a format.
func families(t *testing.T, s *Server, accept string) map[string]*dto.MetricFamily {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr().String()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	all := map[string]*dto.MetricFamily{}
	for d := expfmt.NewDecoder(answer.Body, expfmt.ResponseFormat(answer.Header)); ; {
		f := &dto.MetricFamily{}
		if err := d.Decode(f); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[f.GetName()] = f
	}
}

// TestSyncs: how long syncs take is a native histogram for those that ask for one, and has classic
// buckets for all.
func TestSyncs(t *testing.T) {
	s := start(t, "127.0.0.1:0", hooks(1))
	for _, took := range []time.Duration{
		800 * time.Microsecond, 3 * time.Millisecond, 3 * time.Millisecond,
		2 * time.Second,
	} {
		s.Synced(took)
	}
	(*Server)(nil).Synced(time.Second)
	const binary = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
	for _, accept := range []string{binary, "text/plain;version=0.0.4"} {
		m := families(t, s, accept)["spillway_journal_sync_seconds"].GetMetric()[0].GetHistogram()
		if m.GetSampleCount() != 4 || m.GetSampleSum() < 2.006 || m.GetSampleSum() > 2.007 {
			t.Errorf("%s: %v", accept, m)
		}
		got := map[float64]uint64{}
		for _, b := range m.GetBucket() {
			got[b.GetUpperBound()] = b.GetCumulativeCount()
		}
		if got[0.0005] != 0 || got[0.001] != 1 || got[0.005] != 3 || got[2.5] != 4 {
			t.Errorf("%s: %v", accept, got)
		}
		if native := len(m.GetPositiveSpan()) > 0; native != (accept == binary) {
			t.Errorf("%s: native: %v", accept, native)
		}
	}
}

// TestFamilies: each figure is a series of its family, labels that are no text do no harm, and all
// kinds of peer errors are there under their codes.
func TestFamilies(t *testing.T) {
	from := hooks(3)
	stats := from.Stats
	from.Stats = func() collector.Stats {
		s := stats()
		s.Outputs[2].Name = "a\xff\"b\nc"
		return s
	}
	all := families(t, start(t, "127.0.0.1:0", from), "text/plain;version=0.0.4")
	for name, want := range map[string]int{
		"spillway_output_events_total": 3, "spillway_output_dropped_events_total": 9,
		"spillway_input_event_fates_total": 60,
		"spillway_input_events_total":      10, "spillway_counting": 1, "spillway_build_info": 1,
		"spillway_input_peer_errors_total": 25, "go_goroutines": 1,
	} {
		if got := len(all[name].GetMetric()); got != want {
			t.Errorf("%s: %d series, want %d", name, got, want)
		}
	}
	for name, f := range all {
		counts := strings.HasSuffix(name, "_total")
		if strings.HasPrefix(name, "spillway_") &&
			(f.GetHelp() == "" || counts != (f.GetType() == dto.MetricType_COUNTER)) {
			t.Errorf("%s: %v, %q", name, f.GetType(), f.GetHelp())
		}
	}
	if got := all["spillway_output_events_total"].GetMetric()[2].GetLabel()[0].GetValue(); got != "a\ufffd\"b\nc" {
		t.Errorf("%q", got)
	}
	labels := all["spillway_input_peer_errors_total"].GetMetric()[0].GetLabel()
	if labels[0].GetName() != "code" || labels[0].GetValue() != "peer-garbage" {
		t.Error(labels)
	}
}
