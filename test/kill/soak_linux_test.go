// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluent/fluent-logger-golang/fluent"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/internal/testcert"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// How this file is organised. TestSoak runs senders of five kinds against one collector, most of
// them through a flaky network (flaky_network_test.go), and ends the collector again and again.
// Each sender has streams: names with a number that counts from 0, under one tag. At the end the
// network is undisturbed, all senders wait for what they miss, and
//   - each event that was acked is in the files exactly once, each stream in its order, and nothing
//     else is there,
//   - the collector's account (Stats) is exact, at each polite end and over each restart,
//   - its memory, open files and goroutines are where they were before the first connection.
//
// What the proxy leaves of the claims: all senders seem to come from 127.0.0.1, so foreign ids are
// recognised on every connection, which holds for real senders only as long as they keep their
// address. A connection that the proxy cut may deliver after its successor, so order and repeats
// are tested across two connections of one sender that are served at the same time.

// soakTime is how long the soak runs: 8 s, 20 in the long version, or what SPILLWAY_SOAK says.
func soakTime(t testing.TB) time.Duration {
	text := os.Getenv("SPILLWAY_SOAK")
	switch {
	case text == "" && needs.Long():
		return 20 * time.Second
	case text == "":
		return 8 * time.Second
	}
	d, err := time.ParseDuration(text)
	rig.Must(t, err)
	return d
}

func TestSoak(t *testing.T) {
	t.Parallel()
	d, r := soakTime(t), rig.Random(t)
	s, out := rig.NewSetup(t)
	addr, closed := needs.Address(), needs.Address()
	socket := rig.SocketPath(t)
	ca := testcert.New(t)
	key := filepath.Join(t.TempDir(), "key")
	rig.Must(t, os.WriteFile(key, []byte("secret\n"), 0o600))
	s.Listen = []string{
		"forward://" + addr, "forward+unix://" + socket,
		"forward+tls://" + closed + "?shared_key_file=" + key + "&cert=" + ca.Server.Cert + "&key=" + ca.Server.Key,
	}
	seeds := func() *rand.Rand { return rand.New(rand.NewPCG(r.Uint64(), r.Uint64())) }

	c := rig.StartCollector(t, s)
	warm := c.Lane()
	id := rig.NewID()
	warm.Send(rig.Packed("soak.warm", id, rig.Named("warm-0").Append(nil)), id)
	warm.Conn.Close()
	rig.WaitLines(t, out, 1)
	idle := atRest(t, c)

	ctx, cancel := context.WithTimeout(t.Context(), d+10*time.Minute)
	defer cancel()
	disturbed, calm := context.WithCancel(ctx)
	defer calm()
	l := &load{t: t, stop: make(chan struct{}), streams: map[string]*soakStream{}}
	l.add("warm", 1, nil)
	networks := make([]*flakyNetwork, 5)
	var disturbing sync.WaitGroup
	ends := make([]func(), len(networks))
	for i := range networks {
		upstream := addr
		if i >= 3 {
			upstream = closed
		}
		w, wr := newFlakyNetwork(t, upstream), seeds()
		networks[i] = w
		disturbing.Go(func() { ends[i] = w.disturb(disturbed, t, wr) })
	}
	for i, w := range networks[:3] {
		l.misbehaving(ctx, fmt.Sprint("misbehaving", i), w.addr, seeds())
		l.client(ctx, fmt.Sprint("client", i),
			&forward.Client{Address: w.addr, Compress: []string{"", "gzip", "zstd"}[i]})
		l.official(fmt.Sprint("official", i), w, seeds())
	}
	config := &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"}
	login := &forward.Login{SharedKey: "secret"}
	l.client(ctx, "client3", &forward.Client{Address: networks[3].addr, TLS: config, Login: login})
	l.client(ctx, "client4", &forward.Client{Address: networks[4].addr, TLS: config, Login: login, NoKeepalive: true})
	l.misbehaving(ctx, "direct0", addr, seeds())
	l.misbehaving(ctx, "direct1", socket, seeds())
	l.loiter(ctx, "tcp", addr)
	l.loiter(ctx, "tcp", closed)
	l.loiter(ctx, "unix", socket)
	l.logger(ctx, "logger0", "forward://"+networks[0].addr, &spillway.Options{}, seeds())
	l.logger(ctx, "logger1", "forward+tls://"+networks[3].addr,
		&spillway.Options{TLS: config, Login: &forward.Login{SharedKey: "secret"}}, seeds())

	// The first two thirds of the time the collector dies now and then; in the last one it lives.
	begin := time.Now()
	longest := min(20*time.Second, d/8)
	kills, polite := 0, 0
	for time.Since(begin) < d*2/3 {
		rig.Pause(c, r, longest)
		if c.Over() {
			t.Fatalf("the collector ended by itself: %v\n%s", c.Err, rig.Tail(c.Log.String(), 4000))
		}
		behind := int64(-1)
		if r.IntN(3) == 0 {
			c.Stop()
			behind = c.LastAccount()["output0.behind"]
			polite++
		} else {
			c.Kill()
			kills++
		}
		c.Forget()
		s.Args = []string{"--ack", [...]string{"synced", "journaled", "delivered"}[r.IntN(3)]}
		c = rig.StartCollector(t, s)
		if behind >= 0 {
			l.wantFound(c, behind)
		}
	}
	most := int64(0)
	for time.Since(begin) < d {
		rig.Pause(c, r, time.Second)
		most = max(most, rig.Resident(t, c))
	}

	calm()
	disturbing.Wait()
	close(l.stop)
	done := make(chan struct{})
	go func() {
		l.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(3 * time.Minute):
		t.Fatalf("senders still wait for acks, 3 minutes after the network was undisturbed: %v", l.left())
	}
	for _, end := range ends {
		end()
	}
	last := l.wantRest(c, idle)
	t.Logf("account: %v", last)
	c.Stop()
	if err := c.LastAccount().Check(); err != nil {
		t.Error(err)
	}
	if n := c.LastAccount()["output0.behind"]; n != 0 {
		t.Errorf("%d events are left in the journal", n)
	}
	changes := int64(0)
	for _, w := range networks {
		changes += w.changes.Load()
	}
	events := l.check(out)
	rig.Figure(t, "%v: %d events, %d kills, %d polite ends, %d changes of the network, %d connections broke at our senders; resident %.1f MB at first, at most %.1f MB, %.1f MB at last, %.1f MB of it for repeats; open files %d and %d, goroutines %d and %d",
		time.Since(begin).Round(time.Second), events, kills, polite, changes, l.broken, float64(idle.memory)/1e6,
		float64(most)/1e6, float64(last.memory)/1e6, float64(last.repeats)/1e6, idle.files, last.files, idle.goroutines,
		last.goroutines)
}

// rest is what a collector holds that nobody is connected to.
type rest struct {
	memory     int64
	repeats    int64 // bytes of that
	files      int
	goroutines int64
}

func atRest(t testing.TB, c *rig.Collector) rest {
	t.Helper()
	var a rig.Account
	rig.Eventually(t, "nobody is connected", func() bool {
		a = c.Account()
		return a["connections"] == 0
	})
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", c.Cmd.Process.Pid))
	rig.Must(t, err)
	return rest{memory: rig.Resident(t, c), repeats: a["repeats.bytes"], files: len(files), goroutines: a["goroutines"]}
}

// load is all senders, and what they sent.
type load struct {
	t       testing.TB
	stop    chan struct{}
	running sync.WaitGroup

	mu      sync.Mutex
	streams map[string]*soakStream
	waiting map[string]bool
	broken  int
}

// soakStream is the events of one name.
type soakStream struct {
	sent  int
	maybe map[int]bool // those of which the sender does not know whether they arrived
}

func (l *load) add(name string, sent int, maybe map[int]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.streams[name] = &soakStream{sent: sent, maybe: maybe}
}

func (l *load) stopped() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// start runs one sender.
func (l *load) start(name string, run func()) {
	l.mu.Lock()
	if l.waiting == nil {
		l.waiting = map[string]bool{}
	}
	l.waiting[name] = true
	l.mu.Unlock()
	l.running.Go(func() {
		run()
		l.mu.Lock()
		delete(l.waiting, name)
		l.mu.Unlock()
	})
}

// left names the senders that still run.
func (l *load) left() (names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name := range l.waiting {
		names = append(names, name)
	}
	return names
}

// misbehaving is a sender of ids that are not Spillway's.
func (l *load) misbehaving(ctx context.Context, name, addr string, r *rand.Rand) {
	s := &rig.Sender{
		Name: name, Addr: addr, Tag: "soak.misbehaving", Misbehaves: true, Pace: 40 * time.Millisecond, Rand: r,
	}
	l.start(name, func() {
		if err := s.Run(ctx, l.stop); err != nil {
			l.t.Error(err)
		}
		l.add(name, len(s.Sent), nil)
		l.mu.Lock()
		l.broken += s.Broken
		l.mu.Unlock()
	})
}

// client is this project's own client, several goroutines on one connection.
func (l *load) client(ctx context.Context, name string, c *forward.Client) {
	const together = 3
	c.AckTimeout, c.DialTimeout, c.MaxBackoff = rig.AckPatience, rig.AckPatience, 500*time.Millisecond
	var users sync.WaitGroup
	users.Add(together)
	l.start(name, func() {
		users.Wait()
		if err := c.Close(); err != nil {
			l.t.Errorf("%s: %v", name, err)
		}
	})
	for i := range together {
		stream := fmt.Sprintf("%s.%d", name, i)
		l.start(stream, func() {
			defer users.Done()
			n := 0
			for !l.stopped() {
				var entries []byte
				for range 20 {
					e := rig.Named(fmt.Sprintf("%s-%d", stream, n))
					e.Pad = strings.Repeat("p", n%300)
					entries = e.Append(entries)
					n++
				}
				if err := c.Send(ctx, &forward.Chunk{
					Tag: "soak.client", ID: forward.NewID(), UniqueID: true,
					Entries: entries, Events: 20,
				}); err != nil {
					l.t.Errorf("%s: %v", stream, err)
					return
				}
				l.rest(30 * time.Millisecond)
			}
			l.add(stream, n, nil)
		})
	}
}

// loiter is somebody who connects, sends half a message and stays, time and again.
func (l *load) loiter(ctx context.Context, network, addr string) {
	half := rig.Packed("soak.loiter", rig.NewID(), rig.Named("half").Append(nil))
	half = half[:len(half)/2]
	l.start("loiter "+addr, func() {
		for !l.stopped() {
			d := net.Dialer{Timeout: rig.AckPatience}
			conn, err := d.DialContext(ctx, network, addr)
			if err != nil {
				l.rest(50 * time.Millisecond)
				continue
			}
			ended := make(chan struct{})
			go func() { // the collector may close it: it was killed, or waits for a handshake no longer
				defer close(ended)
				if _, err := conn.Write(half); err == nil {
					_, _ = io.Copy(io.Discard, conn) // no byte is expected, and the error is the end
				}
			}()
			select {
			case <-ended:
			case <-l.stop:
			}
			conn.Close()
			<-ended
			l.rest(50 * time.Millisecond)
		}
	})
}

// rest waits for d, or until the senders are to stop.
func (l *load) rest(d time.Duration) {
	select {
	case <-l.stop:
	case <-time.After(d):
	}
}

// official is the official Go client: one event, one ack. It gives up after some tries; then nobody
// knows of that event.
func (l *load) official(name string, w *flakyNetwork, r *rand.Rand) {
	host, port := w.host()
	l.start(name, func() {
		var c *fluent.Fluent
		for c == nil { // it connects at once, or gives up
			var err error
			if c, err = fluent.New(fluent.Config{
				FluentHost: host, FluentPort: port, RequestAck: true, SubSecondPrecision: true, MaxRetry: 5,
				RetryWait: 10, MaxRetryWait: 200,
				Timeout: rig.AckPatience, WriteTimeout: rig.AckPatience, ReadTimeout: rig.AckPatience, Async: false,
			}); err != nil {
				c = nil
				l.rest(10 * time.Millisecond)
			}
		}
		maybe := map[int]bool{}
		n := 0
		for ; !l.stopped(); n++ {
			if err := c.Post("soak.official", map[string]string{"name": fmt.Sprintf("%s-%d", name, n)}); err != nil {
				maybe[n] = true
			}
			l.rest(time.Duration(r.Int64N(int64(30 * time.Millisecond))))
		}
		if err := c.Close(); err != nil {
			l.t.Logf("%s: %v", name, err) // its connection may be broken by then
		}
		l.add(name, n, maybe)
	})
}

// logger is this project's logger, several goroutines.
func (l *load) logger(ctx context.Context, name, to string, o *spillway.Options, r *rand.Rand) {
	const together = 4
	o.Tag, o.Name, o.Dir, o.Shm, o.Diagnostics = "soak.logger", "soak", filepath.Join(l.t.TempDir(),
		"spill"), l.t.TempDir(), func(error) {}
	log, err := spillway.Open(to+"?ack_timeout=3s", o)
	rig.Must(l.t, err)
	var users sync.WaitGroup
	users.Add(together)
	l.start(name, func() {
		users.Wait()
		if err := log.Flush(ctx); err != nil {
			l.t.Errorf("%s: flush: %v", name, err)
		}
		if err := log.Close(ctx); err != nil {
			l.t.Errorf("%s: close: %v", name, err)
		}
		st := log.Stats()
		if st.Accepted != st.Delivered+st.HandedOver+st.DeadLettered+st.Dropped+st.Lost+st.Held || st.Held > 0 ||
			st.Dropped > 0 || st.Lost > 0 || st.DeadLettered > 0 {
			l.t.Errorf("%s: %+v", name, st)
		}
	})
	for i := range together {
		stream := fmt.Sprintf("%s.%d", name, i)
		seed := r.Uint64()
		l.start(stream, func() {
			defer users.Done()
			r := rand.New(rand.NewPCG(seed, 0))
			n := 0
			for !l.stopped() {
				for range 1 + r.IntN(20) {
					if err := log.Post("soak.logger", struct {
						Name string `json:"name"`
					}{fmt.Sprintf("%s-%d", stream, n)}); err != nil {
						l.t.Errorf("%s: %v", stream, err)
					}
					n++
				}
				l.rest(time.Duration(r.Int64N(int64(30 * time.Millisecond))))
			}
			l.add(stream, n, nil)
		})
	}
}

// wantFound checks that a collector finds what the one before it left.
func (l *load) wantFound(c *rig.Collector, behind int64) {
	l.t.Helper()
	var a rig.Account
	rig.Eventually(l.t, "the journal is counted", func() bool {
		a = c.Account()
		return !a.Has("counting")
	})
	if found := a["output0.found"]; found != behind {
		l.t.Errorf("%d events found in the journal, %d were left", found, behind)
	}
}

// wantRest waits until all is handed on and checks that the collector holds no more than at first.
func (l *load) wantRest(c *rig.Collector, first rest) rest {
	l.t.Helper()
	rig.Eventually(l.t, "all is handed on", func() bool { return c.Account()["output0.behind"] == 0 })
	if err := c.LastAccount().Check(); err != nil {
		l.t.Error(err)
	}
	// What it keeps is the window of repeats, whose memory the garbage collector may let grow
	// twofold, and its pools.
	extra := 2*(c.LastAccount()["repeats.bytes"]-first.repeats) + 48<<20
	if rig.RaceDetector {
		extra *= 5 // its shadow
	}
	var now rest
	rig.Eventually(l.t, "memory, files and goroutines are given back", func() bool {
		now = atRest(l.t, c)
		return now.memory <= first.memory+extra && now.files <= first.files+8 && now.goroutines <= first.goroutines+2
	})
	return now
}

// check reads the files and compares them with what was sent.
func (l *load) check(out string) (events int) {
	l.t.Helper()
	next := map[string]int{}
	wrong := 0
	fail := func(format string, args ...any) {
		if wrong++; wrong <= 20 {
			l.t.Errorf(format, args...)
		}
	}
	for _, path := range rig.LineFiles(l.t, out) {
		f, err := os.Open(path)
		rig.Must(l.t, err)
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var e struct{ Name string }
			if err := json.Unmarshal(bytes.TrimSpace(lines.Bytes()), &e); err != nil {
				fail("%s: %v: %.200s", path, err, lines.Text())
				continue
			}
			name, number, _ := strings.Cut(e.Name, "-")
			n, err := strconv.Atoi(number)
			s := l.streams[name]
			if err != nil || s == nil || n >= s.sent {
				fail("%s: %q was never sent", path, e.Name)
				continue
			}
			for ; next[name] < n; next[name]++ {
				if !s.maybe[next[name]] {
					fail("%s-%d is missing, or after %s", name, next[name], e.Name)
				}
			}
			if n < next[name] {
				fail("%s is there again, or after %s-%d", e.Name, name, next[name]-1)
				continue
			}
			next[name]++
			events++
		}
		rig.Must(l.t, lines.Err())
		rig.Must(l.t, f.Close())
	}
	for name, s := range l.streams {
		for n := next[name]; n < s.sent; n++ {
			if !s.maybe[n] {
				fail("%s-%d is missing", name, n)
			}
		}
	}
	if wrong > 20 {
		l.t.Errorf("%d events are wrong", wrong)
	}
	return events
}
