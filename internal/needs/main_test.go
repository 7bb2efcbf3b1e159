// SPDX-License-Identifier: Apache-2.0

package needs

import (
	"flag"
	"slices"
	"testing"
)

// TestRunning is found among what runs, so are its subtests; what has not begun is not.
func TestRunning(t *testing.T) {
	within(t, "TestRunning")
	together, want := []string{"one", "two"}, "TestRunning (2 at once)"
	// A machine of one core: the second would begin when the first has ended.
	if flag.Lookup("test.parallel").Value.String() == "1" {
		together, want = together[:1], "TestRunning"
	}
	inside, leave := make(chan struct{}), make(chan struct{})
	t.Run("both", func(t *testing.T) {
		for _, name := range together {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				inside <- struct{}{}
				<-leave
			})
		}
		t.Run("paused", func(t *testing.T) { t.Parallel() })
		go func() {
			for range together {
				<-inside
			}
			defer close(leave)
			within(t, want)
		}()
	})
}

func within(t *testing.T, want string) {
	t.Helper()
	if all := running(stacks()); !slices.Contains(all, want) {
		t.Errorf("%q run, want %q", all, want)
	}
}

func TestPackageOf(t *testing.T) {
	for function, want := range map[string]string{
		"github.com/spillwaylog/spillway.TestMain":                         "github.com/spillwaylog/spillway",
		"github.com/spillwaylog/spillway/compat/fluent/test.told.Run":      "compat/fluent/test",
		"github.com/spillwaylog/spillway/test_test.TestMain":               "test",
		"github.com/spillwaylog/spillway/cmd/internal/load.TestMain.func1": "cmd/internal/load",
	} {
		if got := packageOf(function); got != want {
			t.Errorf("%s: %q, want %q", function, got, want)
		}
	}
}
