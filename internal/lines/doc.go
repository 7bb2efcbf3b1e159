// SPDX-License-Identifier: Apache-2.0

// Package lines writes an event as one line, of JSON or of text, and reads events from lines. An
// Encoder writes JSON:
//
//	{"time":"2026-11-21T02:03:04.123456789Z","tag":"app.web","level":"INFO","msg":"order placed","id":42}⏎
//	 └────────────── envelope ──────────────────────────────┘└──────── the record, in its order ─────────┘
//
// The envelope is the time in UTC, always with nine digits behind the point, the tag, and the
// metadata of the event if it has any ("metadata", an object; docs/forward.md rule 13). Options
// renames its keys or leaves them out, and has other formats of the time: seconds since 1970 or
// parts of them, or a layout of package time. A key of the record that collides with one that the
// envelope writes gets underscores appended, as many as make it a key that nothing else in the line
// has. Values are written as msgpack.AppendJSON and forward.AppendExtJSON do (docs/forward.md rules
// 21 and 22).
//
// A Text writes what people read in files and on terminals, with the classic switches (Flags):
//
//	2026/11/21 02:03:04.123456 INFO main.go:12: order placed id=42⏎
//
// A Reader reads the lines of an Encoder, and those of other loggers: a JSON object is a record,
// any other line is text, the one member "message". Told their keys, it takes the time and the tag
// out of the record, the time by its digits and not as a float. What cannot be read as a time or a
// tag stays in the record.
//
//	{"time":"2026-11-21T02:03:04.123456789Z","tag":"app.web","level":"INFO"}    line
//	        └── the entry's time ──────────┘        └ tag ┘ └── record ──┘      ReadOptions{Time: "time", Tag: "tag"}
//
// WriteLong of both writes the line of an event that is too long for memory, a piece at a time.
//
// # Promises
//
// One event is exactly one line: valid UTF-8 (and JSON), one newline, at its end. No control
// character and nothing that turns the direction of writing is in a line of text, whatever is in
// the event, so that it forges no line and does nothing to a terminal. The same entry with the same
// tag and options gives the same bytes, always; outputs that find out after a crash what they have
// already written rely on it. Nothing is dropped: a record whose bytes cannot be read (a journal
// holds none) becomes the one member "undecodable" with the bytes in base64, and a time that RFC
// 3339 has no words for (before the year 0, after 9999) is written in seconds since 1970, as in
// "time":"253402300800.000000000". Nothing is allocated once dst is large enough.
//
// What a Reader makes of a line of an Encoder, told the same keys and format, gives the same bytes
// again when an Encoder of the same options writes it. The exceptions: the time 0, which means now
// to whatever receives it; a tag that is no UTF-8 and, with U+FFFD for each of its bad bytes,
// longer than forward.MaxTag; metadata that nests as deep as a record may. The first two stay in
// the record, the last makes the line text. A record is kept whole, or the line is text: nothing of
// a line is lost.
//
// Not promised: that the event is the same in other ways: what has no JSON of its own comes back as
// what stood for it (NaN as nil, a bin as a str, an ext as its text), a renamed key with its
// underscores, metadata as the member "metadata" of the record. A time before 1970 or after 2106
// that is no whole second travels as a float: one that was not written from such an event comes
// back as the nearest float, or the next. Not promised either: that text can be read back by a
// program (a message may look like an attribute); that a record with a key twice can be told from
// one with the last of them only; a reader of JSON takes the last.
package lines
