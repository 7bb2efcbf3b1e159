// SPDX-License-Identifier: Apache-2.0

// Package spill keeps journals of chunks that found no room in a ring, each in a folder of its own,
// and finds those that dead processes left. It does not know what a chunk means, nor where it goes.
//
//	Dir/
//	  <name>.<pid>.<16 hex digits>/
//	      owner.json                     identity, process, time, the process's ring
//	      seg-… cursor-mover lock        a journal of chunks, as forward.Chunk writes them
//
// # Nouns
//
//	folder      Dir, as the processes of one name use it
//	spill       a subdirectory of it: the journal of one process
//	owner       the process that made a spill; it holds the journal's lock
//	successor   the process that adopts a spill whose owner is dead
//
// # The life of a spill
//
//	        Make                              Discover, of another process
//	none ─────────► owned ──────── dies ───────► adopted
//	  ▲               │                             │
//	  └─── Discard ───┴──────────────── Discard ────┘
//
// A spill is made when it is first needed, and discarded when nothing is left in it: a process
// whose destination keeps up touches no disk. The first has the name of the process's ring, where
// that is in shared memory; those of what is written at once (MakeWithin), and those that replace
// one that was removed, have names of their own. A spill is adopted with its journal's lock
// held, if name and identity are ours, and if its ring is ours or does not exist. While it is
// discarded, owner.json is named empty. A folder without owner.json was being made or removed when
// its process died; if its journal is empty it is removed.
//
// # Promises
//
//   - What was appended outlives the process when Flush says so. (The journal syncs it within a
//     second; no call waits for that.)
//   - A disk that fails is not waited for: each call tries once, Fetch for a second.
//   - A spill has one successor at a time: the process that holds the lock.
//   - What stands in Dir and is no spill of this name is left alone.
//
// Not promised: MaxDisk to the byte. Segments are taken whole: 4 MiB, or an eighth of MaxDisk if
// that is less. A spill that grows beside others, of this process or of other ones, may pass it by
// the two that it took before it looked. At those of this process it looks at once, at others once
// a second.
package spill
