// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"

	"github.com/spillwaylog/spillway/bench/internal/daemon"
)

// newDaemon starts a server that reads and discards, and acks what asks for it. It returns its
// address.
func newDaemon(tb testing.TB) string {
	tb.Helper()
	d, err := daemon.Start(daemon.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { d.Close() })
	return d.Addr()
}
