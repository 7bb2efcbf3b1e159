// SPDX-License-Identifier: Apache-2.0

// Package spillway is a logger that never makes the application wait and never loses a line.
//
//	log, err := spillway.Open("forward://127.0.0.1:24224", &spillway.Options{Tag: "app", Dir: "/var/lib/app/log"})
//	defer log.Close(ctx)
//	log.Info("order placed", slog.Int("id", 42))   // leveled, slog.Attr as the one field type
//	log.Post("app.order", order)                   // any struct or map
//	slog.SetDefault(slog.New(log.Handler()))       // the standard library's front end
package spillway
