// SPDX-License-Identifier: Apache-2.0

package urls_test

import (
	"fmt"
	"time"

	"github.com/spillwaylog/spillway/internal/urls"
)

func Example() {
	u, err := urls.Parse("forward://logs.example,[::1]:5?timeout=1m30s&max_chunk=8MiB")
	if err != nil {
		panic(err)
	}
	p := u.Params()
	timeout := p.Duration("timeout", 10*time.Second)
	chunk := p.Size("max_chunk", 64<<20)
	fmt.Println(u.Scheme, u.Hosts, timeout, chunk, p.Err())

	_, err = urls.Parse("file://logs/x.jsonl")
	fmt.Println(err)
	// Output:
	// forward [logs.example:24224 [::1]:5] 1m30s 8388608 <nil>
	// file://logs/x.jsonl: behind two slashes stands a host, and "logs" is none: a path from the root has three slashes (file:///logs/x.jsonl), one from the working directory has none (file:logs/x.jsonl); for example file:///var/log/{tag}.{date}.jsonl
}
