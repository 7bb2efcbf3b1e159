// SPDX-License-Identifier: Apache-2.0

// Package window cuts what lies in a ring into chunks, each under a mark in the ring, and makes the
// same chunks again from a ring that a dead process left. It does not know where chunks go.
//
// # Nouns
//
//	payload    a record of the ring: the tag's length as a uvarint, the tag, one MessagePack map
//	window     what is cut from a ring at once: up to a limit of bytes, at most 16 tags or 1024 runs, never ending between two equal keys
//	run        what a window has of one tag in a row
//	chunk      a run, or what a window has of one tag, under a random id (forward.Chunk, UniqueID)
//	mark       a chunk's entry in the ring's header: first and last key, the first record's lane, the id; or one for all runs of a window
//	feed       a ring that windows are cut from (Feed)
//
// # The order of steps
//
//	Cutter.Cut ──► Take, of each chunk ──► Mark ──► Done ──► the chunk is done or stored elsewhere ──► Unmark
//	records         bytes and id           marks    the ring's cut                                     its memory is free
//
// The mark is put before the ring's cut moves over the window, and the cut moves before anything
// leaves. So a successor finds each record either beyond the cut, or under a mark, or
// done; from a mark the same chunk is made again, byte for byte, under the same id (Rebuild).
//
// A mark's label is the chunk's id. The last character of an id is always '='; in the label it is
// '>' when the chunk is on its way to a spill, because these are younger than what the spill holds,
// and those on their way to the destination are older.
//
// What is cut is copied and then checked: each record is one MessagePack map. The ring is memory
// that others can write to, and one bad record must not make a chunk that a server refuses, and
// that blocks what is behind it, the successor's too. It is lost, alone. (A record that another
// program made into another valid one is not found.)
//
// # Runs
//
// What a Forward server gets is better off in few large chunks. A file or a stream writes lines in
// the order of its chunks, so that its windows (Cutter.Ordered) are cut where the tag changes, and
// each run is a chunk: the lines stand in the order of the ring's keys. All runs of a window have
// one mark, from the first record to the last, of whatever lane and tag; its label is the id of the
// first run, with 'D' (to the destination) or 'S' (to the spill) for the last character. The id of
// a run ends with its number:
//
//	id of a run      0                      14       16 bytes, as 24 characters of base64
//	                 ┌──────────────────────┬────────┐
//	                 │ random, the window's │ number │
//	                 └──────────────────────┴────────┘
//
// From a mark and the tags of the records under it the successor makes the same runs again. Those
// are done up to the one whose id stands with the destination's state, and where a spill has their
// id, they are in its care. The number is why that needs no state for each run: a file destination
// writes the runs of several windows together, and gives one state, with the last of them (the
// others have none, and their marks wait for it). That one may be in the middle of a window. To
// keep only the state of a window's last run would be wrong: a destination records its state by
// itself too, when it makes a new file, and that one counts what the runs before have written.
//
// A window may fit into the spill in part. The runs that did not fit then get a mark of their own,
// which begins with the first of them, before the others lose theirs (Readdress); of two marks of
// one window the later counts from its first run on. When they go to the destination after all,
// they get another one that says so.
//
// Where records under a mark cannot be read the runs may have other numbers, so all of that window
// count as undone: its lines may come twice.
package window
