// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// StepsChunk is one of those that a run of steps which remember events is sent, the same each time.
// Its events have times that go on, some of them late, and some of a clock that is wrong.
func StepsChunk(seed uint64, i int) *forward.Chunk {
	r := rand.New(rand.NewPCG(seed, uint64(i)))
	c := &forward.Chunk{
		Tag: []string{"throttled", "alike", "again"}[i%3],
		ID:  fmt.Appendf(nil, "remembered-%d-%d", seed, i), UniqueID: true,
	}
	for range 1 + r.IntN(60) {
		sec := 1_700_000_000 + int64(i)/4 - int64(r.IntN(3))
		if r.IntN(50) == 0 {
			sec += int64(r.IntN(1000)) - 500
		}
		k := r.IntN(30)
		if r.IntN(4) == 0 {
			k = r.IntN(3000)
		}
		c.Entries = forward.AppendEventTime(append(c.Entries, 0x92), sec, uint32(r.IntN(1e9)))
		c.Entries = msgpack.AppendMapHeader(c.Entries, 4)
		c.Entries = msgpack.AppendInt(msgpack.AppendString(c.Entries, "k"), int64(k))
		c.Entries = msgpack.AppendInt(msgpack.AppendString(c.Entries, "n"), int64(c.Events))
		c.Entries = msgpack.AppendInt(msgpack.AppendString(c.Entries, "part"), int64(k%3))
		c.Entries = msgpack.AppendString(msgpack.AppendString(c.Entries, "pad"), strings.Repeat("x", r.IntN(200)))
		c.Events++
	}
	return c
}

// SendAll sends chunks, and is done when all are acked.
func SendAll(ctx context.Context, client *forward.Client, chunks ...*forward.Chunk) error {
	errs := make(chan error, len(chunks))
	for _, c := range chunks {
		if _, err := client.Start(c, func(err error) { errs <- err }); err != nil {
			return err
		}
	}
	var all []error
	for range chunks {
		select {
		case err := <-errs:
			all = append(all, err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.Join(all...)
}
