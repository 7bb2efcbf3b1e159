// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// TestEnvelope: the parameters of an output say how its lines look. An output whose parameters
// change goes on where it was: what it has written does not come again in the new form, and nothing
// is left out.
func TestEnvelope(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out.jsonl")
	want := ""
	for i, tt := range []struct{ query, envelope string }{
		{"", `"time":"2023-11-14T22:13:20.000000005Z","tag":"t",`},
		{"?time_key=ts&time_format=unix&tag_key=logger", `"ts":1700000000.000000005,"logger":"t",`},
		{"?time_key=-&tag_key=-", ``},
		{"?time_format=02/Jan/2006:15:04:05%20-0700", `"time":"14/Nov/2023:22:13:20 +0000","tag":"t",`},
		{"", `"time":"2023-11-14T22:13:20.000000005Z","tag":"t",`},
	} {
		var stdout bytes.Buffer
		c := run(t, &Config{
			Outputs: Ends(fileURL(out)+tt.query, "stdout:"+tt.query), Dir: filepath.Join(dir, "data"),
			Stdout: &stdout,
		})
		send(t, c.client(t), numbered("t", i, 1))
		if err := c.stop(); err != nil {
			t.Fatal(err)
		}
		line := "{" + tt.envelope + `"n":` + string(rune('0'+i)) + "}\n"
		want += line
		wantFile(t, out, want)
		if stdout.String() != line {
			t.Errorf("standard output: %q, want %q", &stdout, line)
		}
	}
}

func TestPlanOutputErrors(t *testing.T) {
	for url, want := range map[string]string{
		"file:a?time_key=tag":                         `"tag" stands for two things`,
		"file:a?tag_key=metadata":                     `"metadata" stands for two things`,
		"stdout:?time_key=%22":                        "without quotes",
		"stdout:?time_format=iso":                     `"iso" is none of rfc3339, unix,`,
		"file:a?time_key=a&time_key=b":                `"time_key" is given twice`,
		"file:a?timekey=a":                            "file takes max_behind, when_behind, format, flags, time_key, time_format, tag_key",
		"discard:?time_key=a":                         "discard takes max_behind, when_behind",
		"file:a?time_format=":                         "has no value",
		"file:a?time_format=2006-01-02":               "that says date and time of day",
		"stdout:?max_behind=10":                       `"10" is too little`,
		"stdout:?max_behind=9s":                       `"9s" is too little`,
		"stdout:?max_behind=-1h":                      `"-1h" is too little`,
		"discard:?max_behind=1M":                      `"1M" is neither a size such as 10GiB nor a duration such as 1h`,
		"forward://h?when_behind=wait":                `"wait" is not one of block, drop, dead_letter`,
		"forward://h?max_behind=1GiB&max_behind=2GiB": `"max_behind" is given twice`,
		"stdout:?time_format=RFC3339MST":              "does not say how far from UTC",
	} {
		if _, err := planOutput(&Config{Stdout: io.Discard}, &End{URL: url}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", url, err, want)
		}
	}
}

// TestDefaults: the zero value listens, keeps and writes where the README says.
func TestDefaults(t *testing.T) {
	for _, c := range []*Config{nil, {}} {
		f, err := c.withDefaults()
		if err != nil || len(f.Inputs) != 1 || f.Inputs[0].URL != "forward://127.0.0.1:24224" ||
			f.Dir != "spillway-data" ||
			len(f.Outputs) != 1 || f.Outputs[0].URL != "stdout:" || f.Ack != AckSynced || f.JournalBytes != 4<<30 {
			t.Errorf("%+v, %v", f, err)
		}
	}
}

// TestOutputsMeet: two outputs that could write one file are refused, by both their names.
func TestOutputsMeet(t *testing.T) {
	dir := fileURL(t.TempDir())
	for _, tt := range []struct {
		a, b  string
		meets bool
	}{
		{"/{tag}.jsonl", "/web.jsonl", true},
		{"/{tag}.jsonl", "/{date}.jsonl", true},
		{"/a/{tag}.jsonl", "/b/{tag}.jsonl", false},
		{"/a-{tag}.jsonl", "/b-{tag}.jsonl", false},
	} {
		_, err := planOutputs(&Config{Outputs: []End{{Name: "one", URL: dir + tt.a}, {Name: "two", URL: dir + tt.b}}})
		if (err != nil) != tt.meets {
			t.Errorf("%s, %s: %v", tt.a, tt.b, err)
		}
		if err != nil && (!strings.Contains(err.Error(), tt.b) || !strings.Contains(err.Error(), "output one")) {
			t.Errorf("%s, %s: %v", tt.a, tt.b, err)
		}
	}
}
