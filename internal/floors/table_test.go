// SPDX-License-Identifier: Apache-2.0

package floors

import "strings"

// module is the path of the root module; packages in the table are named relative to it.
const module = "github.com/spillwaylog/spillway"

// A place is where a package stands.
type place struct {
	floor int
	down  []string // the packages of this repository that it may import, relative to module
	tests []string // what its test files may import besides
}

// root is the name of the package in the repository's top folder.
const root = "."

// What test files everywhere may import, and nothing else may.
const (
	needsPath = "internal/needs"
	testcert  = "internal/testcert"
	alikePath = "internal/alike"
)

// withinPath is what ring and journal reach another user's files by.
const withinPath = "internal/within"

// codesPath has the codes of the collector's messages, and of errors that become messages.
const codesPath = "internal/codes"

// awaitPath waits for time, and for what a process was started with.
const awaitPath = "internal/await"

// fifoPath is a queue in memory.
const fifoPath = "internal/fifo"

// table lists every package of the root module.
var table = map[string]place{
	"msgpack":  {floor: 0},
	"ring":     {floor: 0, down: []string{withinPath}},
	"journal":  {floor: 0, down: []string{withinPath}},
	withinPath: {floor: -1},                             // beside the standard library, as it were: files, safely
	codesPath:  {floor: -1, tests: []string{"forward"}}, // words
	awaitPath:  {floor: -1},
	fifoPath:   {floor: -1},
	needsPath:  {floor: 0},
	testcert:   {floor: 0},

	"forward": {floor: 1, down: []string{
		"forward/internal/budget", "forward/internal/wire", "internal/record", "msgpack",
	}, tests: []string{"forward/internal/vectors"}},
	"forward/internal/wire":   {floor: 1, down: []string{"msgpack"}, tests: []string{"forward/internal/vectors"}},
	"forward/internal/budget": {floor: 1},

	"forward/internal/vectors": {floor: 0},

	"internal/lines":       {floor: 1, down: []string{"forward", "msgpack"}},
	"internal/files":       {floor: 1, down: []string{codesPath}},
	"internal/urls":        {floor: 1},
	"internal/credentials": {floor: 1, down: []string{"forward", "internal/urls"}},
	"internal/record":      {floor: 1, down: []string{"msgpack"}},
	"internal/step":        {floor: 1, down: []string{"internal/lines", "msgpack"}},
	"internal/letters":     {floor: 1, down: []string{codesPath, "forward", "journal", "msgpack"}},
	"internal/output": {floor: 1, down: []string{
		"forward", "internal/credentials", "internal/files", "internal/lines", "internal/urls", "msgpack",
	}},
	"internal/follow": {
		floor: 2, down: []string{
			awaitPath, codesPath, "forward", fifoPath, "internal/output", "internal/step", "journal",
		},
		tests: []string{"internal/files", "msgpack"},
	},

	"internal/spill":  {floor: 2, down: []string{"forward", withinPath, "journal", "ring"}},
	"internal/window": {floor: 2, down: []string{"forward", "msgpack", "ring"}},
	"internal/successor": {floor: 2, down: []string{
		codesPath, "forward", "internal/spill", "internal/window", withinPath, "journal", "ring",
	}, tests: []string{"internal/mover", "internal/output", "msgpack"}},
	"internal/mover": {floor: 2, down: []string{
		"forward", fifoPath, "internal/letters", "internal/output", "internal/spill", "internal/window", "journal",
		"ring",
	}, tests: []string{"msgpack"}},
	root: {floor: 2, down: []string{
		"forward", "internal/credentials", "internal/output", "internal/lines", "internal/mover", "internal/record",
		"internal/urls", "internal/window", "msgpack", "ring",
	}},
	"collector": {floor: 2, down: []string{
		awaitPath, codesPath, "forward", "internal/credentials", "internal/follow", "internal/successor",
		"internal/letters",
		"internal/lines", "internal/output", "internal/step", "internal/urls", "journal", "msgpack",
	}, tests: []string{"internal/window", "ring"}},

	"internal/floors": {floor: 3},
	alikePath:         {floor: 3, down: []string{root, "msgpack"}},
	"examples/logger": {floor: 3, down: []string{root}},
	"examples/ends":   {floor: 3, down: []string{"collector", "forward", "msgpack"}}, // a module of its own
}

// top lists the folders of floor 3: modules of their own, each with what its packages may import. A
// package of such a module may import any other of the same module.
var top = map[string][]string{
	"cmd": {
		root, awaitPath, codesPath, "collector", "forward", "internal/credentials", "internal/files",
		"internal/letters",
		"internal/lines", "internal/mover", "internal/output", "internal/step", "internal/urls", "internal/window",
		"journal", "msgpack", "ring",
	},
	"test": {
		root, "collector", "forward", "internal/files", "internal/letters", "internal/lines", needsPath,
		"internal/urls", "journal", "msgpack", "ring",
	},
	"bench": {
		root, "collector", "forward", "internal/files", "internal/lines", "internal/urls", "journal", "msgpack",
		"ring",
	},
	"compat":  {root, "forward", "msgpack"},
	"adapter": {root, "msgpack"},
}

// thirdParties are the modules that the root module may import.
var thirdParties = []string{"golang.org/x/sys", "github.com/klauspost/compress"}

// barred are file names that say nothing about what is in the file.
var barred = []string{"util", "utils", "types", "helper", "helpers", "common", "misc"}

// within reports whether the import path p is m or lies below it.
func within(p, m string) bool {
	return p == m || strings.HasPrefix(p, m+"/")
}
