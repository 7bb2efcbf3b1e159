// SPDX-License-Identifier: Apache-2.0

// Package floors holds no code, only the tests that keep the repository's packages in their order
// and its documents true: each link leads somewhere, each promise names its test.
//
// Every package stands on a floor, and imports point down only. DESIGN.md, "Floors", draws which
// package stands where; the table in table_test.go is what the tests hold the code to.
//
// Between packages of one floor an arrow must be in the table by name; so must each arrow that
// leaves floor 1 or 2, so that a new dependency is a line that was written and reviewed. A package
// that is not in the table fails the test: put it there, with its floor and the packages it may
// import.
//
// The root module imports the standard library, golang.org/x/sys and github.com/klauspost/compress,
// and its own tests import nothing but the standard library besides: the library must not raise
// other versions of third parties in the programs that import it.
package floors
