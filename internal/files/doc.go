// SPDX-License-Identifier: Apache-2.0

// Package files appends lines to a bounded set of files. Each line is in them once although the
// process may be killed at any moment, and no byte that others wrote is ever changed.
//
// A Set follows a log: its caller reads events from a journal, extends the files by their lines,
// and from time to time calls Sync and commits the state it returns, in one atomic record with the
// journal's position:
//
//	set, err := files.Open("/var/log/{tag}.{date}.jsonl", state, &files.Options{Record: record})
//	for … {
//		full, err = set.Extend(tag, sec, render)    // render appends lines to what waits for the file
//		if full {
//			err = set.Write()                   // to the kernel
//		}
//	}
//	state, err = set.Sync()                         // written and on disk
//	err = reader.Commit(position, state)            // before the next Write
//
// # Paths
//
// {tag} is the event's tag, {date} and {hour} are those of the event's time in UTC (2026-11-21 and
// 02; years before 0 and after 9999 count as these), {host} and {pid} belong to the process that
// writes. A tag never leaves the directory it stands in, whatever is in it, and two tags never
// share a file: dots stay as they are in file names, and what would be special is written as "%"
// and two hex digits; see appendName for the rules. "../x" becomes "%2E%2E%2Fx". Missing
// directories are made.
//
// # Once
//
// A state names each file that may have got lines since: its path, its inode, a length, and a sum
// of what stands before it. All lines up to the committed position are before that length, and
// later ones behind it. After a crash the caller appends again from the committed position, and the
// Set compares what comes with what stands behind that length: equal bytes are not written again;
// where the file ends in the middle of a line, the rest of that line is written; at the first byte
// that differs, which a foreign writer put there, it goes on at the end of the file. NULs are left
// by a power cut, and are written over. Nothing is ever cut. Where {pid} or {host} is in the path,
// the files of the earlier processes are looked into first. A file that was renamed in its
// directory is found by its inode, one that was copied and cut by the sum: see copied.go.
//
// A process may be killed in the middle of many events that have no position between them.
// Checkpoint makes a state for such a place durable, with a Point; it comes as soon as many files
// were written, so that a state names a bounded number of them. Options.NewFiles bounds how many
// new files events can make in a minute: see crowd.
//
// So that a new file is known too, Options.Record makes a state with its name durable before its
// first byte is written; one call of Record names all files that one Write opens.
//
// A line that is too long for memory is written by Long, in pieces, as a batch of its own: others
// that append to the file at the same time may come in between, and then it begins anew.
//
// # Shared
//
// With Options.Shared other processes may write the same files at the same time, all in the same
// way: see Sharing. Then the section Once holds as sharer and latch say, whatever lines of others
// stand in between. Cut says where the lines of a chunk end; positions are only there.
//
// # No disk
//
// A logger's lines need only survive the process, and its positions lie in memory that does too. So
// with NoSync nothing waits for the disk, and a Sync after each Write costs little.
// State gives what a Sync would return, with or without NoSync, and settles nothing.
//
// # Rotation
//
// A file that would get too large, or whose time is over, is renamed and a new one begun: app.jsonl
// becomes app-20261121T020304.123.jsonl, and app-20261121T020304.123.jsonl.gz or .zst once it is
// compressed; the unfinished one ends in .gz.tmp. A batch is divided between two lines where the
// file is full, so no file of one process gets larger than Rotation.Size, except for a single line
// that is larger. No commit is needed in between: a state names a file by its path and inode, and
// what is not at its path is looked for among the rotated files of the path.
//
//	written ─→ renamed ─→ new file made ─→ Record ─→ written ─→ committed ─→ compressed, deleted
//
// Of several processes that write the file, one gets the lock of the directory (flock) and renames
// it, and the others see that it has moved at their next Write. A writer holds a shared lock on the
// file itself, and keeps it until its lines are committed. A keeper, a goroutine beside the Set,
// compresses or deletes a rotated file when it gets the exclusive one, that is, when nobody appends
// to it any more or may look for lines in it. It deletes by number, age and total size, and only
// regular files whose whole name is that of a rotated file of the path.
//
// At the first Write the keeper looks at what earlier processes left: rotated files not compressed,
// or too many, or half a compression. That holds for the paths that the state names and for the
// present path of a pattern without {tag}; files of other tags follow when they are opened. Close
// lets the keeper do what is due, for three seconds at most, or until the context of CloseContext
// is done: deleting comes first, and a compression that is cut short leaves the plain file alone.
//
// # Ended
//
// With {pid} in the path each process that ends leaves a file, with {date} or {hour} each day or
// hour does. Keep, MaxAge, MaxTotal and Compress hold for these too, rotated or not, also where
// nothing is ever rotated. All files that the path makes for one tag on this host count together,
// as a family:
//
//	/var/log/app.{pid}.jsonl     app.17.jsonl                          17 lives: it is written, and only MaxTotal counts it
//	                             app.17-20261121T020304.123.jsonl      its own business: 17 deletes it, if it is too many
//	                             app.204.jsonl                         204 has ended: the keeper of any process deletes it,
//	                             app.204-20261121T010203.456.jsonl.gz  if it is free and too many
//
// A keeper looks at them at the first Write, at each rotation, each hour and at Close. A file is
// free (see ended.go) when its process has ended, its id is no other's, neither it nor a process
// whose lines it may have left a ring or a spill (Options.Awaited), and there is no lock on it. A
// file of a day past is the keeper's of the process that wrote it, if its id is in the path, or of
// any; the Set has to have forgotten it, so a state that is committed names it no more. A process
// that shares its files (Shared) may come back to yesterday's, so there only {pid} counts, which
// such a path cannot have. A name is a member's only as a whole, with an id as a process has it;
// files of other users are none. Compress gives a file that was not rotated the name of a rotated
// one first. A folder whose name has {pid}, {date} or {hour} goes with its last file.
//
// A process that gets the id of an ended one goes on in its file and keeps keepers off it. So does
// any other program, for as long as it has that id.
//
// # Promises
//
// Each line is in the files once, across kill -9 at any moment and any number of times, as long as
// nobody else appends to the same file in the short time between a commit and the crash. Where
// another process does, or moves a file to another directory, replaces or cuts it in that time, a
// line is in the files at least once: none is lost. Bytes of others are never changed or removed; a
// last line of theirs that lacks its newline gets one.
//
// Lines are handed to the kernel whole, many in one write with O_APPEND, so that several Sets and
// processes may share a file on a local file system. When a write is cut short, by a full disk say,
// nothing is lost: the next Write goes on with the next byte, or, if others have written meanwhile,
// with the whole line again.
//
// A file that was moved away or removed is noticed at the next Write, and a new one is made. At
// most MaxOpen files are open, at most about Memory bytes wait.
//
// The last element of a path is never followed if it is a symbolic link, and only regular files are
// written: a user with the right to write to the directory cannot make the process append to
// /etc/passwd through a link. Directories are followed, so the directories of a path must be as
// trustworthy as the process; so must be every user with the right to put hard links there.
//
// Only what Sync returned for survives a power cut; with NoSync nothing is sure to.
//
// # Not promised
//
// Once where processes share a file that is rotated, and one of them is killed between a write and
// its commit, if another rotates the file and compresses or deletes it before the successor comes:
// the lines come again. The size of a file that processes share: it is exceeded by what the others
// write at the same moment; so it is where a file cannot be renamed. Locks on file systems that
// have none: there two processes may rotate a file twice, and compress one that the other still
// writes a line to; files of ended processes and days past stay, as they do on Windows, and so do
// those of other hosts ({host}), and of a tag next to {pid} with no more than digits between.
// MaxTotal while files are written: it holds when a keeper looks.
//
// Once where a killed process left its ring or spill in other folders than those that Awaited looks
// into, or is a collector, whose state lies in its journal: if another that writes the same path
// with {pid} deletes its file before the successor comes, lines that were not committed come again,
// in a file of the successor's. So it is where processes that do not see each other (containers)
// share a folder, but no ring's, and one has no line for its file within Idle.
//
// Whole lines on network file systems, which do not append atomically. Different files for tags
// that differ in case only, or in the normal form of Unicode, where the file system makes no
// difference. Once where two Sets write equal lines to the same file: after a crash the one may
// take the other's for its own; so may one whose file was cut, of another that begins alike. The
// kernel reports a failed Sync once: after it the Set is unusable, and the next Set does not trust
// the bytes it can read: the lines are written over themselves, or, where they are not what they
// were, again.
package files
