// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/journal"
)

// onConn is a ctx with which a server calls for what came on a connection.
func onConn(ctx context.Context, conn uint64) context.Context {
	return forward.WithSender(ctx, &forward.Sender{Conn: conn})
}

// TestSameChunkOnManyConnections: a chunk that comes a second time while the first is still being
// stored waits for that, and each chunk is stored once.
func TestSameChunkOnManyConnections(t *testing.T) {
	r := run(t, &Config{Dir: t.TempDir(), Outputs: Ends("discard:")})
	const chunks, senders = 50, 8
	var same []*forward.Chunk
	for i := range chunks {
		same = append(same, numbered("t", i, 1))
	}
	var all sync.WaitGroup
	for range senders {
		c := r.client(t)
		all.Go(func() { send(t, c, same...) })
	}
	all.Wait()
	s := r.Stats()
	if s.StoredChunks != chunks || s.RepeatedChunks != chunks*(senders-1) {
		t.Errorf("stored %d, repeated %d; want %d and %d", s.StoredChunks, s.RepeatedChunks, chunks, chunks*(senders-1))
	}
}

// exchange sends bytes on a connection of its own and expects an answer.
func exchange(t *testing.T, r *running, send, want string) {
	t.Helper()
	c, err := net.Dial("tcp", r.Addrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, send); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if err := c.SetReadDeadline(time.Now().Add(4 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("got %q, %v, want %q", got, err, want)
	}
}

// TestTimeZeroIsRepeated: what comes again has another time of arrival, and
// invalid entries that were left out.
func TestTimeZeroIsRepeated(t *testing.T) {
	r := run(t, &Config{Dir: t.TempDir(), Outputs: Ends("discard:")})
	forwardMode := "\x93\xa1t\x93\x92\x00\x81\xa1m\x01\x92\xa1x\x80\x92\x00\x81\xa1m\x02\x81\xa5chunk\xa1a"
	messageMode := "\x94\xa1t\x00\x81\xa1m\x03\x81\xa5chunk\xa1b"
	for range 3 {
		exchange(t, r, forwardMode, "\x81\xa3ack\xa1a")
		exchange(t, r, messageMode, "\x81\xa3ack\xa1b")
	}
	if s := r.Stats(); s.Stored != 3 || s.Repeated != 6 {
		t.Errorf("stored %d, repeated %d, want 3 and 6", s.Stored, s.Repeated)
	}
}

// TestTooLargeForTheJournal: the chunk is refused, what came with it is not.
func TestTooLargeForTheJournal(t *testing.T) {
	j, err := journal.Open(t.TempDir(), &journal.Options{MaxBytes: 2 << 20, SegmentBytes: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	window := testRepeats(t)
	s := &store{
		recent: newRecent(recentOptions{}), journal: j, repeats: window, ack: AckSynced,
		reporter: newReporter(logTo(testWriter{t})),
	}
	s.books.Store(&books{accounts: []*account{{}}})
	large := numbered("t", 1, 1)
	large.Entries = []byte(strings.Repeat("x", 4<<20))
	chunks := []*forward.Chunk{numbered("t", 0, 1), large, numbered("t", 2, 1)}
	if _, err := s.ServeGroup(onConn(t.Context(), 1), chunks); !errors.Is(err, journal.ErrTooLarge) {
		t.Fatalf("got %v", err)
	}
	if len(window.inFlight) != 0 {
		t.Error("the group is still in flight")
	}
	// All of them come again, as they do when no ack came.
	wait, err := s.ServeGroup(onConn(t.Context(), 2), []*forward.Chunk{chunks[0], chunks[2]})
	if err != nil {
		t.Fatal(err)
	}
	if err := wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := s.books.Load().accounts[0].counts(); n.StoredChunks != 2 || n.RepeatedChunks != 1 || n.RefusedChunks != 2 {
		t.Errorf("%d chunks stored, %d repeated, %d refused; want 2, 1, and 2: the one that is too large and the one behind it", n.StoredChunks, n.RepeatedChunks, n.RefusedChunks)
	}
}

// TestServeGroupGivesUpWithItsContext: a collector that is told to stop does
// not wait for room for ever.
func TestServeGroupGivesUpWithItsContext(t *testing.T) {
	j, err := journal.Open(t.TempDir(), &journal.Options{MaxBytes: 1 << 20, SegmentBytes: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if _, err := j.Reader("nobody reads"); err != nil {
		t.Fatal(err)
	}
	var log syncBuffer
	s := &store{
		recent: newRecent(recentOptions{}), journal: j, repeats: testRepeats(t), ack: AckSynced,
		reporter: newReporter(logTo(&log)), holder: func() []any { return []any{"held_by", "file:x"} },
	}
	s.books.Store(&books{accounts: []*account{{}}})
	ctx, cancel := context.WithCancel(t.Context())
	full := make(chan error)
	go func() {
		for {
			c := numbered("t", 0, 1)
			c.Entries = []byte(strings.Repeat("x", 100<<10))
			if _, err := s.ServeGroup(ctx, []*forward.Chunk{c}); err != nil {
				full <- err
				return
			}
		}
	}()
	for !strings.Contains(log.String(), "journal full") {
		select {
		case err := <-full:
			t.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if err := <-full; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestNothingOvertakesABusyChunk: what stands behind a chunk that another
// connection is storing just then waits with it, or it would be stored first
// when that one fails, or is slow.
func TestNothingOvertakesABusyChunk(t *testing.T) {
	j, err := journal.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	window := testRepeats(t)
	s := &store{
		recent: newRecent(recentOptions{}), journal: j, repeats: window, ack: AckSynced,
		reporter: newReporter(logTo(testWriter{t})),
	}
	s.books.Store(&books{accounts: []*account{{}}})
	chunks := []*forward.Chunk{
		numbered("zero", 0, 1), numbered("one", 1, 1), numbered("two", 2, 1),
		numbered("three", 3, 1),
	}
	chunks[3].ID = nil
	other := &inFlightGroup{candidates: []candidate{{fingerprint: window.fingerprint(chunks[1], ""), conn: 1}}}
	window.begin(other, 0)

	done := make(chan error)
	go func() {
		wait, err := s.ServeGroup(onConn(t.Context(), 2), chunks)
		if err == nil {
			err = wait(t.Context())
		}
		done <- err
	}()
	for waiting := false; !waiting; runtime.Gosched() {
		window.mu.Lock()
		waiting = len(window.waiters) > 0
		window.mu.Unlock()
	}
	window.finish(other) // without a position: it was not stored
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	r, err := j.Reader("test")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, want := range chunks {
		rec, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if c, err := forward.ParseChunk(rec.Data); err != nil || c.Tag != want.Tag {
			t.Fatalf("got %q, %v, want %q", c.Tag, err, want.Tag)
		}
	}
}

// TestRefusedIsAccounted: with RefuseInvalid every entry of a refused chunk is
// refused; of a message that is damaged nobody knows how many there were.
func TestRefusedIsAccounted(t *testing.T) {
	r := run(t, &Config{Dir: t.TempDir(), Outputs: Ends("discard:"), RefuseInvalid: true})
	forwardMode := "\x93\xa1t\x93\x92\x01\x81\xa1m\x01\x92\xa1x\x80\x92\x01\xc0\x81\xa5chunk\xa1a"
	messageMode := "\x94\xa1t\x01\xa1x\x81\xa5chunk\xa1b"
	damaged := "\x93\xa1t\xc4\x03abc\x82\xa5chunk\xa1c\xaacompressed\xa4gzip"
	good := "\x94\xa1t\x01\x81\xa1m\x03\x81\xa5chunk\xa1d"
	exchange(t, r, forwardMode+messageMode+damaged+good, "\x81\xa3ack\xa1d")
	s := r.Stats()
	if s.In != 5 || s.Stored != 1 || s.Refused != 4 || s.RefusedMessages != 3 {
		t.Errorf("in %d, stored %d, refused %d and %d messages; want 5, 1, 4 and 3", s.In, s.Stored, s.Refused,
			s.RefusedMessages)
	}
	wantLaws(t, s)
}

// TestFoundIsWhatWasBehind: what one run leaves in the journal the next one
// finds there.
func TestFoundIsWhatWasBehind(t *testing.T) {
	dir := t.TempDir()
	o := &Config{Dir: dir, Outputs: Ends("stdout:", "discard:"), Stdout: brokenWriter{}, Drain: 50 * time.Millisecond}
	r := run(t, o)
	send(t, r.client(t), numbered("t", 0, 70), numbered("t", 70, 30))
	if err := r.stop(); err != nil && !errors.Is(err, errBrokenWriter) {
		t.Error(err)
	}
	before := r.Stats()
	wantLaws(t, before)
	if n := before.Outputs[0].Behind; n != 100 {
		t.Errorf("%d events are behind, want 100", n)
	}

	o.Stdout, o.Drain = new(syncBuffer), 0
	r = run(t, o)
	send(t, r.client(t), numbered("t", 100, 5))
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	after := r.Stats()
	wantLaws(t, after)
	for i, found := range []int64{100, 0} {
		if out := after.Outputs[i]; out.Found != found || out.Out != found+5 || out.Behind != 0 {
			t.Errorf("output %d: found %d, out %d, behind %d; want %d, %d and none", i, out.Found, out.Out, out.Behind,
				found, found+5)
		}
	}
}

var errBrokenWriter = errors.New("broken writer")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBrokenWriter }

// holding30 is the configuration of a collector whose journal holds 30 events for a broken output.
func holding30(t *testing.T) *Config {
	t.Helper()
	o := &Config{
		Dir: t.TempDir(), Outputs: Ends("stdout:"), Stdout: brokenWriter{}, Drain: 50 * time.Millisecond,
		Inputs: Ends("forward://127.0.0.1:0"), Log: logTo(testWriter{t}),
	}
	r := run(t, o)
	for i := range 3 {
		send(t, r.client(t), numbered("t", i*10, 10))
	}
	if err := r.stop(); err != nil && !errors.Is(err, errBrokenWriter) {
		t.Error(err)
	}
	return o
}

// TestFoundAfterError: a journal that cannot be read for a moment is counted to
// its end.
func TestFoundAfterError(t *testing.T) {
	o := holding30(t)
	c, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	next, calls := c.startBacklog.next, 0
	c.startBacklog.next = func() (journal.Record, bool, error) {
		if calls++; calls == 2 {
			return journal.Record{}, false, errBrokenWriter
		}
		return next()
	}
	c.startBacklog.run(t.Context(), c.journal, func(error) {})
	if s := c.Stats(); s.Counting || s.Outputs[0].Found != 30 || calls < 4 {
		t.Errorf("found %d in %d calls, still counting: %t", s.Outputs[0].Found, calls, s.Counting)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestRunShorterThanTheCount: a collector that is told to end while it counts what its journal held
// ends with the whole count.
func TestRunShorterThanTheCount(t *testing.T) {
	o := holding30(t)
	o.Stdout, o.Drain = new(syncBuffer), 0
	c, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	next := c.startBacklog.next
	c.startBacklog.next = func() (journal.Record, bool, error) {
		for c.pumps[0].hangs.Load() || c.Stats().Outputs[0].Out < 30 {
			<-time.After(time.Millisecond)
		}
		<-time.After(10 * time.Millisecond) // Run has seen that the output has ended
		return next()
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	if err := c.Run(ctx); err != nil {
		t.Error(err)
	}
	s := c.Stats()
	wantLaws(t, s)
	if s.Counting || s.Outputs[0].Found != 30 || s.Outputs[0].Out != 30 {
		t.Errorf("found %d, out %d, still counting: %t", s.Outputs[0].Found, s.Outputs[0].Out, s.Counting)
	}
}

// TestCopiesUnderTwoTags: a sender that sends the same chunks to two inputs, which
// put them under different tags, has them under both.
func TestCopiesUnderTwoTags(t *testing.T) {
	for _, how := range []string{"tag_prefix", "tag"} {
		dir := t.TempDir()
		r := run(t, &Config{
			Dir: filepath.Join(dir, "data"), Outputs: Ends(fileURL(filepath.Join(dir, "{tag}"))),
			Inputs: Ends("forward://127.0.0.1:0?"+how+"=a", "forward://127.0.0.1:0?"+how+"=b"),
		})
		for range 2 { // the second time they are repeats
			for _, addr := range r.Addrs() {
				c := r.client(t)
				c.Address = addr.String()
				chunk := numbered("t", 0, 10)
				chunk.ID = []byte("an id")
				send(t, c, chunk)
			}
		}
		s := r.Stats()
		if s.Inputs[0].Stored != 10 || s.Inputs[1].Stored != 10 || s.Repeated != 20 {
			t.Errorf("%s: stored %d and %d, repeated %d", how, s.Inputs[0].Stored, s.Inputs[1].Stored, s.Repeated)
		}
	}
}

// TestNearlyAsLargeAsTheJournal: a chunk that needs the room of all that came before it gets it,
// also of what came with it.
func TestNearlyAsLargeAsTheJournal(t *testing.T) {
	c, err := Open(&Config{
		Dir: t.TempDir(), Inputs: Ends("forward://127.0.0.1:0"), Outputs: Ends("discard:"), JournalBytes: 4 << 20,
		Log: logTo(testWriter{t}),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	done := make(chan error)
	running, stop := context.WithCancel(t.Context())
	go func() { done <- c.Run(running) }()
	large := numbered("t", 1, 1)
	large.Events = 7 << 19 / len(large.Entries)
	large.Entries = bytes.Repeat(large.Entries, large.Events)
	chunks := []*forward.Chunk{numbered("t", 0, 1), large, numbered("t", 2, 1)}
	for conn := range uint64(2) {
		wait, err := c.store.ServeGroup(onConn(ctx, conn+1), chunks)
		if err != nil {
			t.Fatal(err)
		}
		if err := wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.Stats(); n.StoredChunks != 3 || n.RepeatedChunks != 3 || len(c.store.repeats.inFlight) != 0 {
		t.Errorf("%d chunks stored, %d repeated; want 3 and 3", n.StoredChunks, n.RepeatedChunks)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestOwnIDOnOneConnection: what has an id of Spillway's own is the same chunk, in one read, on one
// connection and on another.
func TestOwnIDOnOneConnection(t *testing.T) {
	r := run(t, &Config{Dir: t.TempDir(), Outputs: Ends("discard:")})
	c := numbered("t", 0, 3)
	message := string(c.AppendTail(append(c.AppendHead(nil), c.Entries...)))
	ack := "\x81\xa3ack\xb8" + string(c.ID)
	for range 2 {
		exchange(t, r, strings.Repeat(message, 3), strings.Repeat(ack, 3))
	}
	if s := r.Stats(); s.Stored != 3 || s.Repeated != 15 {
		t.Errorf("stored %d, repeated %d; want 3 and 15", s.Stored, s.Repeated)
	}
}
