// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"flag"
	"time"
)

// The flags. Without -addr and -client the subjects are those of this repository.
var (
	addr    = flag.String("addr", "", "`host:port` of the server to test; none: this repository's, which the suite starts itself")
	out     = flag.String("out", "", "`file` to which that server appends events as lines of JSON")
	timeKey = flag.String("time-key", "time", "`key` of the time in a line: RFC 3339, or a number of seconds")
	tagKey  = flag.String("tag-key", "tag", "`key` of the tag in a line")
	metaKey = flag.String("metadata-key", "metadata",
		"`key` of an event's metadata in a line, where the server writes it")
	recordKey = flag.String("record-key", "",
		"`key` of the record in a line; none: its members stand in the line itself")
	maxChunk    = flag.Int64("max-chunk", 0, "`bytes` of the largest message that the server takes, if that is to be tested")
	maxUnpacked = flag.Int64("max-unpacked", 0,
		"`bytes` of the largest chunk after decompression that the server takes, if that is to be tested")

	sharedKey = flag.String("shared-key", "", "shared `key` of the server, which then speaks first")
	user      = flag.String("user", "", "`name` of a user of the server")
	password  = flag.String("password", "", "that user's `password`")
	tlsCA     = flag.String("tls-ca", "", "`file` of the authority that vouches for the server, which then speaks TLS")

	client      = flag.String("client", "", "`command` that sends lines of standard input; {host}, {port} and {addr} in it are replaced")
	clientLogin = flag.String("client-login", "",
		"`command` of a client that logs in: besides, {key}, {key_file}, {user}, {password} and {password_file} are replaced")
	clientTLS = flag.String("client-tls", "",
		"`command` of a client that speaks TLS: besides, {ca} is replaced by the file of the authority to trust")

	wait = flag.Duration("wait", 20*time.Second, "how long a subject may take for anything")

	built = flag.String("program", "", "`file` of this repository's program; none: it is built")

	report = flag.String("report", "", "`file` to write the results to, as JSON")
	table  = flag.String("table", "", "`file` to write the results to, as a table in Markdown")
	update = flag.Bool("update", false, "write the table of docs/forward.md again")
)

// foreign tells whether the subjects are others'.
func foreign() bool { return *addr != "" || *client != "" || *clientLogin != "" || *clientTLS != "" }
