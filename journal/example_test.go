// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/spillwaylog/spillway/journal"
)

func Example() {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()

	j, err := journal.Open(dir, &journal.Options{Report: func(err error) { log.Print(err) }})
	if err != nil {
		log.Fatal(err)
	}
	defer j.Close()

	// Append copies; Sync returns when the record is on the disk.
	pos, err := j.Append([]byte("hello, "), []byte("journal"))
	if err != nil {
		log.Fatal(err)
	}
	if err := j.Sync(ctx, pos); err != nil {
		log.Fatal(err)
	}

	// A reader follows, and commits how far it got together with a few bytes of its own.
	r, err := j.Reader("output")
	if err != nil {
		log.Fatal(err)
	}
	rec, err := r.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", rec.Data)
	if err := r.Commit(rec.Pos, []byte("1 record")); err != nil {
		log.Fatal(err)
	}
	// Output: hello, journal
}
