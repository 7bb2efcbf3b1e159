// SPDX-License-Identifier: Apache-2.0

// Package admin is the address at which a collector tells of itself, over HTTP.
//
//	GET  /metrics   figures for Prometheus
//	GET  /healthz   200 while the process answers
//	GET  /readyz    200 while everything moves; else 503, and a line for each thing that does not
//	GET  /status    the account, as JSON
//	GET  /config    what is in force, as YAML, without secrets
//	GET  /tail      events as they are stored, as JSON lines, until the client hangs up; where there
//	                is a token or a client's certificate, or the word tail=true
//	POST /reload    reads the configuration again; 409 and the reasons if nothing was changed
//
// All figures come from collector.Stats, taken once a request, but for the histogram of the
// journal's syncs. A Client asks for them.
//
// # Access
//
// Without a token or a client's certificate every client that reaches the address may ask. So an
// address that is not the loopback one needs one of them, or the word anonymous=true. /healthz and
// /readyz need no token: probes have none, and learn the names of outputs alone. A page in a
// browser on this machine reaches the loopback address too: what another site has it post is
// refused, and so are requests for another host's name, where there is no token.
//
// At most 64 connections are open. For a further one that is closed which was silent the longest.
package admin
