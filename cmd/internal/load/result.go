// SPDX-License-Identifier: Apache-2.0

package load

import (
	"math"
	"time"
)

// A Result is what became of one run. It is also what a report in JSON has for it: fields are
// added, never renamed, and none changes its meaning while [Schema] stays. Where it says "second"
// it is one of Seconds, the time that was measured; the warm-up is in Total only.
type Result struct {
	Mode         Mode   `json:"mode"`
	Compress     string `json:"compress"` // "none", "gzip", "zstd"
	Batch        int    `json:"batch"`    // events a message
	Size         int    `json:"event_bytes"`
	MessageBytes int    `json:"message_bytes"` // on average
	Connections  int    `json:"connections"`
	Ack          bool   `json:"ack"`
	Depth        int    `json:"depth"` // 0 without acks

	Rate         float64 `json:"rate"`          // events a second asked for; 0: as many as the server takes
	Seconds      float64 `json:"seconds"`       // measured; shorter than asked for if the run failed
	DrainSeconds float64 `json:"drain_seconds"` // from the last write until the server had acked or read everything
	Drained      bool    `json:"drained"`       // it did; of a server that did not close, it is unknown
	Offered      float64 `json:"offered_per_s"` // what the schedule had due; without a rate what was sent
	Sent         float64 `json:"sent_per_s"`    // written: taken by the kernel
	SentBytes    float64 `json:"sent_bytes_per_s"`
	Acked        float64 `json:"acked_per_s"` // 0 without acks
	// Acked; without acks: sent, by the time until the connections were drained.
	Taken  float64 `json:"taken_per_s"`
	KeptUp bool    `json:"kept_up"` // Taken is at least 99 % of Offered, and nothing went wrong

	Backlog int64  `json:"backlog_events"`   // due at the end, and not sent
	Unacked int64  `json:"unacked_messages"` // sent, and without an ack at the end
	Total   Totals `json:"total"`

	Latency   *Latency `json:"latency"`   // of acks; null without
	Server    *Usage   `json:"server"`    // null: not measured
	Generator *Usage   `json:"generator"` // this process; null: not measured

	Error string `json:"error"` // what went wrong; "" if nothing did
}

// Totals are counts of the whole run, warm-up and drain included.
type Totals struct {
	Messages int64 `json:"messages"`
	Events   int64 `json:"events"`
	Bytes    int64 `json:"bytes"`
	Acked    int64 `json:"acked_messages"`
}

// Latency is the time from when messages were due until their acks were read, in microseconds. A
// quantile is at most 1/32 too high.
type Latency struct {
	Count uint64  `json:"count"` // messages
	Mean  float64 `json:"mean_us"`
	P50   float64 `json:"p50_us"`
	P90   float64 `json:"p90_us"`
	P99   float64 `json:"p99_us"`
	P999  float64 `json:"p999_us"`
	Max   float64 `json:"max_us"`
}

// Usage is what processes used.
type Usage struct {
	CPUSeconds    float64 `json:"cpu_s"`             // from the end of the warm-up until the run was drained
	CPUPercent    float64 `json:"cpu_percent"`       // of one processor, in the time measured
	CPUPerMillion float64 `json:"cpu_s_per_million"` // CPUSeconds by million events sent, or acked, in that time
	Resident      int64   `json:"resident_bytes"`    // at the end
	ResidentMax   int64   `json:"resident_max_bytes"`
}

// keptUp is the share of what is offered that counts as keeping up.
const keptUp = 0.99

func (h *histogram) latency() *Latency {
	us := func(d time.Duration) float64 { return math.Round(float64(d)/10) / 100 }
	return &Latency{
		Count: h.n, Mean: us(h.mean()), P50: us(h.quantile(.5)), P90: us(h.quantile(.9)), P99: us(h.quantile(.99)),
		P999: us(h.quantile(.999)), Max: us(h.max),
	}
}
