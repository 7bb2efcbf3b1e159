// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"time"

	"github.com/sirupsen/logrus"
)

type rus struct {
	lossless
	closers
	log *logrus.Logger
}

func openLogrus(path string) (Local, error) {
	w, err := target(path)
	if err != nil {
		return nil, err
	}
	l := logrus.New()
	l.SetOutput(w)
	l.SetFormatter(&logrus.JSONFormatter{TimestampFormat: time.RFC3339Nano})
	return &rus{closers: closers{w.Close}, log: l}, nil
}

func (l *rus) Ten(r *Request) {
	l.log.WithFields(logrus.Fields{
		"method": r.Method, "path": r.Path, "status": r.Status, "bytes": r.Bytes, "took": r.Took,
		"remote": r.Remote, "agent": r.Agent, "id": r.ID, "user": r.User, "cached": r.Cached,
	}).Info(TheMessage)
}

func (l *rus) One(n int) { l.log.WithField("id", n).Info(OneMessage) }

func (l *rus) Line(text string) { l.log.Info(text) }
