// SPDX-License-Identifier: Apache-2.0

// Package successor takes over what dead processes of other programs left: their rings, and the
// spills in the folder that a ring's identity names. It hands out their events as chunks, under the
// ids that the dead process had given them or would have, and removes what is done. It does not
// know where chunks go.
//
// # Nouns
//
//	successor     looks for rings, and takes those over whose owners have been dead for a while (Successor)
//	legacy   a ring and its spills, with their locks held (Legacy)
//	stage    a part of a legacy: chunks that were cut, a spill, the rest of the ring
//
// # The order of steps
//
//	PATH/spillway-*/            Look: not locked for After      Take: the locks
//	  <name>.<pid>.<id>/  ───────────────────────────────►  ───────────────────► Legacy
//
//	Legacy:  Next ──► the caller stores the chunks ──► Done ──► Next … ──► no more ──► Finish
//	                                                             └──► Leave: what is not done stays
//
// Of a legacy come first the spills that are older than the ring, then what was with the
// destination, then what the process spilled, then what it was spilling, then the rest of the ring:
// as a logger takes over what one of its name left (package mover), with the same steps. The rest
// is cut under marks before it is handed out. So a death between Next and Done leaves a ring from
// which the next successor, a logger or this one again, makes the same chunks under the same ids.
//
// # What is not believed
//
// A ring may be another user's where this process is root's. Folders are held open, and everything
// is done in these (package within): no symbolic link is followed, nothing outside is opened or
// removed, nothing is used that is not of the owner of the ring's folder, and what a journal makes
// in a spill becomes that owner's. What a ring says is checked when it is cut, what a spill says by
// the caller. A ring of more than MaxRing is left alone: what is under its marks is in memory at
// once.
package successor
