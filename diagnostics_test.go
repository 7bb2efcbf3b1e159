// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/internal/output"
)

func TestDiagnosticsEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		var s *diagnostics
		s = newDiagnostics(func(err error) {
			told = append(told, err.Error())
			if err.Error() == "one" {
				s.report(errors.New("two")) // from within
				panic("who is told may panic")
			}
		}, "")
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

// TestPlain takes the names of all packages inside out of texts.
func TestPlain(t *testing.T) {
	names, err := os.ReadDir("internal")
	if err != nil {
		t.Fatal(err)
	}
	forTests := []string{"alike", "floors", "needs", "testcert"}
	boom := errors.New("boom")
	for _, e := range names {
		name := e.Name()
		if slices.Contains(forTests, name) {
			continue
		}
		err := plainly(errors.Join(fmt.Errorf("%[1]s: one: %[1]s: %[1]s: two %[1]s: %[2]w", name, boom),
			fmt.Errorf("%[1]s: three (%[1]s: four)", name)))
		if want := "spillway: one: two " + name + ": boom\nthree (four)"; err.Error() != want || !errors.Is(err, boom) {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

// TestDiagnosticsSay has a server that is down: what Diagnostics gets names it, the attempt, what
// is held, and when the next attempt is.
func TestDiagnosticsSay(t *testing.T) {
	boom := errors.New("boom")
	told := make(chan error, 100)
	l := opened(t, "forward://h:1?min_backoff=1h&max_backoff=1h", &Options{
		Shm:  noShm,
		Dial: func(context.Context, string, string) (net.Conn, error) { return nil, boom },
		Diagnostics: func(err error) {
			select {
			case told <- err:
			default:
			}
		},
	})
	l.Info("m")
	says := regexp.MustCompile(`^spillway: forward://h:1: attempt 1 to deliver failed: .*boom; 1 events are held; the next attempt is in [0-9hm.]+s$`)
	if err := <-told; !says.MatchString(err.Error()) || !errors.Is(err, boom) {
		t.Errorf("%q is not %s", err, says)
	}
	l.c.failed(output.Health{Err: boom, Tries: 7, Pause: 1500 * time.Millisecond})
	if err, want := <-told, "spillway: forward://h:1: attempt 7 to deliver failed: boom; 1 events are held; the next attempt is in 1.5s"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = l.Close(ctx)
}

// TestDiagnosticsOfRoom says what is full.
func TestDiagnosticsOfRoom(t *testing.T) {
	for _, c := range []struct {
		dir  string
		err  error
		want string
	}{
		{"", ErrFull, "no room, and counted (the ring is full, and there is no Dir); 0 events are held"},
		{t.TempDir(), ErrFull, "no room, and counted (ring and Dir are full); 0 events are held"},
		{
			t.TempDir(), fmt.Errorf("%w, for 1s", ErrSlow),
			"no room, since the disk takes less than comes, for 1s, and counted (the ring is full, Dir is not); 0 events are held",
		},
	} {
		var told []string
		l := opened(t, "discard:", &Options{
			Shm: noShm, Dir: c.dir,
			Diagnostics: func(err error) { told = append(told, err.Error()) },
		})
		l.c.full(c.err)
		l.c.full(c.err) // once a minute
		if err := closed(t, l); err != nil {
			t.Fatal(err)
		}
		if want := "spillway: discard:: event refused: " + c.want; !slices.Equal(told, []string{want}) {
			t.Errorf("told %q, want %q", told, want)
		}
	}
}

func TestDiagnosticsHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := newDiagnostics(func(error) { <-release }, "")
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
	if got, want := string(b), strings.Repeat("spillway: line\n", burst)+
		"spillway: line (20 lines left out before)\n"; got != want {
		t.Errorf("%q", got)
	}
}
