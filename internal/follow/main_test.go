// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"os"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
)

func TestMain(m *testing.M) { os.Exit(needs.Main(m)) }

// rest sleeps in a bubble, whose time is its own. Receiving from a timer's channel there crashes
// the race detector.
func rest(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // no real time passes
