// SPDX-License-Identifier: Apache-2.0

package load

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const rest = "S 1 1 1 0 -1 4194560 21066 1 175 0 150 25 7 8 20 0 8 0 42 1802000000 3000 18446744073709551615 1 1 0"
	for _, tt := range []struct {
		text string
		want usage
		bad  bool
	}{
		{text: "17 (spillway) " + rest, want: usage{1750 * time.Millisecond, 3000 * 4096}},
		{text: "17 (a) b) (c\n) " + rest, want: usage{1750 * time.Millisecond, 3000 * 4096}},
		{text: "17 (cut) S 1 1", bad: true},
		{text: "17 (cut) " + strings.ReplaceAll(rest, "150", "x"), bad: true},
		{text: "", bad: true},
	} {
		got, err := parseStat([]byte(tt.text), 4096)
		if (err != nil) != tt.bad || got != tt.want {
			t.Errorf("%q: %+v, %v", tt.text, got, err)
		}
	}
}

func TestUsageOfThis(t *testing.T) {
	u, err := usageOf([]int{os.Getpid(), os.Getpid()})
	if err != nil || u.resident <= 0 {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := usageOf([]int{0x7fffffff}); err == nil {
		t.Error("measured a process that does not exist")
	}
}

func FuzzStat(f *testing.F) {
	f.Add([]byte("17 (a) b) S 1 1 1 0 -1 4194560 21066 1 175 0 150 25 7 8 20 0 8 0 42 1802000000 3000 1"))
	f.Fuzz(func(_ *testing.T, text []byte) { _, _ = parseStat(text, 4096) })
}
