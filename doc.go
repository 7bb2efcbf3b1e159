// SPDX-License-Identifier: Apache-2.0

// Package spillway is a logger that never makes the application wait and never loses a line.
//
//	log, err := spillway.Open("forward://127.0.0.1:24224", &spillway.Options{Tag: "app", Dir: "/var/lib/app/log"})
//	defer log.Close(ctx)
//	log.Info("order placed", slog.Int("id", 42))   // leveled, slog.Attr as the one field type
//	log.Post("app.order", order)                   // any struct or map
//	slog.SetDefault(slog.New(log.Handler()))       // the standard library's front end
//
// # The idea
//
// A call encodes its event and copies it into a ring in shared memory; all that is slow happens
// behind it, and what the call accepted outlives the process:
//
//	log call ─► ring (tmpfs) ─► mover ─┬─► destination: Forward servers, files, streams
//	            survives the process   └─► Dir (disk), while the destination is slow or down ─► destination, later
//
// A ring and a spill that a process left behind, because it was killed or ran out of time, are
// taken over by the next one that opens a logger with the same Name, Dir and destination; that
// ships them first.
//
// # Events
//
// An event is a time and a record under a tag. The record of a leveled call is, in this order,
//
//	{"level":"INFO","msg":"order placed","source":"shop.go:12", …default fields, With…, …attributes of the call…}
//
// with source only on request; that of Post is default fields, With, and the fields of what is
// posted; a line of Writer has "message", Fluentd's word. Groups are nested maps, and left out when
// nothing is in them. Values are as slog's own JSON handler has them: a Duration is nanoseconds, a
// Time is text of RFC 3339; but an error is its text also when it has MarshalJSON, and a
// fmt.Stringer is asked. What could not be logged is told by an event of the logger's own, under
// Options.Tag:
//
//	{"level":"WARN","msg":"events dropped","dropped":{"full":12,"sampled":300}}
//
// # Promises
//
//   - A call never waits for the destination, unless Block, Keep or WaitDelivered say so, and then
//     at most as long as they and the context do; to a stream at most 10 ms, so that a program that
//     ends without Close has printed its lines, and never with async=true. No call panics.
//   - What was accepted is delivered once, in the order of each goroutine's calls, also when the
//     process is killed, as long as the machine stays up; "once" means: with acks, after the
//     receiver drops repeats by their ids, as Spillway's collector does. Every other fate of an
//     event is counted, and told.
//   - Arguments are encoded in the call. The caller may change them at once.
//   - Flush and Close return by their context, whatever network and disk do. After Close no
//     goroutine of the logger is left.
//   - Nothing is allocated by leveled calls, Post of structs and of maps of plain values, and
//     through slog, but what the caller's own arguments cost.
//
// # Non-promises
//
//   - The ring does not survive a reboot, nor the end of the container whose private /dev/shm it
//     lies in. Without Options.Dir, what neither ring nor destination can take is dropped; with it,
//     after MaxDisk. What is in Dir is with the kernel, not synced.
//   - A destination without acks (ack=false) may lose what was sent. A stream (stdout:) is at least
//     once across a crash, and so are files that others write or rotate.
//   - Between goroutines, events are in the order of a clock; which of two calls at the same moment
//     is first is not said.
//   - Calls of Fatal and os.Exit do not run deferred functions: Fatal delivers for 5 s, after
//     os.Exit the ring waits for the next process.
//
// A page with more, containers included, is docs/logger.md.
package spillway
