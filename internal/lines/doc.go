// SPDX-License-Identifier: Apache-2.0

// Package lines writes an event as one line, of JSON or of text. An Encoder writes JSON:
//
//	{"time":"2026-11-21T02:03:04.123456789Z","tag":"app.web","level":"INFO","msg":"order placed","id":42}⏎
//	 └────────────── envelope ──────────────────────────────┘└──────── the record, in its order ─────────┘
//
// The envelope is the time in UTC, always with nine digits behind the point, the tag, and the metadata of the event if it
// has any ("metadata", an object; docs/forward.md rule 13). Options renames its keys or leaves them out. A key of the
// record that collides with one that the envelope writes gets underscores appended, as many as make it a key that nothing
// else in the line has. Values are written as msgpack.AppendJSON and forward.AppendExtJSON do (docs/forward.md rules 21
// and 22).
//
// A Text writes what people read in files and on terminals, with the classic switches (Flags):
//
//	2026/11/21 02:03:04.123456 INFO main.go:12: order placed id=42⏎
//
// # Promises
//
// One event is exactly one line: valid UTF-8 (and JSON), one newline, at its end. No control character and nothing that turns
// the direction of writing is in a line of text, whatever is in the event, so that it forges no line and does nothing to a
// terminal. The same entry with the same tag and
// options gives the same bytes, always; outputs that find out after a crash what they have already written rely on it.
// Nothing is dropped: a record whose bytes cannot be read (a journal holds none) becomes the one member "undecodable"
// with the bytes in base64, and a time that RFC 3339 has no words for (before the year 0, after 9999) is written in
// seconds since 1970, as in "time":"253402300800.000000000". Nothing is allocated once dst is large enough.
//
// Not promised: that text can be read back by a program (a message may look like an attribute); that a record with a key twice can be told from one with the last of them only; a reader of JSON takes
// the last.
package lines
