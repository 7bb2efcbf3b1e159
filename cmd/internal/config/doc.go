// SPDX-License-Identifier: Apache-2.0

// Package config reads the configuration of "spillway serve" from a file of YAML, which is only
// another spelling of its flags.
//
//	file ──► tree: scalars, lists and maps, ──► settings: the fields of a struct, by their flags' names
//	include   each with its place               ends: a URL, or a URL and its parameters
//	            │                               routes, tests: lists and maps to Go types
//	            │ ${NAME}, ${file:…} in scalars      │
//	            └────────────── mistakes ◄───────────┴──── what the caller's check finds
//
// # Mistakes
//
// Nothing is guessed: an unknown key, a key that stands twice, a value of another type, an anchor
// or a tag is a mistake, with file, line, column, and the line itself. All of them are told at
// once. What only a check of the whole can find (package collector plans each URL) is put to the
// place that it is about.
//
// # Secrets
//
// What a variable or a file gave is never in a mistake, and [File.Hide] takes it out of any text.
// Neither is what stands behind a key that is named like a secret, or that is not known, in its
// line or in those that belong to it.
//
// # Bounds
//
// A file has at most 256 KiB and 20,000 tokens, all files together 1 MiB, and values nest eight
// deep. Anchors, aliases, tags and further documents are refused before anything is made of them.
package config
