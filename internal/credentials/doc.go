// SPDX-License-Identifier: Apache-2.0

// Package credentials reads what URLs say of security: TLS material and secrets, which they name
// and never hold, and keeps what they name in force while the files change.
//
//	forward+tls://0.0.0.0:24224?cert=server.pem&key=server.key&client_ca=ca.pem&shared_key_file=shared.key&users_file=users      a server's side: Server
//	syslog+tls://0.0.0.0:6514?cert=server.pem&key=server.key&client_ca=ca.pem                                                    that of TLS alone: Server
//	forward+tls://logs.example?ca=ca.pem&shared_key_file=shared.key&username=web&password_file=web.pass                          a client's side: Client
//	kafka://b1/logs?tls=true&ca=ca.pem&sasl=plain&username=web&password_file=web.pass                                            a client of brokers: Broker
//
// Who has both, a URL and a file, reads the URL first (ReadServer, ReadTLS, ReadClient,
// ReadBroker), which touches nothing, and then the files (Open).
//
// # Files
//
// Certificates, keys and authorities are PEM. The others are text:
//
//	secret     one line; its end, "\n" or "\r\n", is no part of it. All else is, spaces too.
//
//	users      name:password               the name ends at the first colon; the password is the rest of the line, as it stands
//	           # this line is a comment    and so a name cannot begin with #
//
//	clients    host=web1.example      key_file=web1.key   users=web,app      # the name that the client gives
//	           network=10.1.0.0/16    key_env=INNER_KEY                      # where its address is in; one address has no slash
//	           host="a b" network=::1                                        # both have to fit; the key is the input's own
//
// A clients file has a rule a line. The first one that fits a client decides; what fits no rule is
// taken as if there were none (anonymous=true, the default) or refused (anonymous=false). key_file
// is looked for beside the clients file. Without users= all users may log in. Words are parted by
// spaces or tabs, a value that has one is put in double quotes; a word that begins with # begins a
// comment.
//
// An empty secret is an error unless it is asked for by name (empty_key=true), and so is a file of
// users or rules without any: it is a file that somebody is writing just now.
//
// # Reload
//
// A value is made from its files as one, and made anew when one of them has changed: that is looked
// for when a connection comes, at most once a second, and by Reload. A file has changed when its
// contents have; to see that cheaply it is looked at by stat, as long as its time is not so young
// that it could have been written twice in it.
//
//	files ──► value in force ──► connections that come from now on
//	  │ changed, and good: in force from this connection on; Reports.Renewed
//	  └ changed, and not good (a certificate without its key, a user without a password): the old value stays in force;
//	    Reports.Warn, once a change. A file that is not two seconds old is given that time: its other half may be on its way.
//
// TLS material is one value, shared key, users and clients are another one: a certificate that is
// broken does not keep a user's new password out. Connections that stand are not touched here:
// Reports.Renewed tells of the change, and its receiver sees to them.
//
// # Promises
//
// No error, report or String holds a secret or a line of a secret file: errors name the file, the
// line, and what is wrong with it. A file that others can read is told of. Files are bounded in
// size, and only regular ones are read. Where a disk hangs, one connection waits for two seconds
// and goes on with what is in force, the others at once.
//
// Not promised: that a password is safe in the environment, which other processes of the same user
// can read; that secrets are erased from memory.
package credentials
