// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

type zapped struct {
	lossless
	closers
	log *zap.Logger
}

func openZap(path string) (Local, error) {
	w, err := target(path)
	if err != nil {
		return nil, err
	}
	return newZap(zapcore.Lock(zapcore.AddSync(w)), closers{w.Close}), nil
}

func openZapBuffered(path string) (Local, error) {
	w, err := target(path)
	if err != nil {
		return nil, err
	}
	b := &zapcore.BufferedWriteSyncer{WS: zapcore.AddSync(w)}
	return newZap(b, closers{b.Stop, w.Close}), nil
}

func newZap(w zapcore.WriteSyncer, c closers) *zapped {
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	return &zapped{closers: c, log: zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(config), w, zap.InfoLevel))}
}

func (z *zapped) Ten(r *Request) {
	z.log.Info(TheMessage, zap.String("method", r.Method), zap.String("path", r.Path), zap.Int("status", r.Status),
		zap.Int64("bytes", r.Bytes),
		zap.Duration("took", r.Took), zap.String("remote", r.Remote), zap.String("agent", r.Agent),
		zap.String("id", r.ID), zap.Int64("user", r.User),
		zap.Bool("cached", r.Cached))
}

func (z *zapped) One(n int) { z.log.Info(OneMessage, zap.Int("id", n)) }

func (z *zapped) Line(text string) { z.log.Info(text) }
