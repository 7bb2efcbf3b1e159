// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spillwaylog/spillway/internal/files"
)

// A journal of three events is followed by a process that dies after the second, and by its
// successor.
func Example() {
	dir, err := os.MkdirTemp("", "files")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	journal := []string{"{one}\n", "{two}\n", "{three}\n"}

	var committed struct { // durable, in one piece
		position int
		state    []byte
	}
	begin := func() *files.Set {
		position := committed.position // of the last Sync
		set, err := files.Open(filepath.Join(dir, "{tag}.jsonl"), committed.state, &files.Options{
			Record: func(state []byte) error {
				committed.position, committed.state = position, state
				return nil
			},
		})
		if err != nil {
			panic(err)
		}
		return set
	}

	set := begin()
	for _, line := range journal[:2] {
		if _, err := set.Extend("app", 0, func(dst []byte) []byte { return append(dst, line...) }); err != nil {
			panic(err)
		}
	}
	if err := set.Write(); err != nil { // but no Sync and no commit
		panic(err)
	}
	set.Close()

	set = begin()
	defer set.Close()
	for _, line := range journal[committed.position:] {
		if _, err := set.Extend("app", 0, func(dst []byte) []byte { return append(dst, line...) }); err != nil {
			panic(err)
		}
	}
	state, err := set.Sync()
	if err != nil {
		panic(err)
	}
	committed.position, committed.state = len(journal), state

	b, err := os.ReadFile(filepath.Join(dir, "app.jsonl"))
	fmt.Printf("%s%v\n", b, err)
	// Output:
	// {one}
	// {two}
	// {three}
	// <nil>
}
