// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"log/slog"
)

// logFlags are how a command writes its own messages.
type logFlags struct {
	LogFormat string `help:"Format of the messages on standard error: text, json." enum:"text,json" default:"text"`
	LogLevel  string `help:"Least level of them: debug (each connection), info, warn, error." enum:"debug,info,warn,error" default:"info"`
}

func (f *logFlags) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.LogLevel)); err != nil {
		panic(err) // the flag's values are levels
	}
	o := &slog.HandlerOptions{Level: level}
	if f.LogFormat == "json" {
		o.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr { // durations look as they do in text
			if a.Value.Kind() == slog.KindDuration {
				a.Value = slog.StringValue(a.Value.Duration().String())
			}
			return a
		}
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
