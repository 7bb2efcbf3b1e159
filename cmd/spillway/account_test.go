// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/internal/letters"
)

// TestAccountTable: the account on a terminal, as it is.
func TestAccountTable(t *testing.T) {
	_, now := pictures()
	for _, n := range []*collector.Counts{&now.Counts, &now.Inputs[0].Counts} {
		n.Invalid, n.Oversize = 1, 1
	}
	now.Letters = letters.Stats{Letters: 2, Events: 1200, Dropped: 4}
	var b bytes.Buffer
	if err := printAccount(&b, &now, at); err != nil {
		t.Fatal(err)
	}
	const want = `
INPUT                       IN     STORED  REPEATED  SKIPPED  INVALID  OVERSIZE  REFUSED  READ     CONNECTIONS
forward://127.0.0.1:24224   3,003  3,000   1         0        1        1         0        381 KiB  2
  in chunks                 31     30      1                                     0
forward+unix:///run/s.sock  0      0       0         0        0        0         0        21 B     0
  in chunks                 0      0       0                                     0
  in messages                                                                    2
all inputs                  3,003  3,000   1         0        1        1         0
  in chunks                 31     30      1                                     0
  in messages                                                                    2

OUTPUT                   FOUND  OUT    FILTERED  DROPPED  DEAD LETTERS  BEHIND  BEHIND FOR  WRITTEN
stdout:                  50     3,050  0         0        0             0       0s          293 KiB
file:///var/log/x.jsonl  0      400    0         1        0             2,599   1m2s        39 KiB

wrong: file:///var/log/x.jsonl since 2026-11-21T09:59:30Z (1m30s): no space left on device

journal: 264 KiB used of 4.0 GiB; 0 places cannot be read
repeats: the last 30 chunks are recognised, 1h0m0s back
dead letters: 2 with 1,200 events are there; 4 events were dropped since the start
`
	if got := "\n" + b.String(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if err := now.Check(); err != nil {
		t.Errorf("figures that cannot be: %v", err)
	}
	if printAccount(full{}, &now, time.Now()) == nil {
		t.Error("nothing can be written, and that is no error")
	}
}

// TestAccountJSON: the account elsewhere is one line, one JSON object, and no number is in it
// twice.
func TestAccountJSON(t *testing.T) {
	_, now := pictures()
	var b bytes.Buffer
	logAccount(&b, &now, strings.Clone)
	var got struct {
		Msg     string
		Inputs  []map[string]any
		Outputs []struct {
			URL                       string
			Found, Out, Behind, Bytes int64
			BehindBytes               int64   `json:"behind_bytes"`
			BehindSeconds             float64 `json:"behind_seconds"`
			Dropped                   map[string]int64
			Failure                   *struct {
				Since time.Time
				Tries int
				Error string
			}
		}
		Journal struct{ Used, Limit, Files int64 }
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || strings.Count(b.String(), "\n") != 1 {
		t.Fatalf("%v: %s", err, &b)
	}
	if got.Msg != "account" || len(got.Inputs) != 2 || got.Inputs[0]["stored"] != 3000.0 ||
		got.Inputs[1]["refused_messages"] != 2.0 || got.Inputs[0]["bytes"] != 390000.0 {
		t.Errorf("%s", &b)
	}
	if o := got.Outputs[1]; o.URL != "file:///var/log/x.jsonl" || o.Out != 400 || o.Behind != 2599 ||
		o.BehindBytes != 270000 || o.BehindSeconds != 62 ||
		o.Dropped["unreadable"] != 1 || o.Failure == nil || o.Failure.Error != "no space left on device" ||
		o.Failure.Tries != 450 {
		t.Errorf("%+v in %s", o, &b)
	}
	if got.Outputs[0].Failure != nil || got.Journal.Used != 270000 || got.Journal.Limit != 4<<30 {
		t.Errorf("%s", &b)
	}
	if n := strings.Count(b.String(), ":3003,"); n != 1 {
		t.Errorf("what came in stands there %d times: %s", n, &b)
	}
}
