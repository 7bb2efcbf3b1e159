// SPDX-License-Identifier: Apache-2.0

// Package letters keeps what an output refuses for good, the dead letters, in a journal of its own
// until somebody sends it again or drops it.
//
// A [Letter] is entries of one record of the collector's journal that one output refused, with the
// output's name, the reason and the time. A [Store] takes letters from a running collector. A
// [Listing] shows what a store holds, whether a process has it open or not. A [Taker] takes letters
// out again, one after another, and remembers which are gone.
//
// # Promises
//
//   - When [Store.Put] returned nil, its letters outlive a power cut.
//   - The same letter put twice is stored once: a crash between Put and the commit of the output's
//     cursor makes the output refuse the same entries again. Letters are the same when output,
//     position, numbers of the entries, tag and the entries themselves are. The last 131,072
//     letters are compared, those of earlier processes included, and of those that were taken out
//     or dropped the last 2,048.
//   - A letter's chunk id is made of all that and of the store's identity. So a letter that is sent
//     twice, because a replay was interrupted, has the same id each time, and a receiver that knows
//     ids stores it once.
//   - A store that never got a letter is nothing: no directory, no file.
//   - A full store refuses letters with [ErrFull], or with Options.DropOldest gives up the oldest
//     ones, which are counted and told.
//
// Not promised: that a letter is known again whose output stores its chunks otherwise than before.
// Entries that differ are another letter, so nothing is lost if a journal is deleted and its
// positions begin again.
//
// # A record
//
// A record is a chunk as the collector's journal has them (package forward), with one more option,
// so that whatever reads chunks reads letters, too.
//
//	[ tag, entries, { "chunk": id, "size": n, "spillway": 1, "letter": { … } } ]
//
//	key of "letter"   value
//	"output"          str: the output's name
//	"reason"          str
//	"time"            int: nanoseconds since 1970
//	"position"        uint: the end of the record in the collector's journal
//	"entries"         array of uint: which entries of that record these are; absent when all
//	"key"             bin, 16 bytes: what letters are compared by
//
// # The cursor
//
// The journal's one cursor is named "letters"; its file is what a directory of letters is
// recognised by. Its state is a map of MessagePack:
//
//	key         value
//	"store"     bin, 16 bytes: the identity, random
//	"marks"     map of output to position: letters of that output up to there are gone, too
//	"kept"      array of positions: these are still there, whatever the marks say
//	"recent"    bin, 16 bytes each: keys of the letters that went last
//
//	            cursor            mark of a          end
//	──── gone ────┤ b a b a a b a a ┤ b a b b a a …
//	                b   b     b       b a b b a a      are there
//
// Marks let letters of one output go while those of another stay. All positions here are those of
// the letters' own journal. Unknown keys of both maps are passed over.
package letters
