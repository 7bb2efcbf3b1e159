// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"fmt"
	"log/slog"

	"github.com/spillwaylog/spillway/internal/record"
	"github.com/spillwaylog/spillway/msgpack"
)

type Customer struct {
	Name string `json:"name"`
}

type Order struct {
	ID   int    `json:"id"`
	Note string `json:"note,omitempty"`
	*Customer
}

func ExampleAppendMap() {
	b, err := record.AppendMap(nil, Order{ID: 42, Customer: &Customer{Name: "Ada"}})
	if err != nil {
		fmt.Println(err)
	}
	text, _, _ := msgpack.AppendJSON(nil, b, nil)
	fmt.Printf("%x\n%s\n", b, text)
	// Output:
	// 82a269642aa46e616d65a3416461
	// {"id":42,"name":"Ada"}
}

func ExampleAppendAttrs() {
	b, at := record.BeginMap(nil, 3)
	b, n := record.AppendAttrs(b, []slog.Attr{
		slog.Int("id", 42),
		slog.Group("customer", slog.String("name", "Ada")),
		slog.Group("nothing"),
	})
	b = record.EndMap(b, at, n)
	text, _, _ := msgpack.AppendJSON(nil, b, nil)
	fmt.Printf("%s\n", text)
	// Output: {"id":42,"customer":{"name":"Ada"}}
}
