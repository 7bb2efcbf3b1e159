// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/internal/lines"
)

// asking returns what delivers the signal that asks for the account (SIGUSR1,
// where that exists), which from now on does not end the process.
func asking() (asked chan os.Signal, stop func()) {
	asked = make(chan os.Signal, 1)
	notifyAccount(asked)
	return asked, func() { signal.Stop(asked) }
}

// The account of a collector in JSON: the words are those of collector.Stats, and docs/serve.md
// explains each. Sums are left to the reader.
type (
	inputAccount struct {
		Name            string `json:"name"`
		URL             string `json:"url"`
		Removed         bool   `json:"removed,omitempty"`
		In              int64  `json:"in"`
		Stored          int64  `json:"stored"`
		Repeated        int64  `json:"repeated"`
		Skipped         int64  `json:"skipped"`
		Invalid         int64  `json:"invalid"`
		Oversize        int64  `json:"oversize"`
		Refused         int64  `json:"refused"`
		Chunks          int64  `json:"chunks"`
		StoredChunks    int64  `json:"stored_chunks"`
		RepeatedChunks  int64  `json:"repeated_chunks"`
		RefusedChunks   int64  `json:"refused_chunks"`
		RefusedMessages int64  `json:"refused_messages"`
		Bytes           int64  `json:"bytes"`
		Connections     int64  `json:"connections"`
		Cut             int64  `json:"cut,omitempty"`
		Unparsed        int64  `json:"unparsed,omitempty"`
		Rings           int64  `json:"rings,omitempty"`
		Spills          int64  `json:"spills,omitempty"`
		Lost            int64  `json:"lost,omitempty"`
	}
	outputAccount struct {
		Name          string           `json:"name"`
		URL           string           `json:"url"`
		Removed       bool             `json:"removed,omitempty"`
		Outside       int64            `json:"outside,omitempty"`
		Found         int64            `json:"found"`
		Out           int64            `json:"out"`
		Filtered      int64            `json:"filtered,omitempty"`
		Dropped       map[string]int64 `json:"dropped,omitempty"`
		DeadLettered  int64            `json:"dead_lettered"`
		Diverted      int64            `json:"diverted,omitempty"`
		Restamped     int64            `json:"restamped,omitempty"`
		MaybeTwice    int64            `json:"maybe_twice,omitempty"`
		Behind        int64            `json:"behind"`
		BehindBytes   int64            `json:"behind_bytes"`
		BehindSeconds float64          `json:"behind_seconds"`
		Bytes         int64            `json:"bytes"`
		Broken        int64            `json:"broken"`
		Retries       int64            `json:"retries,omitempty"`
		Throttled     int64            `json:"throttled,omitempty"`
		BreakerOpen   bool             `json:"breaker_open,omitempty"`
		Failure       *failureAccount  `json:"failure,omitempty"`
	}
	failureAccount struct {
		Since time.Time `json:"since"`
		Tries int       `json:"tries"`
		Pause float64   `json:"next_try_seconds"`
		Error string    `json:"error"`
	}
	journalAccount struct {
		Used        int64           `json:"used"`
		Limit       int64           `json:"limit"`
		Files       int64           `json:"files"`
		Damaged     uint64          `json:"damaged"`
		Syncs       uint64          `json:"syncs"`
		SyncSeconds float64         `json:"sync_seconds"`
		Failure     *failureAccount `json:"failure,omitempty"`
	}
	messageAccount struct {
		Time  time.Time `json:"time"`
		Level string    `json:"level"`
		Code  string    `json:"code,omitempty"`
		Text  string    `json:"text"`
		About string    `json:"about,omitempty"`
		Error string    `json:"error,omitempty"`
		Attrs string    `json:"attrs,omitempty"`
		Times int64     `json:"times"`
	}
	lettersAccount struct {
		Letters int64 `json:"letters"`
		Events  int64 `json:"events"`
		Dropped int64 `json:"dropped"`
	}
	repeatsAccount struct {
		Chunks     int     `json:"chunks"`
		MaxChunks  int     `json:"max_chunks"`
		Bytes      int64   `json:"bytes"`
		AgeSeconds float64 `json:"age_seconds"`
	}
	account struct {
		Inputs     []inputAccount   `json:"inputs"`
		Outputs    []outputAccount  `json:"outputs"`
		PeerErrors map[string]int64 `json:"peer_errors,omitempty"`
		Counting   bool             `json:"counting"`
		Journal    journalAccount   `json:"journal"`
		Letters    lettersAccount   `json:"letters"`
		Repeats    repeatsAccount   `json:"repeats"`
		Memory     int64            `json:"memory"`
		Goroutines int              `json:"goroutines"`
	}
)

// messagesOf are those of a collector, for /status: the log has had them.
func messagesOf(s *collector.Stats, show func(string) string) []messageAccount {
	list := make([]messageAccount, len(s.Messages))
	for i := range s.Messages {
		x := &s.Messages[i]
		list[i] = messageAccount{
			x.Time.UTC(), x.Level.String(), x.Code, show(x.Text), show(x.About),
			lines.Shortened(show(x.Error), maxMessageText), lines.Shortened(show(x.Attrs), maxMessageText), x.Times,
		}
	}
	return list
}

// maxMessageText is how many bytes /status has of an error, and of all other attributes.
const maxMessageText = 1 << 10

func accountOfFailure(f *collector.Failure, show func(string) string) *failureAccount {
	if f == nil {
		return nil
	}
	return &failureAccount{f.Since.UTC(), f.Tries, f.Pause.Seconds(), show(f.Err.Error())}
}

// accountOf is the account of a collector. show makes of a text what of it may be shown.
func accountOf(s *collector.Stats, show func(string) string) *account {
	inputs := make([]inputAccount, len(s.Inputs))
	for i := range s.Inputs {
		n := &s.Inputs[i]
		inputs[i] = inputAccount{
			Name: show(n.Name), URL: show(n.URL), Removed: n.Removed, In: n.In, Stored: n.Stored, Repeated: n.Repeated,
			Skipped: n.Skipped, Invalid: n.Invalid, Oversize: n.Oversize, Refused: n.Refused,
			Chunks: n.Chunks, StoredChunks: n.StoredChunks, RepeatedChunks: n.RepeatedChunks,
			RefusedChunks:   n.RefusedChunks,
			RefusedMessages: n.RefusedMessages, Bytes: n.Bytes, Connections: n.Connections, Cut: n.Cut,
			Unparsed: n.Unparsed,
			Rings:    n.Rings, Spills: n.Spills, Lost: n.Lost,
		}
	}
	outputs := make([]outputAccount, len(s.Outputs))
	for i := range s.Outputs {
		o := &s.Outputs[i]
		outputs[i] = outputAccount{
			Name: show(o.Name), URL: show(o.URL), Removed: o.Removed, Outside: o.Outside, Found: o.Found, Out: o.Out,
			Filtered: o.Filtered, Dropped: o.Dropped, DeadLettered: o.DeadLettered, Diverted: o.Diverted,
			Restamped: o.Restamped, MaybeTwice: o.MaybeTwice,
			Behind: o.Behind, BehindBytes: o.BehindBytes,
			BehindSeconds: o.BehindFor.Seconds(), Bytes: o.Bytes, Broken: o.Broken, Retries: o.Retries,
			Throttled: o.Throttled, BreakerOpen: o.BreakerOpen, Failure: accountOfFailure(o.Failure, show),
		}
	}
	var peerErrors map[string]int64
	for _, kind := range forward.PeerErrorKinds() {
		if n := s.Server.PeerErrors[kind]; n > 0 {
			if peerErrors == nil {
				peerErrors = map[string]int64{}
			}
			peerErrors[string(codes.Peer(kind))] = int64(n)
		}
	}
	return &account{
		Inputs: inputs, Outputs: outputs, PeerErrors: peerErrors, Counting: s.Counting,
		Journal: journalAccount{
			s.Journal.Used, s.Journal.MaxBytes, s.Journal.Bytes, s.Journal.Damaged,
			s.Journal.Syncs, s.Journal.SyncTime.Seconds(), accountOfFailure(s.Failure, show),
		},
		Letters: lettersAccount{s.Letters.Letters, s.Letters.Events, s.Letters.Dropped},
		Repeats: repeatsAccount{s.Repeats.Chunks, s.Repeats.MaxChunks, s.Repeats.Bytes, s.Repeats.Age.Seconds()},
		Memory:  s.Server.Memory, Goroutines: runtime.NumGoroutine(),
	}
}

// logAccount writes the account as one line of JSON.
func logAccount(w io.Writer, s *collector.Stats, show func(string) string) {
	a := accountOf(s, show)
	codes.Account.Info(slog.New(slog.NewJSONHandler(w, nil)), "account",
		"inputs", a.Inputs, "outputs", a.Outputs, "peer_errors", a.PeerErrors, "counting", a.Counting,
		"journal", a.Journal,
		"letters", a.Letters, "repeats", a.Repeats,
		"memory", a.Memory, "goroutines", a.Goroutines)
}

// printAccount writes the account as tables, for people.
func printAccount(w io.Writer, s *collector.Stats, at time.Time) error {
	var text bytes.Buffer
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	const columns = 10
	row := func(cells ...any) {
		for i := range columns { // all of them, or the columns of the rows around would not stand below each other
			if i < len(cells) {
				if n, ok := cells[i].(int64); ok {
					cells[i] = humanize.Comma(n)
				}
				fmt.Fprint(t, cells[i])
			}
			fmt.Fprint(t, "\t")
		}
		fmt.Fprintln(t)
	}
	counts := func(name string, n *collector.Counts, more ...any) {
		row(append([]any{name, n.In, n.Stored, n.Repeated, n.Skipped, n.Invalid, n.Oversize, n.Refused}, more...)...)
		row("  in chunks", n.Chunks, n.StoredChunks, n.RepeatedChunks, "", "", "", n.RefusedChunks)
		if n.RefusedMessages > 0 {
			row("  in messages", "", "", "", "", "", "", n.RefusedMessages)
		}
	}
	row("INPUT", "IN", "STORED", "REPEATED", "SKIPPED", "INVALID", "OVERSIZE", "REFUSED", "READ", "CONNECTIONS")
	for i := range s.Inputs {
		n := &s.Inputs[i]
		counts(n.Name, &n.Counts, humanize.IBytes(uint64(n.Bytes)), n.Connections)
	}
	if len(s.Inputs) > 1 {
		counts("all inputs", &s.Counts)
	}
	fmt.Fprintln(t)
	row("OUTPUT", "FOUND", "OUT", "FILTERED", "DROPPED", "DEAD LETTERS", "BEHIND", "BEHIND FOR", "WRITTEN")
	for i := range s.Outputs {
		o := &s.Outputs[i]
		row(o.Name, o.Found, o.Out, o.Filtered, o.Lost(), o.DeadLettered, o.Behind, o.BehindFor.Round(time.Second),
			humanize.IBytes(uint64(o.Bytes)))
		if o.Outside > 0 {
			row(fmt.Sprintf("  was not there for %s events", humanize.Comma(o.Outside)))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, wrong := range (&status{now: *s, at: at}).wrong() {
		fmt.Fprintln(&text, "\nwrong:", wrong)
	}
	fmt.Fprintf(&text, "\njournal: %s used of %s; %d places cannot be read\n",
		humanize.IBytes(uint64(s.Journal.Used)), humanize.IBytes(uint64(s.Journal.MaxBytes)), s.Journal.Damaged)
	if s.Counting {
		fmt.Fprintln(&text, "what it held at the start is still being counted: FOUND and BEHIND are too small")
	}
	fmt.Fprintf(&text, "repeats: the last %s chunks are recognised, %v back\n", humanize.Comma(int64(s.Repeats.Chunks)),
		s.Repeats.Age.Round(time.Second))
	if l := &s.Letters; l.Letters > 0 || l.Dropped > 0 {
		fmt.Fprintf(&text, "dead letters: %s with %s events are there; %s events were dropped since the start\n",
			humanize.Comma(l.Letters), humanize.Comma(l.Events), humanize.Comma(l.Dropped))
	}
	_, err := w.Write(trailing.ReplaceAll(text.Bytes(), nil))
	return err
}

var trailing = regexp.MustCompile(`(?m) +$`)
