// SPDX-License-Identifier: Apache-2.0

// Command release makes the commits and tags of a version, and the modules as a proxy serves them.
//
//	go run ./test/release [-dry-run] [-proxy DIR] v0.1.0
//
// On the branch, cmd, compat/fluent and the adapters replace the root module by the folder above
// them, and with such a line "go install" refuses a module. So the root's tag is on the branch, and
// the tags of the others are on a commit beside it:
//
//	──●──●──●  main             v0.1.0
//	         ╲
//	          ●                 cmd/v0.1.0, adapter/zap/v0.1.0, …: no replace; go.mod and go.sum name v0.1.0 and its hash
//
// All of it is made in a clone and comes into the repository at the end, in one step: what fails
// leaves nothing behind. The working tree and the branches stay as they are, and nothing is pushed.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	o := &options{repository: "."}
	flag.BoolVar(&o.dryRun, "dry-run", false, "do it all, but make no tag")
	flag.StringVar(&o.proxy, "proxy", "", "new folder for what GOPROXY=file://DIR serves: the modules of this release")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: go run ./test/release [-dry-run] [-proxy DIR] VERSION")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	o.version = flag.Arg(0)
	if err := release(o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}
