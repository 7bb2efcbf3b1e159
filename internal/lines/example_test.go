// SPDX-License-Identifier: Apache-2.0

package lines_test

import (
	"fmt"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/lines"
	"github.com/spillwaylog/spillway/msgpack"
)

func Example() {
	record := msgpack.AppendMapHeader(nil, 2)
	record = msgpack.AppendString(record, "msg")
	record = msgpack.AppendString(record, "order placed")
	record = msgpack.AppendString(record, "time") // the envelope has one
	record = msgpack.AppendInt(record, 42)

	var e lines.Encoder
	line := e.AppendLine(nil, "app.web", forward.Entry{Sec: 1795226584, Nsec: 123456789, Record: record})
	fmt.Printf("%s", line)
	// Output: {"time":"2026-11-21T02:03:04.123456789Z","tag":"app.web","msg":"order placed","time_":42}
}
