// SPDX-License-Identifier: Apache-2.0

// Package step decides which events an output gets, and what becomes of them on the way: routes and
// their steps. It works on the MessagePack of entries: what no step names is copied and not
// decoded.
//
//	routes ──► Routes ──► a Sifter for each output
//	 match: app.**          by tag, remembered: nothing, everything, or a program of steps
//	 do: [drop, set, …]          entry ──► fields found ──► steps ──► entry, written anew
//	 to: [bus]                               what none changes stays where it is
//
// # Words
//
//   - path: names that lead to a field, user.email. Of keys that are there twice the last one
//     counts where a value is read; what is removed or masked is so each time that it is there.
//   - condition: comparisons of fields with constants, and, or, not.
//   - program: the steps of one route, as one output runs them.
//   - share: what an output gets of a tag.
//   - memory: what throttle and dedup know of keys. It is an output's own, and part of the state of its
//     cursor (recall.go).
//   - table: the rows of a file in which lookup looks.
//
// # Promises
//
//   - What comes out depends on the routes, the entries, where they stand in the journal, and what was
//     known at the cursor: after a crash the same comes again. Tables alone may be others then, which
//     shows in the Mark of a Sifter.
//   - An event becomes one or none. Events keep their order.
//   - A step that fails, or panics, loses nothing: the event is made again without it, and says so,
//     or is a dead letter. It is never made again without a step that takes something out.
//   - An entry that no step changes comes out as the bytes that it was.
//   - An event that is let pass holds back only events of its key whose times are near its own. Where
//     times are mixed, or keys are more than a memory has room for, more events pass.
//
// Not promised: that numbers and headers of what a step writes have the length that they had.
package step
