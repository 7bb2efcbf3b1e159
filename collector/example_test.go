// SPDX-License-Identifier: Apache-2.0

package collector_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// A collector as part of a program: it listens on a free port and writes a file
// for each tag. Run returns when its context ends and what arrived is handed on.
func Example() {
	dir, err := os.MkdirTemp("", "collector")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	c, err := collector.Open(&collector.Config{
		Inputs:  collector.Ends("forward://127.0.0.1:0"),
		Outputs: collector.Ends("file:" + filepath.ToSlash(filepath.Join(dir, "{tag}.jsonl"))),
		Dir:     filepath.Join(dir, "data"),
		Log:     slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()

	// A sender, in another program as a rule. Send returns when the chunk is acked.
	entry := msgpack.AppendArrayHeader(nil, 2)
	entry = forward.AppendEventTime(entry, 1_700_000_000, 123_456_789)
	entry = msgpack.AppendMapHeader(entry, 1)
	entry = msgpack.AppendString(entry, "msg")
	entry = msgpack.AppendString(entry, "hello")
	client := &forward.Client{Address: c.Addrs()[0].String()}
	defer client.Close()
	if err := client.Send(ctx, &forward.Chunk{
		Tag: "app", ID: forward.NewID(), UniqueID: true, Entries: entry,
		Events: 1,
	}); err != nil {
		fmt.Println(err)
	}

	stop()
	if err := <-ended; err != nil {
		fmt.Println(err)
	}
	lines, err := os.ReadFile(filepath.Join(dir, "app.jsonl"))
	fmt.Print(string(lines))
	if err != nil {
		fmt.Println(err)
	}
	// Output: {"time":"2023-11-14T22:13:20.123456789Z","tag":"app","msg":"hello"}
}

// Routes with steps, written in Go. Check says what is wrong with a configuration, and where.
func ExampleRoute() {
	config := collector.Config{
		Inputs:  collector.Ends("forward://127.0.0.1:0"),
		Outputs: []collector.End{{Name: "bus", URL: "discard:"}, {Name: "archive", URL: "discard:"}},
		Dir:     "data",
		Routes: []collector.Route{
			{
				Match: "app.**", To: []string{"bus"}, Continue: true,
				Do: []collector.Step{
					{Drop: `level == "DEBUG"`},
					{Parse: &collector.Parse{Field: "msg", As: "json", Into: "fields"}},
					{Set: collector.Values{{Field: "env", Value: "production"}}},
					{Throttle: &collector.Throttle{Events: 100, Per: time.Minute, By: []string{"tag"}}},
				},
			},
			{Match: "**", To: []string{"archive"}},
		},
	}
	fmt.Println(config.Check())
	config.Routes[0].Do[3].Throttle.Events = 0
	fmt.Println(config.Check())
	// Output:
	// <nil>
	// routes[0].do[3].throttle.events: throttle lets 1 to 1000000000 events pass
}
