// SPDX-License-Identifier: Apache-2.0

//go:build !race

package test_test

import (
	"io"
	"testing"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/compat/fluent/fluent"
)

type access struct {
	Method string `msg:"method"`
	Status int    `msg:"status"`
	Bytes  int64  `codec:"bytes"`
}

// TestPostAllocates nothing, with Async and without, once the message exists.
func TestPostAllocates(t *testing.T) {
	s := play(t)
	config := s.config()
	direct := open(t, config)
	sink := s.accept().nc
	go func() { _, _ = io.Copy(io.Discard, sink) }()
	config = listen(t, "tcp", "127.0.0.1:0").config()
	config.Async = true
	async, err := fluent.NewWith(config, &spillway.Options{})
	must(t, err)
	defer func() { must(t, async.Close()) }()
	for name, f := range map[string]*fluent.Fluent{"sync": direct, "async": async} {
		for kind, v := range map[string]any{
			"struct": access{"GET", 200, 1234567}, "pointer": &access{"GET", 200, 1},
			"strings": map[string]string{"foo": "bar", "hoge": "hoge"}, "map": map[string]any{"n": 1, "s": "x"},
		} {
			if n := testing.AllocsPerRun(200, func() {
				if err := f.PostWithTime("tag", clock, v); err != nil {
					t.Error(err)
				}
			}); n >= 1 { // other goroutines ship and receive meanwhile; their allocations are few
				t.Errorf("%s, %s: %v allocations", name, kind, n)
			}
		}
	}
}
