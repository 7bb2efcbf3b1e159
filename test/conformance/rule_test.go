// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/internal/testcert"
)

// A rule is one of docs/forward.md, and what is tried of it at either end; nil: it asks nothing of
// that end.
type rule struct {
	number int
	words  string
	server func(*trial)
	client func(*trial)
	// held says what of the rule nobody sees from outside, and which test of package forward holds
	// it.
	held []holding
}

type holding struct{ What, Test string }

var rules = []rule{
	{
		1, "any split of the stream", rule01, nil,
		[]holding{{"decoding never starts again, so that the cost stays linear", "TestRule01AnySplit"}},
	},
	{2, "a partial message is discarded", rule02, nil, nil},
	{3, "the second element tells the mode", rule03, rule03client, nil},
	{4, "packed entries as bin and as str", rule04, nil, nil},
	{5, "encodings that are not the shortest", rule05, nil, nil},
	{6, "a value that is no array is ignored", rule06, nil, nil},
	{7, "options", rule07, nil, nil},
	{8, "Message mode", rule08, nil, nil},
	{9, "time as fixext8", rule09, rule09client, nil},
	{10, "time as ext8, bad times, other ext types", rule10, nil, nil},
	{11, "time 0 is now", rule11, nil, nil},
	{12, "nil records", rule12, nil, nil},
	{13, "metadata", rule13, nil, nil},
	{14, "metrics and traces are no logs", rule14, nil, nil},
	{15, "no entries, but an ack", rule15, nil, nil},
	{16, "size is a hint", rule16, nil, nil},
	{17, "compression", rule17, nil, nil},
	{18, "corrupt chunks", rule18, nil, nil},
	{19, "bounded decompression", rule19, nil, nil},
	{20, "claims size no allocation", rule20, nil, []holding{{"memory stays bounded", "TestRule20Claims"}}},
	{21, "keys", rule21, nil, nil},
	{22, "odd values", rule22, nil, nil},
	{23, "invalid entries", rule23, nil, nil},
	{24, "an ack only for an id", rule24, rule24client, nil},
	{25, "the id comes back as it came", rule25, nil, nil},
	{26, "acks in order", rule26, nil, nil},
	{27, "acked means stored", rule27, nil, []holding{{"no ack when the journal refuses", "TestRule27Unstored"}}},
	{
		28, "resending what was not acked", nil, rule28,
		[]holding{{"`send`, which waits a minute for an ack: no ack", "TestRule28Resend"}},
	},
	{
		29, "acks in pieces, together, empty", nil, rule29,
		[]holding{{"`send`, which has one chunk in flight: two acks in one read", "TestRule29Acks"}},
	},
	{30, "chunks that are too large", rule30, nil, nil},
	{31, "HELO", rule31, rule31client, nil},
	{32, "PING", rule32, rule32client, nil},
	{33, "PONG", rule33, rule33client, nil},
	{34, "verifying PONG", nil, rule34, nil},
	{35, "the client's salt", nil, rule35, nil},
	{36, "when PING comes", rule36, nil, nil},
	{
		37, "no JSON with a handshake", rule37, nil,
		[]holding{{"digests are compared in constant time", "TestRule37NoOracle"}},
	},
	{38, "empty keys", rule38, rule38client, nil},
	{
		39, "clients, networks, users", rule39, nil,
		[]holding{{"networks other than the loopback", "TestRule39FirstMatch"}},
	},
	{40, "keepalive", rule40, rule40client, nil},
	{41, "UDP heartbeats", rule41, nil, nil},
	{42, "TLS", rule42, rule42client, nil},
	{43, "JSON", rule43, nil, nil},
	{44, "packed entries travel as bin", nil, rule44, nil},
	{
		45, "ids that name the same entries for ever", nil, rule45,
		[]holding{{"after a crash, and with other batch settings", "TestRule45SameBytesAgain"}},
	},
	{46, "shutdown", rule46, nil, []holding{{"what was asked to hurry ends in time", "TestRule46ShutdownRunsOut"}}},
}

// What became of a case, and of a rule.
const (
	passed     = "pass"
	failed     = "fail"
	unobserved = "not observable"
)

// A finding is what became of a case.
type finding struct {
	Case  string `json:"case"`
	State string `json:"state"`
	Note  string `json:"note,omitempty"`
}

// A result is what became of a rule at one subject.
type result struct {
	Rule     int       `json:"rule"`
	Words    string    `json:"words"`
	Subject  string    `json:"subject"`
	State    string    `json:"state"`
	Note     string    `json:"note,omitempty"`
	Cases    int       `json:"cases"`
	Findings []finding `json:"findings,omitempty"` // those that did not pass
}

// A trial is one rule at one subject.
type trial struct {
	t    *testing.T
	sub  subject
	res  result
	left int // cases left out by -run
}

// A subject is a server or a client under test.
type subject interface{ name() string }

// try runs a rule's cases and returns what became of them; not if it was left out by -run.
func try(t *testing.T, r *rule, sub subject, cases func(*trial)) (res result, ok bool) {
	tr := &trial{sub: sub, res: result{Rule: r.number, Words: r.words, Subject: sub.name(), State: passed}}
	whole := true
	t.Run(fmt.Sprintf("rule %02d %s", r.number, r.words), func(t *testing.T) {
		tr.t = t
		ok = true
		cases(tr)
		bad, unseen := 0, 0
		for _, f := range tr.res.Findings {
			switch f.State {
			case failed:
				bad++
			case unobserved:
				unseen++
			}
		}
		switch n := tr.res.Cases; {
		case n == 0 || tr.left > 0:
			whole = false
		case bad > 0:
			tr.res.State, tr.res.Note = failed, fmt.Sprintf("%d of %d cases fail", bad, n)
		case unseen == n:
			tr.res.State, tr.res.Note = unobserved, tr.res.Findings[0].Note
			needs.Skip(t, "%s", tr.res.Note)
		case unseen > 0:
			tr.res.State, tr.res.Note = unobserved, fmt.Sprintf("%d of %d cases pass; of the others, the first: %s",
				n-unseen, n, tr.res.Findings[0].Note)
			needs.Skip(t, "%s", tr.res.Note)
		}
	})
	return tr.res, ok && whole
}

// run runs one case.
func (tr *trial) run(name string, f func(p *probe)) {
	tr.res.Cases++
	p := &probe{}
	tr.t.Run(name, func(t *testing.T) {
		p.T = t
		f(p)
	})
	state := passed
	switch {
	case p.T == nil: // left out by -run
		tr.left++
		return
	case p.Failed():
		state = failed
	case p.Skipped():
		state = unobserved
	}
	if state != passed {
		tr.res.Findings = append(tr.res.Findings, finding{name, state, p.note})
	}
}

// A probe is the test of one case. It keeps the first thing that was said of it.
type probe struct {
	*testing.T
	note      string
	pipelines bool         // the client has several messages in flight
	ca        *testcert.CA // of the suite's own server
}

func (p *probe) say(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	if p.note == "" {
		p.note = strings.ToValidUTF8(firstLine(text), "\ufffd")
	}
	return text
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	if len(line) > 300 {
		line = line[:300] + "…"
	}
	return line
}

// Errorf says what is wrong.
func (p *probe) Errorf(format string, args ...any) {
	p.Helper()
	p.Error(p.say(format, args...))
}

// Fatalf says what is wrong, and ends the case.
func (p *probe) Fatalf(format string, args ...any) {
	p.Helper()
	p.Fatal(p.say(format, args...))
}

// must ends the case on an error.
func (p *probe) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatalf("%v", err)
	}
}

// unseen ends a case that cannot be observed. For what is this repository's own that is a failure.
func (p *probe) unseen(format string, args ...any) {
	p.Helper()
	if !foreign() {
		p.Fatalf("not observable: "+format, args...)
	}
	p.Skip(p.say(format, args...))
}
