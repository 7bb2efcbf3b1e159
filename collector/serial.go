// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"time"

	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/internal/output"
)

// Deliverer delivers one chunk, which is its own to keep, and returns when the other side has it.
// refused are entries that the other side refuses, however often they are sent; the others were
// delivered. After an error the chunk comes again, after a pause, before any other. It returns when
// ctx ends.
type Deliverer = output.Deliverer

// Serial makes an Output of a function that delivers one chunk: it keeps the queue, calls deliver
// for one chunk at a time, in order, tries again after errors (pauses begin at 200 ms and double up
// to 10 s), and tells env how it goes. What deliver had not confirmed when the process ended comes
// again.
//
//	func open(env *collector.OutputEnv) (collector.Output, error) {
//		return collector.Serial(env, func(ctx context.Context, c *forward.Chunk) ([]collector.Rejected, error) {
//			return nil, send(ctx, c)
//		}), nil
//	}
func Serial(env *OutputEnv, deliver Deliverer) Output {
	health := func(h output.Health) {
		if h.Err == nil {
			env.Works()
			return
		}
		env.Failed(h.Err, h.Pause)
	}
	return output.NewSerial(env.Name, deliver, &output.Trip{
		Health: health,
		Report: func(err error) { codes.Of(err, codes.OutputError).Error(env.Log, "output", "error", err) },
	}, retryPause, maxSerialTime)
}

const maxSerialTime = 10 * time.Second
