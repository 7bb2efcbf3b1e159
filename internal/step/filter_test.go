// SPDX-License-Identifier: Apache-2.0

package step

import (
	"errors"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/msgpack"
)

// filtered is an entry with a record of one text.
func filtered(key, value string) []byte {
	b := msgpack.AppendArrayHeader(nil, 2)
	b = msgpack.AppendInt(b, 7)
	b = msgpack.AppendMapHeader(b, 1)
	b = msgpack.AppendString(b, key)
	return msgpack.AppendString(b, value)
}

func TestFilter(t *testing.T) {
	for _, tt := range []struct {
		tag, where   string
		of           string // the event
		takes, holds bool
	}{
		{"", "", "app.web", true, true},
		{"**", "", "app.web", true, true},
		{"app.*", "", "app.web", true, true},
		{"app.*", "", "sys.web", false, true},
		{"{app,sys}.**", `level == "ERROR"`, "sys.a.b", true, false},
		{"", `level == "INFO" and tag == "x"`, "x", true, true},
		{"", `level == "INFO" and tag == "x"`, "y", true, false},
	} {
		f, err := ReadFilter(tt.tag, tt.where, nil)
		if err != nil {
			t.Fatalf("%q %q: %v", tt.tag, tt.where, err)
		}
		for range 2 { // the second time from memory
			if takes, holds := f.Takes(tt.of), f.Holds(tt.of, filtered("level", "INFO")); takes != tt.takes ||
				holds != tt.holds {
				t.Errorf("%+v: takes %t, holds %t", tt, takes, holds)
			}
		}
		if f.Everything() != (tt.where == "") {
			t.Errorf("%+v: everything", tt)
		}
		if tt.where != "" && f.Holds(tt.of, []byte{0x93}) {
			t.Errorf("%+v holds of what is no entry", tt)
		}
	}
	for _, tt := range []struct {
		tag, where, of string
		at             int
		text           string
	}{
		{"a.**b", "", "tag", -1, "** stands for whole parts"},
		{"{a", "", "tag", -1, "braces stand in pairs"},
		{strings.Repeat("a", maxFilter+1), "", "tag", -1, "it may have 8192"},
		{"", `level = "x"`, "where", 6, "== is"},
		{"a", `"x" == level`, "where", 0, "begins with a field"},
		{"a", strings.Repeat("(", 1000), "where", -2, "nests too deep"},
		{"a", strings.Repeat("a", maxFilter+1), "where", -1, "it may have 8192"},
	} {
		_, err := ReadFilter(tt.tag, tt.where, nil)
		var wrong *FilterError
		if !errors.As(err, &wrong) || wrong.Of != tt.of || tt.at != -2 && wrong.At != tt.at ||
			!strings.Contains(wrong.Error(), tt.text) {
			t.Errorf("%.20q %.20q: %v", tt.tag, tt.where, err)
		}
	}
	f, err := ReadFilter("app.**", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 * maxTags {
		f.Takes(strings.Repeat("a", i%100) + string(rune('a'+i/100%26)) + "." + strings.Repeat("b", i/2600))
	}
	if len(f.tags.shares) > maxTags {
		t.Errorf("%d tags are remembered", len(f.tags.shares))
	}
}

func BenchmarkFilter(b *testing.B) {
	f, err := ReadFilter("app.*", `level == "ERROR"`, nil)
	if err != nil {
		b.Fatal(err)
	}
	entry := filtered("level", "INFO")
	b.ReportAllocs()
	for b.Loop() {
		if f.Takes("app.web") && f.Holds("app.web", entry) {
			b.Fatal("it holds")
		}
	}
}

// FuzzFilter: whatever pattern, condition and entry come, a filter does not panic, says the same
// twice, and of every mistake where it is.
func FuzzFilter(f *testing.F) {
	f.Add("app.*", `level == "ERROR"`, "app.web", filtered("level", "ERROR"))
	f.Add("{a,b}.**", `not (x in [1, "y"] or z matches "^a+$")`, "a", filtered("x", "y"))
	f.Add("**a", `x = 1`, "", []byte{0x92, 0xff, 0xdf, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, tag, where, of string, entry []byte) {
		f, err := ReadFilter(tag, where, nil)
		if err != nil {
			var wrong *FilterError
			text := map[string]string{"tag": tag, "where": where}
			if !errors.As(err, &wrong) || wrong.At > len(text[wrong.Of]) {
				t.Fatal(err)
			}
			return
		}
		takes, holds := f.Takes(of), f.Holds(of, entry)
		if f.Takes(of) != takes || f.Holds(of, entry) != holds {
			t.Error("it does not know")
		}
	})
}
