// SPDX-License-Identifier: Apache-2.0

package await

import (
	"context"
	"time"
)

// Pause waits for d; an error only if ctx ends first.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
