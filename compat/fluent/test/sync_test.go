// SPDX-License-Identifier: Apache-2.0

package test_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/compat/fluent/fluent"
	"github.com/spillwaylog/spillway/internal/needs"
)

// TestSync posts each way over each network.
func TestSync(t *testing.T) {
	for name, base := range modes {
		t.Run(name, func(t *testing.T) {
			for _, network := range []string{"tcp", "unix", "tls"} {
				t.Run(network, func(t *testing.T) {
					s := listenOn(t, network)
					config := s.config()
					config.MarshalAsJSON, config.RequestAck, config.SubSecondPrecision =
						base.MarshalAsJSON, base.RequestAck, base.SubSecondPrecision
					if network == "tls" {
						config.FluentNetwork, config.TlsInsecureSkipVerify = "tls", true
					}
					f := open(t, config)
					for n := range 10 {
						must(t, f.PostWithTime(fmt.Sprint("tag", n%2), clock, text("line %d", n)))
						if base.RequestAck { // nil means acked: it is there
							s.mu.Lock()
							got := len(s.events)
							s.mu.Unlock()
							equal(t, got, n+1)
						}
					}
					must(t, f.Close())
					want := clock.Truncate(time.Second)
					if base.SubSecondPrecision && !base.MarshalAsJSON {
						want = clock
					}
					lines := map[string][]event{}
					for _, e := range s.wait(10) {
						lines[e.Tag] = append(lines[e.Tag], e)
					}
					for tag, events := range lines {
						for i, e := range events {
							equal(t, e, event{tag, want, text("line %d", 2*i+int(tag[3]-'0'))})
						}
					}
					if ids := s.ids; base.RequestAck && (len(ids) != 10 || ids[0] == "" || ids[0] == ids[1]) {
						t.Errorf("ids %q", ids)
					}
				})
			}
		})
	}
}

func listenOn(t *testing.T, network string) *server {
	t.Helper()
	switch network {
	case "unix":
		if runtime.GOOS == "windows" {
			needs.Skip(t, "no unix sockets")
		}
		return listen(t, "unix", filepath.Join(t.TempDir(), "s"))
	case "tls":
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		return serve(t, tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{certificate(t)}}))
	}
	return listen(t, "tcp", "127.0.0.1:0")
}

func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"elsewhere.example"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestTLSIsVerified connects to a server whose certificate nobody has signed.
func TestTLSIsVerified(t *testing.T) {
	s := listenOn(t, "tls")
	config := s.config()
	config.FluentNetwork, config.MaxRetry = "tls", 1
	f, err := fluent.New(config)
	if err == nil {
		t.Fatal("connected")
	}
	defer func() { must(t, f.Close()) }()
	if err := f.Post("tag", text("secret")); err == nil {
		t.Fatal("posted")
	}
}

// TestFirstEventAfterTheServerClosed posts on a connection that the server has closed. The original
// says nil and loses it.
func TestFirstEventAfterTheServerClosed(t *testing.T) {
	if runtime.GOOS == "windows" {
		needs.Skip(t, "the end is noticed a moment later there")
	}
	for _, network := range []string{"tcp", "tls"} {
		t.Run(network, func(t *testing.T) {
			s := play(t)
			config := s.config()
			config.MaxRetry, config.RetryWait = 2, 1
			secure := &tls.Config{}
			if network == "tls" {
				config.FluentNetwork, config.TlsInsecureSkipVerify = "tls", true
				secure.Certificates = []tls.Certificate{certificate(t)}
			}
			posted := make(chan error)
			go func() {
				f, err := fluent.New(config)
				posted <- err
				for n := 0; err == nil; n++ {
					<-posted // the server has closed
					err = f.Post("tag", text("%d", n))
					posted <- err
				}
				_ = f.Close()
				close(posted)
			}()
			for n := range 10 {
				p := s.accept()
				if network == "tls" {
					p.nc = tls.Server(p.nc, secure)
					p.r = msgp.NewReader(p.nc)
					must(t, p.nc.(*tls.Conn).Handshake())
				}
				must(t, <-posted)
				if n > 0 {
					equal(t, p.message().Record, any(text("%d", n-1)))
				}
				must(t, p.nc.Close())
				if n == 9 {
					must(t, s.l.Close())
				}
				posted <- nil
			}
			for range posted { // the last one fails
			}
		})
	}
}

// TestChattyServer has a server that talks although nobody asked it.
func TestChattyServer(t *testing.T) {
	s := play(t)
	f := open(t, s.config())
	p := s.accept()
	_, err := p.nc.Write([]byte("220 hello\r\n\xc1"))
	must(t, err)
	for n := range 10 {
		must(t, f.Post("tag", text("%d", n)))
		equal(t, p.message().Record, any(text("%d", n)))
	}
}

// TestIPv6 connects to an IPv6 address, which the original cannot.
func TestIPv6(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	needs.Have(t, err == nil, "IPv6 on the loopback interface: %v", err)
	s := serve(t, l)
	for _, host := range []string{"::1", "[::1]"} {
		config := s.config()
		config.FluentHost = host
		must(t, open(t, config).Post("tag", text("six")))
	}
	s.wait(2)
}

type inner struct {
	Depth int `msg:"depth"`
}

type outer struct {
	inner
	*tagged
	Kept    string    `msg:"kept,omitempty"`
	Skipped string    `msg:"-"`
	When    time.Time `msg:"when"`
	Err     error     `msg:"err"`
	Level   level     `msg:"level"`
	Nested  inner     `msg:"nested"`
	Raw     json.RawMessage
}

type level int

// TestRecordsOfTheOriginalsRefusal posts what the original panics on or refuses.
func TestRecordsOfTheOriginalsRefusal(t *testing.T) {
	s := listen(t, "tcp", "127.0.0.1:0")
	f := open(t, s.config())
	number := 4
	p := &inner{4}
	for i, tt := range []struct {
		post any
		want map[string]any
	}{
		{&inner{1}, map[string]any{"depth": int64(1)}},
		{&p, map[string]any{"depth": int64(4)}},
		{&map[string]string{"a": "b"}, map[string]any{"a": "b"}},
		{
			map[string]any{"s": inner{2}, "p": &inner{3}, "e": errors.New("text"), "t": clock, "l": level(5), "n": nil},
			map[string]any{
				"s": map[string]any{"depth": int64(2)}, "p": map[string]any{"depth": int64(3)}, "e": "text",
				"t": "2026-11-21T02:03:04.123456789Z", "l": int64(5), "n": nil,
			},
		},
		{outer{inner: inner{9}, When: clock, Nested: inner{8}, Raw: json.RawMessage(`{"x":[1]}`)}, map[string]any{
			"depth": int64(9), "when": "2026-11-21T02:03:04.123456789Z", "err": nil, "level": int64(0),
			"nested": map[string]any{"depth": int64(8)}, "Raw": map[string]any{"x": []any{int64(1)}},
		}},
		{failure{3}, map[string]any{"Code": int64(3)}},
		{struct {
			C complex64
			N *int `codec:"n,omitempty"`
		}{1i, &number}, map[string]any{"C": "(0+1i)", "n": int64(4)}},
	} {
		if err := f.Post("tag", tt.post); err != nil {
			t.Fatalf("%#v: %v", tt.post, err)
		}
		equal(t, s.wait(i + 1)[i].Record, any(tt.want))
	}
	var nilStruct *inner
	var nilMarshaler *withMethod
	var nilMap map[string]string
	for _, v := range []any{nil, nilStruct, nilMarshaler, &nilStruct} {
		if err := f.Post("tag", v); !errors.Is(err, spillway.ErrNotRecord) {
			t.Errorf("%#v: %v", v, err)
		}
		if err := f.EncodeAndPostData("tag", clock, v); !errors.Is(err, spillway.ErrNotRecord) {
			t.Errorf("encoded %#v: %v", v, err)
		}
	}
	must(t, f.Post("tag", nilMap)) // an empty record
	f.PostRawData(nil)             //nolint:staticcheck // SA1019: it still works
}

// failure is posted as a record, although it is an error too.
type failure struct{ Code int }

func (failure) Error() string { return "not this" }

type panics struct{ how string }

func (p panics) MarshalMsg(b []byte) ([]byte, error) {
	switch p.how {
	case "short":
		return nil, nil
	case "two":
		return append(b, 1, 2), nil
	}
	panic("in MarshalMsg")
}

type textPanics struct{}

func (textPanics) MarshalText() ([]byte, error) { panic("in MarshalText") }

// TestBadMethods posts values whose methods misbehave, and some that contain themselves.
func TestBadMethods(t *testing.T) {
	s := listen(t, "tcp", "127.0.0.1:0")
	f := open(t, s.config())
	loop := map[string]any{}
	loop["self"] = loop
	type knot struct{ Next *knot }
	k := &knot{}
	k.Next = k
	var ring any
	ring = &ring
	for _, v := range []any{
		panics{},
		panics{"short"},
		panics{"two"},
		map[string]any{"x": panics{}},
		map[string]any{"x": textPanics{}},
		loop, k,
		map[string]any{"r": ring},
	} {
		if err := f.Post("tag", v); err == nil {
			t.Errorf("%T was posted", v)
		}
	}
	must(t, f.Post("tag", text("still here")))
	equal(t, s.wait(1)[0].Record, any(text("still here")))
}

// TestTagInJSON posts a tag with quotes; the original writes JSON that is none.
func TestTagInJSON(t *testing.T) {
	s := listen(t, "tcp", "127.0.0.1:0")
	config := s.config()
	config.MarshalAsJSON = true
	must(t, open(t, config).Post("a \"tag\"\n", text("x")))
	equal(t, s.wait(1)[0].Tag, "a \"tag\"\n")
	b, err := json.Marshal(new(fluent.MessageChunk))
	must(t, err)
	equal(t, string(b), `["",0,null,null]`)
}

// TestUnused checks that a value is used during Post only.
func TestUnused(t *testing.T) {
	s := listen(t, "tcp", "127.0.0.1:0")
	f := open(t, s.config())
	record := map[string]any{}
	for n := range 100 {
		record["n"] = n
		must(t, f.Post("tag", record))
	}
	for n, e := range s.wait(100) {
		equal(t, e.Record, any(map[string]any{"n": int64(n)}))
	}
}

// TestNewWithoutServer uses what New returns beside its error, as the original's own example does.
func TestNewWithoutServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := l.Addr()
	must(t, l.Close())
	config := pointAt(address)
	config.MaxRetry, config.RetryWait, config.RequestAck = 2, 1, true
	f, err := fluent.New(config)
	if err == nil || f == nil {
		t.Fatalf("%v, %v", f, err)
	}
	defer func() { must(t, f.Close()) }()
	err = f.Post("tag", text("nobody hears"))
	if err == nil || !strings.HasPrefix(err.Error(), "fluent#write: could not connect to fluentd after 2 retries") {
		t.Fatal(err)
	}
	s := listen(t, "tcp", address.String())
	must(t, f.Post("tag", text("heard")))
	equal(t, s.wait(1)[0].Record, any(text("heard")))
}

// TestRetry lets connections end with a message written and not acked: it comes again, with the
// same id, on a fresh one.
func TestRetry(t *testing.T) {
	s := play(t)
	config := s.config()
	config.RequestAck, config.RetryWait, config.MaxRetry = true, 1, 4
	f := open(t, config)
	result := make(chan error, 1)
	go func() { result <- f.Post("tag", text("again")) }()
	p := s.accept()
	first := p.message()
	must(t, p.nc.Close())
	p = s.accept()
	equal(t, p.message(), first)
	p.ack("another id")
	p = s.accept()
	equal(t, p.message(), first)
	p.ack(first.Option["chunk"])
	must(t, <-result)

	go func() { result <- f.Post("tag", text("never")) }()
	for range config.MaxRetry { // the first one comes on the same connection
		p.message()
		must(t, p.nc.Close())
		if p = nil; len(result) == 0 {
			select {
			case nc := <-s.conns:
				p = &peer{t, nc, msgp.NewReader(nc)}
			case err := <-result:
				result <- err
			}
		}
	}
	err := <-result
	if err == nil || !strings.HasPrefix(err.Error(), "fluent#write: failed to write after 4 attempts") {
		t.Fatal(err)
	}
}

// TestTimeouts has a server that reads nothing, and one that acks nothing.
func TestTimeouts(t *testing.T) {
	s := play(t)
	config := s.config()
	config.WriteTimeout, config.MaxRetry = time.Millisecond, 1
	f := open(t, config)
	large := map[string]any{"log": strings.Repeat("x", 1<<20)}
	var err error
	for range 100 {
		if err = f.Post("tag", large); err != nil {
			break
		}
	}
	if err == nil || !strings.HasPrefix(err.Error(), "fluent#write: failed to write after 1 attempts") {
		t.Errorf("write: %v", err)
	}
	config.WriteTimeout, config.ReadTimeout, config.RequestAck = 0, time.Millisecond, true
	g := open(t, config)
	err = g.Post("tag", text("x"))
	if err == nil || !strings.HasPrefix(err.Error(), "fluent#write: failed to write after 1 attempts") {
		t.Errorf("read: %v", err)
	}
}

// TestCloseReturns closes while calls wait for a server that does not answer, does not read, or is
// not there.
func TestCloseReturns(t *testing.T) {
	for name, config := range map[string]fluent.Config{
		"no acks": {RequestAck: true}, "no acks, JSON": {RequestAck: true, MarshalAsJSON: true}, "no reads": {},
		"no server": {RetryWait: 3_600_000, MaxRetryWait: 3_600_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := play(t)
			at := s.config()
			config.FluentHost, config.FluentPort = at.FluentHost, at.FluentPort
			f := open(t, config)
			p := s.accept()
			if name == "no server" {
				must(t, s.l.Close())
				must(t, p.nc.Close())
			}
			large := map[string]any{"log": strings.Repeat("x", 1<<20)}
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					for n := 0; ; n++ {
						if err := f.Post("tag", large); err != nil {
							if !errors.Is(err, spillway.ErrClosed) {
								t.Errorf("post: %v", err)
							}
							return
						}
					}
				})
			}
			if name == "no server" {
				_, _ = io.ReadAll(p.nc) // it is closed: nothing to wait for
			} else {
				var b [1]byte
				_, err := p.nc.Read(b[:]) // a call is under way
				must(t, err)
			}
			in(t, "Close", func() { must(t, f.Close()) })
			in(t, "Post", wg.Wait)
			in(t, "Close again", func() { must(t, f.Close()) })
			if err := f.Post("tag", text("x")); err == nil ||
				err.Error() != "fluent#postRawData: Logger already closed" {
				t.Errorf("after Close: %v", err)
			}
		})
	}
}

// TestTogether posts from many goroutines: their messages are in flight together, and the acks find
// the right call.
func TestTogether(t *testing.T) {
	s := play(t)
	config := s.config()
	config.RequestAck = true
	f := open(t, config)
	p := s.accept()
	const calls = 20
	var wg sync.WaitGroup
	for n := range calls {
		wg.Go(func() {
			if err := f.Post("tag", text("%d", n)); err != nil {
				t.Error(err)
			}
		})
	}
	var ids []string
	for range calls { // none returns before its ack, so all are in flight
		ids = append(ids, p.message().Option["chunk"])
	}
	for n := range ids { // in another order than they came
		p.ack(ids[len(ids)-1-n])
	}
	in(t, "Post", wg.Wait)
}

// TestManyClose has goroutines post and close at once.
func TestManyClose(t *testing.T) {
	s := listen(t, "tcp", "127.0.0.1:0")
	config := s.config()
	config.RequestAck = true
	f := open(t, config)
	var wg sync.WaitGroup
	var mu sync.Mutex
	acked := 0
	for n := range 8 {
		wg.Go(func() {
			for {
				err := f.Post("tag", text("x"))
				if errors.Is(err, spillway.ErrClosed) {
					return
				}
				mu.Lock()
				if acked++; acked == 200 {
					go func() { _ = f.Close() }()
				}
				mu.Unlock()
				if err != nil {
					t.Errorf("%d: %v", n, err)
				}
			}
		})
	}
	in(t, "Post", wg.Wait)
	must(t, f.Close())
	s.wait(acked)
}

// TestZero uses a Fluent that New did not make.
func TestZero(t *testing.T) {
	var none *fluent.Fluent
	for _, f := range []*fluent.Fluent{{}, none} {
		if f.Post("tag", text("x")) == nil || f.EncodeAndPostData("tag", clock, text("x")) == nil || f.Close() != nil {
			t.Errorf("%v works", f)
		}
	}
	f, err := fluent.New(fluent.Config{FluentNetwork: "no"})
	if post := f.Post("tag", text("x")); err == nil || !errors.Is(post, err) {
		t.Errorf("%v, %v", err, post)
	}
}

// TestDefaults reads the Config after New, as callers do.
func TestDefaults(t *testing.T) {
	f, _ := fluent.New(fluent.Config{FluentNetwork: "unix", FluentSocketPath: filepath.Join(t.TempDir(), "none")})
	equal(t, f.FluentPort, 24224)
	equal(t, f.FluentHost, "127.0.0.1")
	equal(t, f.Timeout, 3*time.Second)
	equal(t, f.WriteTimeout, time.Duration(0))
	equal(t, f.BufferLimit, 8192)
	equal(t, f.MaxRetry, 13)
	equal(t, f.RetryWait, 500)
	equal(t, f.MaxRetryWait, 60000)
	must(t, f.Close())
}
