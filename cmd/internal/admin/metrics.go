// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/codes"
)

// figures are a collector's, read anew for each scrape: one picture, so that the laws of
// collector.Stats hold in it as they do there.
type figures struct {
	stats   func() collector.Stats
	version string
}

// newSyncs is how long the journal's syncs take: a native histogram, and classic buckets for those
// that know no other.
func newSyncs() prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "spillway_journal_sync_seconds", Help: "How long syncs of the journal took.",
		Buckets: []float64{
			0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5,
			10,
		},
		NativeHistogramBucketFactor:  1.1,
		NativeHistogramZeroThreshold: 1e-6, NativeHistogramMaxBucketNumber: 160,
		NativeHistogramMinResetDuration: time.Hour,
	})
}

// A figure is one number of a T. Several may be of one family, told apart by a label.
type figure[T any] struct {
	family *family
	label  string // "": it has no label of its own
	value  func(*T) float64
}

func one[T any](name, help string, kind dto.MetricType, value func(*T) float64, labels ...string) figure[T] {
	return figure[T]{family: describe(name, help, kind, labels...), value: value}
}

// share is one figure of a family.
func share[T any](family *family, label string, value func(*T) float64) figure[T] {
	return figure[T]{family, label, value}
}

type (
	inputStats  = collector.InputStats
	outputStats = collector.OutputStats
	stats       = collector.Stats
)

var (
	inputFates = describe("input_event_fates_total",
		"Events that arrived, by what became of them; their sum is spillway_input_events_total.", counts, "fate",
		"input")
	inputChunkFates = describe("input_chunk_fates_total",
		"Chunks that arrived, by what became of them; their sum is spillway_input_chunks_total.", counts, "fate",
		"input")
	outputDropped = describe("output_dropped_events_total", "Events that were given up, by reason.", counts, "output",
		"reason")
	peerErrors = describe("input_peer_errors_total",
		"What peers of Forward inputs did wrong, by the code of the message.", counts, "code")
	information = describe("build_info", "What runs.", shows, "version")
)

// reasons are those for which an output drops events: each is there from the start, at 0.
var reasons = []string{"behind", "removed", "unreadable"}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

var inputFigures = []figure[inputStats]{
	one("input_events_total", "Events that arrived.", counts, func(s *inputStats) float64 { return float64(s.In) },
		"input"),
	share(inputFates, "stored", func(s *inputStats) float64 { return float64(s.Stored) }),
	share(inputFates, "repeated", func(s *inputStats) float64 { return float64(s.Repeated) }),
	share(inputFates, "skipped", func(s *inputStats) float64 { return float64(s.Skipped) }),
	share(inputFates, "invalid", func(s *inputStats) float64 { return float64(s.Invalid) }),
	share(inputFates, "oversize", func(s *inputStats) float64 { return float64(s.Oversize) }),
	share(inputFates, "refused", func(s *inputStats) float64 { return float64(s.Refused) }),
	one("input_chunks_total", "Chunks that arrived.", counts, func(s *inputStats) float64 { return float64(s.Chunks) },
		"input"),
	share(inputChunkFates, "stored", func(s *inputStats) float64 { return float64(s.StoredChunks) }),
	share(inputChunkFates, "repeated", func(s *inputStats) float64 { return float64(s.RepeatedChunks) }),
	share(inputChunkFates, "refused", func(s *inputStats) float64 { return float64(s.RefusedChunks) }),
	one("input_refused_messages_total", "Messages that cannot be read, so that nobody knows how many events they hold.",
		counts,
		func(s *inputStats) float64 { return float64(s.RefusedMessages) }, "input"),
	one("input_cut_events_total", "Stored lines and messages whose end is missing, for they were too long.", counts,
		func(s *inputStats) float64 { return float64(s.Cut) }, "input"),
	one("input_unparsed_events_total", "Stored lines and messages that are text, for they are not what the input expects.", counts,
		func(s *inputStats) float64 { return float64(s.Unparsed) }, "input"),
	one("input_rings_total", "Rings of dead processes that were taken over and removed.", counts,
		func(s *inputStats) float64 { return float64(s.Rings) }, "input"),
	one("input_spills_total", "Spills of dead processes that were taken over with their rings.", counts,
		func(s *inputStats) float64 { return float64(s.Spills) }, "input"),
	one("input_lost_events_total", "Events of dead processes that cannot be read.", counts,
		func(s *inputStats) float64 { return float64(s.Lost) }, "input"),
	one("input_read_bytes_total", "Bytes read.", counts, func(s *inputStats) float64 { return float64(s.Bytes) },
		"input"),
	one("input_connections", "Connections, or whatever else is read from, that are open now.", shows,
		func(s *inputStats) float64 { return float64(s.Connections) }, "input"),
	one("input_removed", "1 when a reload has removed the input.", shows,
		func(s *inputStats) float64 { return truth(s.Removed) }, "input"),
	one("input_acks_total", "Acks written; 0 for inputs without.", counts,
		func(s *inputStats) float64 { return float64(s.Server.Acks) }, "input"),
}

var outputFigures = []figure[outputStats]{
	one("output_found_events", "Events that the journal held for this output when the process started.", shows,
		func(s *outputStats) float64 { return float64(s.Found) }, "output"),
	one("output_events_total", "Events that the output has confirmed.", counts,
		func(s *outputStats) float64 { return float64(s.Out) }, "output"),
	one("output_filtered_events_total", "Events that are not meant for the output, by the routes and their steps.",
		counts,
		func(s *outputStats) float64 { return float64(s.Filtered) }, "output"),
	one("output_taken_events_total", "Events handed to the output; after errors some of them again.", counts,
		func(s *outputStats) float64 { return float64(s.Taken) }, "output"),
	one("output_chunks_total", "Chunks handed to the output.", counts,
		func(s *outputStats) float64 { return float64(s.Chunks) }, "output"),
	one("output_written_bytes_total", "Bytes of the lines that were made; after errors some were made again.", counts,
		func(s *outputStats) float64 { return float64(s.Bytes) }, "output"),
	one("output_dead_lettered_events_total", "Events set aside because the output refuses them, or was too far behind.",
		counts,
		func(s *outputStats) float64 { return float64(s.DeadLettered) }, "output"),
	one("output_diverted_events_total", "Confirmed events that went to the file for the rest.", counts,
		func(s *outputStats) float64 { return float64(s.Diverted) }, "output"),
	one("output_restamped_events_total", "Events that have another time at the output than their own, which is not taken there.", counts,
		func(s *outputStats) float64 { return float64(s.Restamped) }, "output"),
	one("output_maybe_twice_events_total", "Confirmed events that were sent to two hosts.", counts,
		func(s *outputStats) float64 { return float64(s.MaybeTwice) }, "output"),
	one("output_broken_records_total", "Records of the journal that were no chunks.", counts,
		func(s *outputStats) float64 { return float64(s.Broken) }, "output"),
	one("output_outside_events_total", "Events stored while the output had no place: before a reload added it, or after its place was given up.", counts,
		func(s *outputStats) float64 { return float64(s.Outside) }, "output"),
	one("output_removed", "1 when a reload has removed the output; what is behind waits for it to come again.", shows,
		func(s *outputStats) float64 { return truth(s.Removed) }, "output"),
	one("output_behind_events", "Events in the journal that the output has not confirmed.", shows,
		func(s *outputStats) float64 { return float64(s.Behind) }, "output"),
	one("output_behind_bytes", "Bytes of the journal that hold these.", shows,
		func(s *outputStats) float64 { return float64(s.BehindBytes) }, "output"),
	one("output_behind_seconds", "How long ago the oldest of these arrived, at least.", shows,
		func(s *outputStats) float64 { return s.BehindFor.Seconds() }, "output"),
	one("output_failing", "1 while the output does not take what it is given.", shows,
		func(s *outputStats) float64 { return truth(s.Failure != nil) }, "output"),
	one("output_retries_total", "Tries that failed, so that another one came or will.", counts,
		func(s *outputStats) float64 { return float64(s.Retries) }, "output"),
	one("output_throttled_total", "Times that the other side held the output up, for a quota was used up.", counts,
		func(s *outputStats) float64 { return float64(s.Throttled) }, "output"),
	one("output_breaker_open", "1 while the output is taken for dead after failures in a row, and only probed.", shows,
		func(s *outputStats) float64 { return truth(s.BreakerOpen) }, "output"),
	one("output_failed_tries", "How often it was tried since it fails; 0 while it does not.", shows,
		func(s *outputStats) float64 {
			if s.Failure == nil {
				return 0
			}
			return float64(s.Failure.Tries)
		}, "output"),
}

var wholeFigures = []figure[stats]{
	one("counting", "1 while what the journal held at the start is being counted: found and behind are too small.",
		shows,
		func(s *stats) float64 { return truth(s.Counting) }),
	one("journal_used_bytes", "Bytes of the journal that some cursor has yet to pass.", shows,
		func(s *stats) float64 { return float64(s.Journal.Used) }),
	one("journal_limit_bytes", "What the journal's files may take.", shows,
		func(s *stats) float64 { return float64(s.Journal.MaxBytes) }),
	one("journal_files_bytes", "What they do take.", shows, func(s *stats) float64 { return float64(s.Journal.Bytes) }),
	one("journal_records_total", "Records appended.", counts,
		func(s *stats) float64 { return float64(s.Journal.Records) }),
	one("journal_written_bytes_total", "Bytes written to the journal.", counts,
		func(s *stats) float64 { return float64(s.Journal.WrittenBytes) }),
	one("journal_writes_total", "Writes to the journal.", counts,
		func(s *stats) float64 { return float64(s.Journal.Batches) }),
	one("journal_syncs_total", "Syncs of the journal.", counts,
		func(s *stats) float64 { return float64(s.Journal.Syncs) }),
	one("journal_damaged_places_total", "Places that could not be read, and were set aside.", counts,
		func(s *stats) float64 { return float64(s.Journal.Damaged) }),
	one("journal_failing", "1 while the journal takes nothing, and senders wait.", shows,
		func(s *stats) float64 { return truth(s.Failure != nil) }),
	one("dead_letters", "Dead letters that are there.", shows,
		func(s *stats) float64 { return float64(s.Letters.Letters) }),
	one("dead_letter_events", "Events in them.", shows, func(s *stats) float64 { return float64(s.Letters.Events) }),
	one("dead_letter_bytes", "Bytes of them.", shows, func(s *stats) float64 { return float64(s.Letters.Bytes) }),
	one("dead_letter_dropped_events_total", "Events of dead letters that gave way to new ones.", counts,
		func(s *stats) float64 { return float64(s.Letters.Dropped) }),
	one("repeats_chunks", "Chunks that would be recognised if they came again.", shows,
		func(s *stats) float64 { return float64(s.Repeats.Chunks) }),
	one("repeats_limit_chunks", "How many these can be.", shows,
		func(s *stats) float64 { return float64(s.Repeats.MaxChunks) }),
	one("repeats_bytes", "Memory for them.", shows, func(s *stats) float64 { return float64(s.Repeats.Bytes) }),
	one("repeats_age_seconds", "How far back they reach.", shows,
		func(s *stats) float64 { return s.Repeats.Age.Seconds() }),
	one("connection_buffers_bytes", "What all connections of Forward inputs buffer.", shows,
		func(s *stats) float64 { return float64(s.Server.Memory) }),
	one("connections_accepted_total", "Connections of Forward inputs that were accepted.", counts,
		func(s *stats) float64 { return float64(s.Server.Accepted) }),
}

// picture takes one.
func (f *figures) picture() picture {
	p := picture{}
	s := f.stats()
	p.add(information, 1, information.with(f.version))
	for i := range s.Inputs {
		collect(p, inputFigures, &s.Inputs[i], s.Inputs[i].Name)
	}
	for i := range s.Outputs {
		o := &s.Outputs[i]
		collect(p, outputFigures, o, o.Name)
		for _, reason := range reasons {
			p.add(outputDropped, float64(o.Dropped[reason]), outputDropped.with(o.Name, reason))
		}
	}
	collect(p, wholeFigures, &s)
	for _, kind := range forward.PeerErrorKinds() {
		p.add(peerErrors, float64(s.Server.PeerErrors[kind]), peerErrors.with(string(codes.Peer(kind))))
	}
	return p
}

// collect adds the figures of one thing, under its name if it has one.
func collect[T any](p picture, list []figure[T], of *T, name ...string) {
	labels := list[0].family.with(name...) // those without a label of their own have it in common
	for i := range list {
		f := &list[i]
		if f.label == "" {
			p.add(f.family, f.value(of), labels)
		} else {
			p.add(f.family, f.value(of), f.family.with(append([]string{f.label}, name...)...))
		}
	}
}
