// SPDX-License-Identifier: Apache-2.0

// Package follow hands the records of a journal to an output, in order, and moves a cursor behind
// what is done. It does not know what the output is.
//
//	            ┌──────────── window: at most so many chunks and bytes ────────────┐
//	journal ──► │ done │ done │ on its way │ done │ on its way │ on its way │ ──► output.Submit
//	            └──────────────────────────────────────────────────────────────────┘
//	            └─ longest finished prefix ─┘
//	                          │
//	                          ├─► refused entries to the dead letters
//	                          └─► cursor and the output's state, one record
//
// # The cursor
//
// Chunks may be done in any order; the cursor moves over the longest finished prefix. It is
// committed each second, each 64 MiB, or as soon as the follower has caught up if a caller waits
// for that. An output with a state (output.Resumer) must be at rest for a commit: the follower
// submits nothing, waits until all is done, has the output flushed, and commits the state that came
// with the last chunk. After a crash such an output finds by its state what it wrote after it.
// Cursor and state of a commit must be of the same moment, or lines come twice.
//
//	submit … submit │ nothing in flight │ Flush │ dead letters │ Commit(position, state) │ submit …
//
// A state that the output saves by itself between two commits takes the place of the last one; the
// cursor stays.
//
// What steps remember (step.Sifter.Remembers) is a part of the state. It is what they remembered at
// the cursor, though later records have been through the steps. Whenever the follower goes back to
// the cursor, so do the steps.
//
// An output that keeps the position itself (output.Transactional) is asked for it at the start: its
// token is the position. The cursor then only says which part of the journal may be freed, and
// where counts begin. Such an output moves its position by itself, also past entries that it
// refuses; before that it has the follower make dead letters of these.
//
// # Errors
//
// Outputs try again by themselves, in order. An error that wraps output.ErrReopen makes the
// follower close the output, open another one with the state that was committed last, and submit
// again what came after it, after a pause that grows until something is committed. What an output
// without a state has finished before that is committed first, and not submitted again. What an
// output refuses for good goes to the dead letters before the cursor passes it; while no dead
// letter can be stored the cursor waits.
//
// An output that is closed and does not return its chunks is left behind with them: their memory is
// not used again, and results that still come are ignored.
//
// # Promises
//
//   - Each record is submitted in the order of the journal, and again only after ErrReopen or a
//     crash.
//   - The cursor never passes a record that is not done, nor one with a refused entry that is not
//     a dead letter.
//   - What was submitted and is beyond the finished prefix is bounded, also where one chunk is
//     stuck and all others are done. A follower whose output does nothing sleeps, and costs other
//     followers nothing.
//
// # Not promised
//
// What is between the cursor and the finished prefix when the process is killed is submitted again
// to an output without a state. Dead letters may come twice then.
package follow
