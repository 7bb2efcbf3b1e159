// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
)

// An Order says what a program sends, and how. A client that lacks what the order asks for fails.
type Order struct {
	Host string `json:"host"`
	Port int    `json:"port"`
	Path string `json:"path,omitempty"` // of a unix socket, in place of host and port

	Tag   string `json:"tag"`   // prefix of the tags
	Count int    `json:"count"` // events 0 to Count-1
	Batch int    `json:"batch"` // events that the program hands over before it waits for acks, or puts into one message

	Mode  string    `json:"mode"` // message, forward, packed or compressed
	Ack   bool      `json:"ack"`
	Times Precision `json:"times"`
	Huge  bool      `json:"huge"` // integers over 53 bits
	Async bool      `json:"async"`
	Dir   string    `json:"dir,omitempty"` // where the client keeps what it could not send

	// "leave": end without the server, leaving all in Dir; "resume": send what was left there;.
	Phase string `json:"phase"`
	// "buffer": keep all but the last event until there is a server, telling by a file "buffered"
	// in Dir that all are kept
	Retry bool `json:"retry"` // what is not acked is sent again until it is: the server goes away and comes back

	CA        string `json:"ca,omitempty"`   // file; TLS
	Cert      string `json:"cert,omitempty"` // file, with Key: the client's certificate
	Key       string `json:"key,omitempty"`
	SharedKey string `json:"shared_key,omitempty"`
	Hostname  string `json:"hostname,omitempty"` // the client's
	Username  string `json:"username,omitempty"`
	Password  string `json:"password,omitempty"`
}

// A Precision says what the times of an order's events are.
type Precision string

// What times there are.
const (
	Seconds      Precision = "seconds"      // integers
	Milliseconds Precision = "milliseconds" // of an EventTime
	Eighths      Precision = "eighths"      // of a second, which floats hold exactly
	Nanoseconds  Precision = "nanoseconds"
)

// Event is what event n of the order must be in the output: a record as package encoding/json
// decodes it with numbers as [json.Number].
func (o *Order) Event(n int) (when time.Time, tag string, record map[string]any) {
	when = time.Unix(1700000000+int64(n/8), 0).UTC()
	switch o.Times {
	case Milliseconds:
		when = when.Add(time.Duration(n%1000) * time.Millisecond)
	case Eighths:
		when = when.Add(time.Duration(n%8) * time.Second / 8)
	case Nanoseconds:
		when = when.Add(time.Duration((int64(n)*7919 + 1) % 1e9))
	}
	number := func(i int) json.Number { return json.Number(fmt.Sprint(i)) }
	record = map[string]any{
		"n":    number(n),
		"text": fmt.Sprintf("zwölf \"%d\"\n\t€ 日本語 🚀", n),
		"half": json.Number(fmt.Sprintf("%d.5", n)),
		"list": []any{nil, true, false, map[string]any{"deep": number(-n)}, []any{}},
		"map":  map[string]any{"": map[string]any{}, "é": map[string]any{"inner": "x"}},
		"none": nil,
		"long": strings.Repeat("x", n%300),
		"big":  json.Number(fmt.Sprint(int64(1<<53-1) - int64(n))),
		"low":  json.Number(fmt.Sprint(int64(n) - int64(1<<53-1))),
	}
	if o.Huge {
		record["huge"] = json.Number(fmt.Sprint(uint64(1<<63) - 1 - uint64(n)))
		record["least"] = json.Number(fmt.Sprint(int64(n) + math.MinInt64))
	}
	return when, o.Tag + ".t" + fmt.Sprint(n%3), record
}
