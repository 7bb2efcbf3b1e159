// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"net"
	"time"
)

// postpone puts off a write deadline, when half of it is over. now is the time and expires when it
// is, by the same clock.
func postpone(nc net.Conn, now int64, expires *int64, limit time.Duration) error {
	if *expires-now >= int64(limit/2) {
		return nil
	}
	*expires = now + int64(limit)
	return nc.SetWriteDeadline(time.Now().Add(limit))
}

// errAgain says that nothing has come yet. Package tls goes on after errors that are temporary.
var errAgain net.Error = again{}

type again struct{}

func (again) Error() string   { return "forward: nothing has come yet" }
func (again) Timeout() bool   { return true }
func (again) Temporary() bool { return true }
