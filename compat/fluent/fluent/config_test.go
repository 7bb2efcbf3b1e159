// SPDX-License-Identifier: Apache-2.0

package fluent

import (
	"math"
	"testing"
	"time"
)

// TestPauses: each is half as long again as the one before, up to MaxRetryWait, whatever the
// numbers are.
func TestPauses(t *testing.T) {
	c := Config{RetryWait: 1000, MaxRetryWait: 4000}
	for n, want := range []time.Duration{1: 1000, 1500, 2250, 3375, 4000, 4000} {
		if got := c.pause(n); n > 0 && got != want*time.Millisecond {
			t.Errorf("pause %d is %v", n, got)
		}
	}
	for _, c := range []Config{
		{RetryWait: math.MaxInt, MaxRetryWait: 1},
		{RetryWait: 1, MaxRetryWait: 1},
		{RetryWait: -1, MaxRetryWait: 1},
		{RetryWait: 1, MaxRetryWait: -1},
	} {
		if got := c.pause(math.MaxInt); got < 0 || got > time.Millisecond {
			t.Errorf("%+v: a pause of %v", c, got)
		}
	}
}

func TestPatience(t *testing.T) {
	for _, tt := range []struct {
		c    Config
		want time.Duration
	}{
		{Config{Timeout: time.Second, MaxRetry: 1, RetryWait: 500, MaxRetryWait: 60000}, time.Second},
		{Config{Timeout: time.Second, MaxRetry: 3, RetryWait: 1000, MaxRetryWait: 60000}, 3500 * time.Millisecond},
		{Config{Timeout: time.Second, MaxRetry: math.MaxInt32, RetryWait: 1000, MaxRetryWait: 60000}, 30 * time.Second},
		{Config{Timeout: time.Second, MaxRetry: math.MaxInt32, RetryWait: -1, MaxRetryWait: 60000}, time.Second},
		{Config{Timeout: time.Hour, MaxRetry: -5}, 30 * time.Second},
	} {
		if got := tt.c.patience(maxCloseTime); got != tt.want {
			t.Errorf("%+v: %v, want %v", tt.c, got, tt.want)
		}
	}
}

func TestEventTime(t *testing.T) {
	for _, when := range []time.Time{time.Unix(0, 1), time.Unix(1<<31, 5), time.Unix(math.MaxUint32, 999999999)} {
		e := EventTime(when)
		var b [8]byte
		if err := e.MarshalBinaryTo(b[:]); err != nil || e.Len() != len(b) || e.ExtensionType() != 0 {
			t.Fatal(err)
		}
		var back EventTime
		if err := back.UnmarshalBinary(b[:]); err != nil || !time.Time(back).Equal(when) {
			t.Errorf("%v became %v, %v", when, time.Time(back), err)
		}
	}
	var e EventTime
	if e.UnmarshalBinary(make([]byte, 7)) == nil ||
		e.UnmarshalBinary([]byte{0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}) == nil {
		t.Error("read what is no EventTime")
	}
	if sec, nsec := seconds(time.Unix(-5, 5)); sec != 0 || nsec != 0 {
		t.Error("before 1970")
	}
}
