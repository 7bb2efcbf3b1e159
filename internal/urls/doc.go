// SPDX-License-Identifier: Apache-2.0

// Package urls reads the URLs that name inputs and destinations.
//
//	forward://127.0.0.1:24224            hosts, a port of 24224 when none is given
//	forward://h1,h2:24225,[::1]          several hosts; an IPv6 address stands in brackets
//	forward://?host=[::1]&host=[::2]     the same, as repeated parameters
//	forward+tls://h?ca=/etc/ca.pem       settings are query parameters
//	forward+unix:///run/spillway.sock    a path
//	file:///var/log/{tag}.{date}.jsonl   a path from the root; braces are what they are
//	file:logs/{tag}.jsonl                a path from the working directory
//	stdout:   stderr:   discard:         nothing more
//
// A scheme has one of three shapes: hosts, a path, or nothing; the table in scheme.go lists them.
// Which of the schemes can be an input, and which an output, is for the caller to know.
//
// Settings are query parameters. A caller asks for those it knows, and what nobody asked for is an
// error that names it and lists what is allowed:
//
//	p := u.Params()
//	chunk := p.Size("max_chunk", 64<<20)             // 64MiB, 1GB, 4096
//	wait := p.Duration("timeout", 10*time.Second)    // 10s, 1m30s
//	if err := p.Err(); err != nil {
//
// # How it differs from net/url
//
// Nothing is guessed and nothing is dropped. A percent sign always begins %-encoding, also where no
// letter of it was meant ("%Y" is an error that points to {date}); what it stands for must be
// UTF-8. A parameter without a value is an error: where it names a secret, to leave it out opened
// the door. A plus sign is a plus sign. A "#" is an error, for the rest of the URL would silently
// be a fragment. Host lists may hold IPv6 addresses anywhere.
//
// # Promises
//
// Every error is an *Error: it says what is wrong and shows one that is right. Neither an error nor
// URL.String holds a secret: what stands where a user and password would stand, and the values of
// parameters that are named like a secret (password, token, secret, credential, shared_key and the
// like), are left out; in an error about a parameter that does not belong there so is its value.
// Parse never panics.
//
// Not promised: that a host can be looked up or a path opened.
package urls
