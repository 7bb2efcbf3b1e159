// SPDX-License-Identifier: Apache-2.0

package ring_test

import (
	"fmt"
	"log"

	"github.com/spillwaylog/spillway/ring"
)

func Example() {
	r, err := ring.Open(&ring.Options{Size: 1 << 20}) // with Dir it would outlive the process
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()

	// Any goroutine.
	var h ring.Hint // one for each goroutine, or kept beside pooled buffers
	for _, s := range []string{"one", "two", "three"} {
		if _, err := r.Append(&h, ring.Now, []byte(s)); err != nil {
			log.Fatal(err)
		}
	}

	// The reader.
	for {
		rec, ok, err := r.Next()
		if err != nil {
			log.Fatal(err)
		}
		if !ok {
			break // r.Sleep, and wait for what was given to r.SetWake
		}
		b, err := r.Copy(nil, rec)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(b))
		r.Cut(rec.Key)
	}
	// Output:
	// one
	// two
	// three
}

func ExampleAdopt() {
	const dir = "/dev/shm/example"
	wanted := func(o ring.Owner) bool { return string(o.Identity) == "mine" }
	rings, err := ring.Adopt(dir, "app", wanted, func(err error) { log.Print(err) })
	if err != nil {
		log.Print(err)
	}
	for _, r := range rings {
		for {
			rec, ok, err := r.Next()
			if err != nil || !ok {
				break
			}
			fmt.Printf("%s\n", rec.Data) // within Guard, if the file may be cut meanwhile
		}
		if lost := r.Lost(); lost.Regions > 0 {
			log.Printf("%s: %d records cannot be read", r.Path(), lost.Records)
		}
		if err := r.Close(); err != nil { // all is dealt with: the files go
			log.Print(err)
		}
	}
}
