// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"log/slog"
	"time"
)

// logFlags are how a command writes its own messages.
type logFlags struct {
	LogFormat string `help:"Format of the messages on standard error: text, json." enum:"text,json" default:"text"`
	LogLevel  string `help:"Least level of them: debug (each connection), info, warn, error." enum:"debug,info,warn,error" default:"info"`
}

func (f *logFlags) logger(w io.Writer) *slog.Logger {
	return f.hiding(w, func(text string) string { return text })
}

// hiding is a logger that shows of texts what show makes of them.
func (f *logFlags) hiding(w io.Writer, show func(string) string) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.LogLevel)); err != nil {
		panic(err) // the flag's values are levels
	}
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch v := a.Value.Any().(type) {
		case string:
			a.Value = slog.StringValue(show(v))
		case error:
			a.Value = slog.StringValue(show(v.Error()))
		case time.Duration:
			a.Value = slog.StringValue(v.String()) // JSON has it as text does
		}
		return a
	}}
	if f.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
