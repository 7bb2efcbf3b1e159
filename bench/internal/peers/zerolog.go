// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"github.com/rs/zerolog/diode"
)

type zero struct {
	closers
	log    zerolog.Logger
	missed atomic.Uint64
}

func openZerolog(path string) (Local, error) {
	w, err := target(path)
	if err != nil {
		return nil, err
	}
	return newZero(w, closers{w.Close}), nil
}

func openZerologDiode(path string) (Local, error) {
	w, err := target(path)
	if err != nil {
		return nil, err
	}
	z := newZero(nil, nil)
	d := diode.NewWriter(w, 4096, 10*time.Millisecond, func(missed int) { z.missed.Add(uint64(missed)) })
	z.log = z.log.Output(d)
	z.closers = closers{d.Close} // which closes w
	return z, nil
}

func newZero(w io.Writer, c closers) *zero {
	zerolog.TimeFieldFormat = time.RFC3339Nano
	return &zero{closers: c, log: zerolog.New(w).With().Timestamp().Logger()}
}

func (z *zero) Dropped() uint64 { return z.missed.Load() }

func (z *zero) Ten(r *Request) {
	z.log.Info().Str("method", r.Method).Str("path", r.Path).Int("status", r.Status).Int64("bytes", r.Bytes).Dur("took",
		r.Took).
		Str("remote", r.Remote).Str("agent", r.Agent).Str("id", r.ID).Int64("user", r.User).Bool("cached",
		r.Cached).Msg(TheMessage)
}

func (z *zero) One(n int) { z.log.Info().Int("id", n).Msg(OneMessage) }

func (z *zero) Line(text string) { z.log.Info().Msg(text) }
