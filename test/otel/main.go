// SPDX-License-Identifier: Apache-2.0

// Command otel runs the OpenTelemetry Collector's fluentforwardreceiver and writes what it takes as
// lines of JSON, in the way in which the conformance suite reads them: so that it is seen that the
// suite can fail, and on what.
//
//	GOWORK=off go run . -listen 127.0.0.1:24224 -out events.jsonl
//
// A line is what the receiver made of an event: its time, the attribute fluent.tag as the tag, the
// other attributes, and the body under the key "log".
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/fluentforwardreceiver"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"
	metric "go.opentelemetry.io/otel/metric/noop"
	trace "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"
)

// tagAttribute is where the receiver puts the tag.
const tagAttribute = "fluent.tag"

func main() {
	listen := flag.String("listen", "127.0.0.1:24224", "address")
	out := flag.String("out", "events.jsonl", "file to append to")
	flag.Parse()
	if err := run(*listen, *out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(listen, out string) error {
	if err := bound(); err != nil {
		return err
	}
	f, err := os.OpenFile(out, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	log := zap.NewExample()
	factory := fluentforwardreceiver.NewFactory()
	config, ok := factory.CreateDefaultConfig().(*fluentforwardreceiver.Config)
	if !ok {
		return fmt.Errorf("a configuration that is %T", factory.CreateDefaultConfig())
	}
	config.ListenAddress = listen
	settings := receiver.Settings{
		ID: component.NewID(factory.Type()),
		TelemetrySettings: component.TelemetrySettings{
			Logger: log, TracerProvider: trace.NewTracerProvider(), MeterProvider: metric.NewMeterProvider(),
			Resource: pcommon.NewResource(),
		},
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r, err := factory.CreateLogs(ctx, settings, config, &sink{f: f})
	if err != nil {
		return err
	}
	if err := r.Start(ctx, nil); err != nil {
		return err
	}
	<-ctx.Done()
	return r.Shutdown(context.Background())
}

// sink writes lines.
type sink struct {
	mu sync.Mutex
	f  *os.File
}

// Capabilities says that the sink changes nothing.
func (*sink) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// ConsumeLogs writes events.
func (s *sink) ConsumeLogs(_ context.Context, logs plog.Logs) error {
	var b []byte
	for _, rl := range logs.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				b = append(appendLine(b, record), '\n')
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.f.Write(b)
	return err
}

func appendLine(b []byte, record plog.LogRecord) []byte {
	b = append(b, `{"time":`...)
	b = appendJSON(b, record.Timestamp().AsTime().Format(time.RFC3339Nano))
	tag, _ := record.Attributes().Get(tagAttribute)
	b = append(b, `,"tag":`...)
	b = appendJSON(b, tag.AsString())
	for key, v := range record.Attributes().All() {
		if key != tagAttribute {
			b = appendMember(b, key, v)
		}
	}
	if body := record.Body(); body.Type() != pcommon.ValueTypeEmpty {
		b = appendMember(b, "log", body)
	}
	return append(b, '}')
}

func appendMember(b []byte, key string, v pcommon.Value) []byte {
	b = append(appendJSON(append(b, ','), key), ':')
	return appendJSON(b, v.AsRaw())
}

// appendJSON appends a value; what JSON has no words for, NaN for instance, becomes null.
func appendJSON(b []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		text = []byte("null")
	}
	return append(b, text...)
}
