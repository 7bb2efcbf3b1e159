// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTroubles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		var s *troubles
		s = newTroubles(func(err error) {
			told = append(told, err.Error())
			if err.Error() == "one" {
				s.report(errors.New("two")) // from within
				panic("who is told may panic")
			}
		})
		s.report(nil)
		s.report(errors.New("one"))
		synctest.Wait()
		if got := strings.Join(told, " "); got != "one two" {
			t.Errorf("told %s", got)
		}
		told = nil
		for range maxWaiting + 5 {
			s.report(errors.New("x"))
		}
		s.close(t.Context())
		s.report(errors.New("late"))
		synctest.Wait()
		if n := len(told); n < maxWaiting || n > maxWaiting+5 {
			t.Errorf("told %d", n)
		}
	})
}

func TestTroublesHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := newTroubles(func(error) { <-release })
		s.report(errors.New("x"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.close(ctx)
		if ctx.Err() == nil {
			t.Error("close did not wait")
		}
		close(release)
	})
}

func TestStandardError(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stderr
	os.Stderr = w
	defer func() { os.Stderr = before }()
	synctest.Test(t, func(*testing.T) {
		s := &stderr{}
		for range 30 {
			s.tell(errors.New("line"))
		}
		<-time.After(time.Second)
		s.tell(errors.New("spillway: line"))
	})
	w.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(b), strings.Repeat("spillway: line\n", burst)+"spillway: line (20 lines left out before)\n"; got != want {
		t.Errorf("%q", got)
	}
}
