// SPDX-License-Identifier: Apache-2.0

// Package fluent has the API of the official Go client for Fluentd,
// github.com/fluent/fluent-logger-golang/fluent (the original, below), over package spillway. A
// program moves to it by one line, without a change in its code:
//
//	replace github.com/fluent/fluent-logger-golang => github.com/spillwaylog/spillway/compat/fluent …    in its go.mod, or
//	import "github.com/spillwaylog/spillway/compat/fluent/fluent"                                        in place of the original's path
//
// Until the first release, what stands at the right of the arrow is the folder of a checkout, and
// go.mod has such a line for github.com/spillwaylog/spillway too.
//
// What the original's documentation shows works as it is shown there:
//
//	logger, err := fluent.New(fluent.Config{Async: true, RequestAck: true})
//	defer logger.Close()
//	err = logger.Post("app.access", map[string]string{"path": "/"})
//
// Without Async a Post is a message on a connection, and its error is the result of this very
// message. With Async an event goes into the ring of a [spillway.Logger] and is shipped from there:
// it outlives a crash of the program, batches replace messages, and the program never waits.
//
// # Config
//
//	field                   without Async                             with Async
//	FluentNetwork           tcp, tls, unix; any other makes New return an *ErrUnknownNetwork
//	FluentHost, FluentPort  looked up at each connection; IPv6 with or without brackets
//	FluentSocketPath        of unix
//	Timeout                 of one attempt to connect, TLS included
//	WriteTimeout            of one message; 0: none                   of each 64 KiB; 0: as for acks
//	ReadTimeout             of the wait for an ack; 0: none           the same; 0: a minute
//	RequestAck              Post returns when the server acked it     an event is delivered when its batch is acked, else when it is with the kernel
//	MaxRetry                attempts to write an event, and to        without a callback: never given up; with one: after so many failures in a
//	                        connect for each                          row it gets all that waits, with the error, until the server is back
//	RetryWait               pause before the first retry; each next   the same; each next one is twice as long; a random part of up to half is
//	                        one is half as long again                 left out
//	MaxRetryWait            longest pause
//	TagPrefix               stands with a dot before the tags of Post and PostWithTime
//	BufferLimit             nothing                                   most events held: beyond it, or with a full ring, Post returns "Buffer full"
//	ForceStopAsyncSend      nothing                                   Close waits for a second at most
//	AsyncResultCallback     nothing                                   told of each event once: nil when it is delivered, or why it is given up
//	AsyncReconnectInterval  nothing                                   age at which a connection is replaced, between messages, when all is acked
//	AsyncConnect            is Async
//	MarshalAsJSON           JSON on the wire, acks too                the same; in the ring it is MessagePack
//	SubSecondPrecision      EventTime; else a number of seconds       EventTime; else EventTime of whole seconds
//	TlsInsecureSkipVerify   any certificate passes
//
// What Config cannot say: [NewWith] takes [spillway.Options], and where those leave Dir and Shm
// empty, the environment variables SPILLWAY_DIR and SPILLWAY_SHM say where events overflow to disk
// and where rings lie, for programs that cannot be changed.
//
// The ring has 16 MiB, or 512 bytes for each event of a BufferLimit, within 4 and 16 MiB. Of
// Options, this package sets Dial, around one that is given, and with a callback Delivered and,
// unless one is given, ErrorHandler. A callback is told of events, too, that an earlier logger left
// and this one delivers.
//
// With Async an event of more than 1 MiB, Options.MaxEvent, is refused with [spillway.ErrTooLarge],
// and so is a tag of more than 1 KiB with an error that says so.
//
// # Close
//
// Without Async, Close ends attempts to connect at once, and lets calls that have written their
// message go on for a second. With Async it delivers what is held for as long as one event would be
// tried if every attempt failed at once (the sum of the pauses) and a Timeout, at most 30 seconds;
// with ForceStopAsyncSend one second. What is then left stays in the ring, and its number is in the
// error, an [spillway.UndeliveredError]. The next logger of the same program, server and folder
// delivers it, in this process or another. (A ring in plain memory ends with its logger; the
// UndeliveredError says so.)
//
// # Records
//
// Post takes maps with keys that are strings, structs, values with MarshalMsg, and pointers to
// them. A field's name is its tag msg, or codec, or its own name. As in the original, MarshalAsJSON
// gives what encoding/json makes of the values, so that json tags count below the top. In
// MessagePack:
//
//	value                               is
//	nil, bool, numbers, string, []byte  what they are; a []byte of a named type too
//	map, slice, array, pointer          what is in them; keys must be strings
//	struct                              a map of its exported fields; "-" and omitempty in the tag are heard; embedded structs are flattened as in encoding/json
//	msgp.Marshaler, msgp.Extension      what their methods make, if that is one value
//	json.Number, json.RawMessage        the value that the text means
//	error; with MarshalText             its text
//	time.Time                           text as of RFC 3339; in the original an extension type that servers need not know
//	time.Duration                       nanoseconds
//	complex                             text; in the original such a type too
//	chan, func                          an error
//
// Values are encoded before Post returns, and belong to the caller again. Encoding allocates
// nothing for structs and for maps of strings and scalars.
//
// # What the original does and this package does not
//
//	the original                                                             here, and the test that shows it
//	Close never returns: with Async, RequestAck and ForceStopAsyncSend and   it returns: TestCloseOfAsyncReturns,
//	a server that does not ack; without Async while a call waits or retries  TestCloseReturns
//	Close with ForceStopAsyncSend drops what waits                           the next logger delivers it: TestCloseOfAsyncReturns
//	a crash loses all that waits                                             the next process delivers it: TestKill
//	the first event after the server closed the connection is lost, and      the end is noticed before the write: TestFirstEventAfterTheServerClosed
//	Post says nil
//	8,192 events wait at most, then events are refused                       the ring's bytes are the limit: TestRingIsTheLimit; with Dir the
//	                                                                         disk's: TestSpill
//	Post(tag, nil) and nil pointers panic; so does a Fluent that New did     errors: TestRecordsOfTheOriginalsRefusal, TestZero
//	not make
//	pointers to structs and maps are refused; structs, errors and named      they are records and values: TestRecordsOfTheOriginalsRefusal
//	numbers in a record too
//	a panic in MarshalMsg or MarshalJSON, or a record that contains itself,  errors: TestBadMethods, TestPanicInJSON
//	ends the program
//	IPv6 addresses fail, unless in brackets                                  they work: TestIPv6
//	what is no map is sent, and no server takes it                           an error: TestRecordsOfTheOriginalsRefusal
//	quotes in a tag make JSON that is none                                   they are escaped: TestTagInJSON
//	calls of several goroutines take each other's acks: connections are      they are in flight together, each gets its own, and acks may come
//	closed, events come twice (842 for 800), or all wait for ever            in any order: TestTogether
//	messages are sent again without a pause                                  with one that grows: TestRetriesPause
//	pauses are cut to whole multiples of RetryWait                           they grow as documented: TestPauses
//	seconds of EventTime are signed, and end in 2038                         unsigned, to 2106: TestEventTime
//	a message claims a length and the decoder allocates it                   memory follows what arrives: FuzzMessages
//	errors are printed to standard error, one line each time                 they are returned; those of Async go to Options.Diagnostics
//
// The tests are in module compat/fluent/test, those of single types beside the code.
//
// # What else is different
//
// An error names the cause behind the original's text ("…failed to write after 3 attempts: broken
// pipe"), and errors.Is finds [spillway.ErrClosed], [spillway.ErrFull] and [spillway.ErrNotRecord].
// An event that cannot be encoded is named by its type, not printed. With Async, events of one
// goroutine stay in order; tags may pass each other; they leave within a tenth of a second. A
// callback gets the message of the event alone, without a chunk id, for ids belong to batches; what
// it does holds up the delivery of others. What a full ring refuses is counted, and told to the
// server, and to the callback, by a summary event under Options.Tag, by default the program's name.
// Chunk ids are 128 random bits.
//
// # Not promised
//
// Without RequestAck nobody learns whether a server stored an event, and what is written in the
// moment in which it goes away is lost. (On Windows, where the socket is not asked, that moment is
// longer by what a goroutine takes to wake up.) An event that is sent again because its ack did not
// come may arrive twice; a spillway collector drops the second.
package fluent
