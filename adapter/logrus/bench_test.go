// SPDX-License-Identifier: Apache-2.0

package spillwaylogrus

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/internal/alike"
)

var fields = logrus.Fields{
	"method": "GET", "path": "/orders/42", "status": 200, "bytes": int64(1 << 20), "took": 12 * time.Millisecond,
	"user": "ada",
	"ok":   true, "ratio": 0.25, "error": io.ErrUnexpectedEOF, "task_id": "5a1f0e3c",
}

// BenchmarkFormat is the formatting alone, with logrus's buffer.
func BenchmarkFormat(b *testing.B) {
	article := logrus.Fields{"service": "shop", "task_id": "5a1f0e3c"}
	for _, c := range []struct {
		name string
		data logrus.Fields
		f    logrus.Formatter
	}{
		{"ten/logrus", fields, &logrus.JSONFormatter{}},
		{"ten/spillway", fields, &Formatter{}},
		{"article/logrus", article, &logrus.JSONFormatter{FieldMap: logrus.FieldMap{logrus.FieldKeyTime: "log_date"}}},
		{"article/spillway", article, NewServiceFormatter("shop")},
	} {
		b.Run(c.name, func(b *testing.B) {
			e := &logrus.Entry{
				Time: time.Now(), Level: logrus.InfoLevel, Message: "order placed", Data: c.data,
				Buffer: new(bytes.Buffer),
			}
			b.ReportAllocs()
			for b.Loop() {
				e.Buffer.Reset()
				if _, err := c.f.Format(e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCall is a whole call of logrus with ten fields. The hook's goes into a ring.
func BenchmarkCall(b *testing.B) {
	toFile := func(b *testing.B, l *logrus.Logger) {
		f, err := os.Create(filepath.Join(b.TempDir(), "log"))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = f.Close() })
		l.SetOutput(f)
	}
	for _, c := range []struct {
		name string
		set  func(b *testing.B, l *logrus.Logger)
	}{
		{"logrus to nothing", func(_ *testing.B, l *logrus.Logger) {
			l.SetFormatter(&logrus.JSONFormatter{})
			l.SetOutput(io.Discard)
		}},
		{"logrus to a file", func(b *testing.B, l *logrus.Logger) {
			l.SetFormatter(&logrus.JSONFormatter{})
			toFile(b, l)
		}},
		{"formatter to nothing", func(_ *testing.B, l *logrus.Logger) {
			l.SetFormatter(&Formatter{})
			l.SetOutput(io.Discard)
		}},
		{"formatter to a file", func(b *testing.B, l *logrus.Logger) {
			l.SetFormatter(&Formatter{})
			toFile(b, l)
		}},
		{"neither", func(_ *testing.B, l *logrus.Logger) { // what logrus takes for itself
			l.SetFormatter(nothing{})
			l.SetOutput(io.Discard)
		}},
		{"hook", func(b *testing.B, l *logrus.Logger) {
			log := alike.Open(b, "discard:", &spillway.Options{Overflow: spillway.OverflowBlock})
			Redirect(l, log)
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			l := logrus.New()
			c.set(b, l)
			e := l.WithFields(fields)
			b.ReportAllocs()
			for b.Loop() {
				e.Info("order placed")
			}
		})
	}
}
