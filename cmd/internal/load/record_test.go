// SPDX-License-Identifier: Apache-2.0

package load

import (
	"strings"
	"testing"
)

func TestReadRecords(t *testing.T) {
	records, err := ReadRecords(strings.NewReader("{\"a\":1}\n{\"b\":{\"c\":[null]}}{}\n"))
	if err != nil || len(records) != 3 || string(records[0]) != "\x81\xa1a\x01" {
		t.Fatalf("%q, %v", records, err)
	}
	for in, want := range map[string]string{
		"":                       "no records",
		"{\"a\":1}\n[1]":         "record 2",
		"{\"a\":1}\n{\"a\":":     "record 2",
		"plain text":             "record 1",
		strings.Repeat("[", 300): "record 1",
	} {
		if _, err := ReadRecords(strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", in, err, want)
		}
	}
	long := "{\"a\":\"" + strings.Repeat("x", 1<<20) + "\"}"
	if _, err := ReadRecords(strings.NewReader(strings.Repeat(long, 17))); err == nil ||
		!strings.Contains(err.Error(), "more than") {
		t.Error(err)
	}
}

func FuzzRecords(f *testing.F) {
	f.Add("{\"a\":1}\n{\"b\":[true]}")
	f.Add("[")
	f.Fuzz(func(t *testing.T, in string) {
		records, err := ReadRecords(strings.NewReader(in))
		for _, r := range records {
			if _, _, err := split(r); err != nil {
				t.Fatal(err)
			}
		}
		if err == nil && len(records) == 0 {
			t.Fatal("no records and no error")
		}
	})
}
