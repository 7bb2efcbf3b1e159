// SPDX-License-Identifier: Apache-2.0

package await

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestPauseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		began := time.Now()
		if err := Pause(ctx, time.Hour); !errors.Is(err, context.Canceled) || time.Since(began) > 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
