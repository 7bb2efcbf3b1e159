// SPDX-License-Identifier: Apache-2.0

package forward_test

import (
	"context"
	"fmt"
	"net"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

func Example() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	s := &forward.Server{Handler: forward.HandlerFunc(func(_ context.Context, c *forward.Chunk) error {
		r := forward.ReadEntries(c.Entries)
		for e, ok := r.Next(); ok; e, ok = r.Next() {
			record, _, err := msgpack.AppendJSON(nil, e.Record, forward.AppendExtJSON)
			if err != nil {
				return err
			}
			fmt.Printf("%s %s %s\n", c.Tag, e.Time().Format("15:04:05.000"), record)
		}
		return r.Err() // nil: stored, and the ack goes out
	})}
	served := make(chan error)
	go func() { served <- s.Serve(l) }()

	entry := msgpack.AppendArrayHeader(nil, 2)
	entry = forward.AppendEventTime(entry, 1441588984, 123456789)
	entry = msgpack.AppendMapHeader(entry, 1)
	entry = msgpack.AppendString(entry, "message")
	entry = msgpack.AppendString(entry, "hello")

	c := &forward.Client{Address: l.Addr().String()}
	if err := c.Send(context.Background(), &forward.Chunk{Tag: "app.web", Entries: entry, Events: 1}); err != nil {
		fmt.Println(err)
	}
	_ = c.Close()
	_ = s.Shutdown(context.Background())
	fmt.Println(<-served)
	// Output:
	// app.web 01:23:04.123 {"message":"hello"}
	// forward: server closed
}
