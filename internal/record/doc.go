// SPDX-License-Identifier: Apache-2.0

// Package record turns Go values into MessagePack: structs, maps and attributes into records,
// anything into a value. It only appends to a slice that it is given, and keeps nothing of what it
// is shown.
//
// # Words
//
//   - record: a map with str keys, what an event carries (AppendMap, or BeginMap, AppendAttrs and
//     EndMap).
//   - plan: how values of one type are written. It is made at the type's first use, together with
//     those of all types that can be reached from it, and then only read.
//   - step: how a plan writes one field of a struct: its key as ready bytes, the field's offset,
//     and what to do there.
//   - path: the pointers, maps and slices around a value, kept only where one of them could be met
//     again.
//
// # A struct
//
//	type Order struct { ID int `json:"id"`; Note string `json:"note,omitempty"`; *Customer }
//
//	plan    ┌ 80 ┬ step: a2 'i' 'd'          offset 0   int                 ┐
//	        │    │ step: a4 'n' 'o' 't' 'e'  offset 8   string  or left out │
//	        │    │ step: a4 'n' 'a' 'm' 'e'  offset 24 → offset 0   string  │   Customer's Name, if there is a Customer
//	        └────┴──────────────────────────────────────────────────────────┘
//	record  82  a2 'i' 'd' 2a   a4 'n' 'a' 'm' 'e' a3 'A' 'd' 'a'               the count is written last
//
// Which fields, and their names, is as in encoding/json: embedded structs are flattened, a name
// that stands twice is settled by depth and tags, and "omitempty", "omitzero", "string" and "-"
// mean what they mean there. A tag "log" goes before one of "json", and replaces it wholly. One
// thing differs: an embedded time.Time is a field named Time, as encoding/json would write nothing
// of it.
//
// # Values
//
//	nil pointers, interfaces, maps, slices, funcs, chans   nil, whatever methods they have
//	bool, integers, floats, strings                        as they are: NaN stays NaN, what is no UTF-8 is kept byte for byte
//	[]byte                                                 bin
//	time.Time                                              str as encoding/json: RFC 3339 with up to nine digits of a second
//	time.Duration                                          int: nanoseconds, as slog's JSON handler
//	json.Number                                            the number; a str if it is none, or beyond a float64
//	slog.Value, slog.Attr, []slog.Attr                     the value; a map
//	pointers, interfaces                                   what they lead to
//	slices, arrays; maps, structs                          arrays; maps
//	chans, funcs, complex numbers                          the str "!TYPE: " and the type
//
// Before its kind counts what a type offers, the first of these: slog.LogValuer, error (its text),
// json.Marshaler, encoding.TextMarshaler, fmt.Stringer. Methods of a pointer count where the value
// is a variable, as in encoding/json. The String of a struct that embeds something with that method
// does not count. AppendMap, which needs keys, asks only for a LogValuer and for a json.Marshaler
// that makes an object.
//
// Keys of maps are strings, TextMarshalers and integers as in encoding/json; other keys are what
// package fmt makes of them. The order of a map is that in which Go ranges over it: random.
//
// Attributes are written by the rules of slog: LogValuers resolved, the zero attribute left out,
// groups without a key inlined. A group of which nothing is left is not written.
//
// # The way back
//
// Decode stores a value in what a pointer leads to, by the same names of fields and with the same
// options. Keys that no field has are passed over.
//
//	into                        goes
//	any                         nil, bool, int64 (uint64 if that is too small), float64, string, []byte, time.Time, []any, map[string]any;
//	                            an ext that is no time as the text that it has in JSON
//	bool, string                a bool; a str, a bin, the text of an ext
//	integers, floats            any number that fits, a float without a fraction into an integer too; others are ErrRange
//	time.Time                   EventTime; a str of RFC 3339
//	json.Number                 the digits of a number, a str that is one
//	[]byte, [n]byte             bin, str; arrays of numbers too
//	slices, arrays, maps        arrays, no longer than the Go array; maps, whose keys become what encoding/json makes of them
//	pointers                    what they lead to, made where they are nil
//	json.Unmarshaler            any value, as JSON text
//	encoding.TextUnmarshaler    a str or bin
//
// A nil makes nil what can be nil and leaves everything else. Into any other type, or the other way
// round, a value does not go: ErrKind. What does not fit is left out, and the first of it is the
// error; the rest is stored.
//
// # What goes wrong
//
// A value that cannot be written becomes a str that says so, and all around it is written as ever:
//
//	!PANIC: ...   a method panicked, or a Replace did; if it was the method of a key, the key says so
//	!ERROR: ...   MarshalJSON or MarshalText returned an error, or something that is not one JSON value
//	!CYCLE        the value stands inside itself
//	!DEPTH        more than Depth maps and arrays around it, or a LogValuer that never becomes anything else
//	!SIZE         more than 64 MiB or 262,144 nested pointers and containers before it: what it shares or makes grows without end
//
// # Promises
//
//   - What is appended is one valid MessagePack value (for attributes: as many pairs as are told),
//     whatever the value and its methods do.
//   - No panic leaves this package, except one of the runtime that nobody can recover from, like
//     the one for a map that another goroutine writes.
//   - Nothing is allocated for structs, for maps with string keys of common types, for attributes,
//     and for what methods do not allocate, once dst is large enough and the types are known. A
//     slice of attributes that a call makes stays on the caller's stack.
//   - A value is read only during the call.
//
// Not promised: that keys differ (an inlined group may repeat one); what lies behind the result in
// dst's capacity, which may have been overwritten; the shortest header of a map whose count was not
// known.
package record
