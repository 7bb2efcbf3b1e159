// SPDX-License-Identifier: Apache-2.0

// Package spillwaylogrus brings sirupsen/logrus to Spillway, in two ways that need nothing of each
// other.
//
// A [Hook] hands entries to a spillway.Logger, so that they outlive the process and reach a
// collector; [Redirect] makes it the only way out:
//
//	log, err := spillway.Open("forward://127.0.0.1:24224", nil)
//	…
//	spillwaylogrus.Redirect(logrus.StandardLogger(), log)
//
// A [Formatter] writes JSON as logrus.JSONFormatter does, without a map, to wherever logrus writes:
//
//	logrus.SetFormatter(&spillwaylogrus.Formatter{})                // time, level, msg, then the fields in order
//	logrus.SetFormatter(spillwaylogrus.NewServiceFormatter("shop")) // service, msg, task_id, log_date
//
// # What a Hook keeps
//
//	Level          TRACE, DEBUG, INFO, WARN, ERROR; panic is ERROR+2, fatal is FATAL
//	Time           the event's own
//	Message        msg
//	Data           a field each, sorted by name; level, msg and source become fields.level and so on, as logrus has it
//	Caller         source, file.go:12 (the whole path with LongSource), and func
//	Context        what Options.ContextAttrs is asked with
//	logrus_error   a field of that name
//
// Values are written by the rules of spillway.Logger.Post: an error is its text wherever it stands,
// a Stringer its text, []byte is bytes.
//
// A hook never fails: what the logger does not take is counted and told by the logger. An entry at
// the levels fatal and panic waits up to 5 s for its delivery, since the process may end with it.
package spillwaylogrus
