// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spillwaylog/spillway/internal/testcert"
)

// Rules 41 to 43: UDP, TLS, JSON.

func rule41(tr *trial) {
	ask := func(p *probe, s *server, what byte, size int) net.Conn {
		c, err := net.Dial("udp", s.addr)
		p.must(err)
		p.Cleanup(func() { c.Close() })
		p.must(c.SetDeadline(time.Now().Add(*wait)))
		_, err = c.Write(bytes.Repeat([]byte{what}, size))
		p.must(err)
		return c
	}
	answer := func(p *probe, c net.Conn) {
		b := make([]byte, 512)
		n, err := c.Read(b)
		if err != nil || n != 1 || b[0] != 0 {
			p.Errorf("the answer is % x, %v; want 00", b[:n], err)
		}
	}
	for _, size := range []int{1, 2, 128} {
		tr.run(fmt.Sprintf("%d bytes of 00", size),
			func(p *probe) { answer(p, ask(p, tr.server(p, "plain"), 0, size)) })
	}
	tr.run("another byte than 00", func(p *probe) { answer(p, ask(p, tr.server(p, "plain"), 'A', 1)) })
	tr.run("129 bytes of 00", func(p *probe) {
		s := tr.server(p, "plain")
		long := ask(p, s, 0, 129)
		answer(p, ask(p, s, 0, 1)) // so the other one was looked at
		p.must(long.SetDeadline(time.Now().Add(50 * time.Millisecond)))
		if n, err := long.Read(make([]byte, 512)); !errors.Is(err, os.ErrDeadlineExceeded) {
			p.Errorf("it is answered with %d bytes, %v", n, err)
		}
	})
}

// A silence is a connection that only listens.
type silence struct{ over chan struct{} }

func listen(c net.Conn) *silence {
	s := &silence{make(chan struct{})}
	go func() {
		defer close(s.over)
		_, _ = io.Copy(io.Discard, c) // it ends in one way or another
	}()
	return s
}

func rule42(tr *trial) {
	// Two clients that say nothing; meanwhile the other cases run.
	silent := map[string]*silence{}
	for _, setting := range []string{"tls", "login"} {
		tr.run("a silent client of the setting "+setting+" is let in", func(p *probe) {
			s := tr.server(p, setting)
			c, err := net.Dial("tcp", s.addr)
			p.must(err)
			silent[setting] = listen(c)
			tr.t.Cleanup(func() { c.Close() })
		})
	}
	talk := func(p *probe, s *server, config *tls.Config) error {
		nc, err := net.Dial("tcp", s.addr)
		p.must(err)
		defer nc.Close()
		p.must(nc.SetDeadline(time.Now().Add(*wait)))
		c := tls.Client(nc, config)
		names := newNaming()
		if _, err := c.Write(names.bytes("94 $t 05 $rec 81 $chunk")); err != nil {
			return err
		}
		want := names.bytes("$ack")
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c, got); err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("ack % x, want % x", got, want)
		}
		return nil
	}
	with := func(s *server, change func(*tls.Config)) *tls.Config {
		c := s.tls.Clone()
		change(c)
		return c
	}
	for _, v := range []struct {
		name string
		v    uint16
		good bool
	}{
		{"TLS 1.0", tls.VersionTLS10, false},
		{"TLS 1.1", tls.VersionTLS11, false},
		{"TLS 1.2", tls.VersionTLS12, true},
		{"TLS 1.3", tls.VersionTLS13, true},
	} {
		tr.run(v.name, func(p *probe) {
			s := tr.server(p, "tls")
			err := talk(p, s, with(s, func(c *tls.Config) { c.MinVersion, c.MaxVersion = v.v, v.v }))
			if v.good != (err == nil) {
				p.Errorf("%v", err)
			}
		})
	}
	tr.run("plain bytes where TLS is spoken", func(p *probe) {
		s := tr.server(p, "tls")
		nc, err := net.Dial("tcp", s.addr)
		p.must(err)
		defer nc.Close()
		p.must(nc.SetDeadline(time.Now().Add(*wait)))
		names := newNaming()
		_, err = nc.Write(names.bytes("94 $t 05 $rec 81 $chunk"))
		p.must(err)
		got, err := io.ReadAll(nc)
		if errors.Is(err, os.ErrDeadlineExceeded) || bytes.Contains(got, []byte("ack")) {
			p.Errorf("the server wrote % x, %v", clip(got), err)
		}
		wantLines(p, s.settle(p, nil, "", names.tag), nil, false)
	})
	list := []wire{
		{
			name: "Message mode over TLS", in: "94 $t $time $rec 81 $chunk", events: []string{mb}, acks: "$ack",
			setting: "tls",
		},
		{name: "Forward mode over TLS", in: "93 $t 92 $e1 $e2 81 $chunk", events: both, acks: "$ack", setting: "tls"},
		{
			name: "PackedForward mode over TLS", in: "93 $t c4 20 $e1 $e2 81 $chunk", events: both, acks: "$ack",
			setting: "tls",
		},
		{name: "a partial message over TLS", in: "93 $t c4 20 $e1", hang: true, setting: "tls"},
	}
	tr.wires(list...)
	for _, v := range []struct{ name, setting, cert, want string }{
		{"a required certificate", "tls require", "client", ""},
		{"a required certificate is missing", "tls require", "", "refused"},
		{"a required certificate of somebody else's", "tls require", "other", "refused"},
		{"a certificate where one may be given", "tls request", "client", ""},
		{"none where one may be given", "tls request", "", ""},
		{"somebody else's where one may be given", "tls request", "other", "refused"},
	} {
		tr.run(v.name, func(p *probe) {
			s := tr.server(p, v.setting)
			err := talk(p, s, with(s, func(c *tls.Config) {
				c.Certificates = nil
				if pair, ok := s.pairs[v.cert]; ok {
					// As a client that takes no hint: Go's own would not send what the server's
					// list of authorities does not name.
					c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate,
						error,
					) {
						return &pair.TLS, nil
					}
				}
			}))
			if (v.want == "") != (err == nil) {
				p.Errorf("%v", err)
			}
		})
	}
	tr.run("a certificate changed while connections stand", func(p *probe) {
		s := tr.server(p, "tls reload")
		old := s.dial(p)
		_, _ = old.fence()
		first := old.Conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber
		next := s.ca.Issue(p.T, &testcert.Options{Name: "localhost", Hosts: []string{"localhost", "127.0.0.1"}})
		for from, to := range map[string]string{next.Key: "key.pem", next.Cert: "cert.pem"} {
			b, err := os.ReadFile(from)
			p.must(err)
			p.must(os.WriteFile(filepath.Join(s.dir, to+".new"), b, 0o600))
			p.must(os.Rename(filepath.Join(s.dir, to+".new"), filepath.Join(s.dir, to)))
		}
		until(p, "a new connection sees the new certificate", func() bool {
			c := s.dial(p)
			defer c.Close()
			_, _ = c.fence()
			return c.Conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Cmp(first) != 0
		})
		_, _ = old.fence() // it stands
	})
	for _, setting := range []string{"tls", "login"} {
		tr.run("a silent client of the setting "+setting+" is cut off", func(p *probe) {
			s := silent[setting]
			if s == nil {
				tr.server(p, setting) // says what is missing
				p.Fatalf("it was not let in")
			}
			select {
			case <-s.over:
			case <-time.After(*wait):
				p.Errorf("it is not cut off")
			}
		})
	}
}

func rule43(tr *trial) {
	type object = map[string]any
	run := func(name, in string, events []string, acks ...string) {
		tr.run(name, func(p *probe) {
			s := tr.server(p, "plain")
			if s.login != nil {
				p.unseen("needs a server without a handshake")
			}
			names, c := newNaming(), s.dial(p)
			fence := newID()
			text := strings.NewReplacer("$t", names.tag, "$1", names.ids[1], "$2", names.ids[2]).Replace(in)
			text += fmt.Sprintf(`["%s",5,{"m":%q},{"chunk":%q}]`, fenceTag, fence, fence)
			c.send([]byte(text))
			var got []string
			for d := json.NewDecoder(c); ; {
				var ack object
				if err := d.Decode(&ack); err != nil {
					p.Fatalf("acks %q, then %v", got, err)
				}
				id, _ := ack["ack"].(string)
				if id == fence {
					break
				}
				got = append(got, id)
			}
			want := make([]string, len(acks))
			for i, a := range acks {
				want[i] = strings.NewReplacer("$1", names.ids[1], "$2", names.ids[2]).Replace(a)
			}
			if strings.Join(got, " ") != strings.Join(want, " ") {
				p.Errorf("acks %q, want %q", got, want)
			}
			wantLines(p, s.settle(p, c, fence, names.tag), events, strings.Contains(name, "repeated"))
		})
	}
	b := []string{`1441588984.000000000 {"m":"b"}`}
	run("one event", `["$t", 1441588984, {"m":"b"}]`, b)
	run("with an id", `["$t", 1441588984, {"m":"b"}, {"chunk":"$1"}]`, b, "$1")
	run("several", `["$t",1441588984,{"m":"b"}]["$t",1441588984,{"m":"b"}]`+"\n\n"+`["$t",1441588984,{"m":"b"}]`+"\n",
		[]string{b[0], b[0], b[0]})
	run("newlines within", "[\"$t\"\n, 5 ,\r\n {\"m\":\n\"b\\n\"}]", []string{`5.000000000 {"m":"b\n"}`})
	run("repeated keys", `["$t", 5, {"m":1,"a":2,"m":3}]`, []string{`5.000000000 {"m":1,"a":2,"m":3}`})
	run("Forward mode", `["$t", [[1441588984, {"m":"b"}],[5, {"n":null}]], {"chunk":"$1"}]["$t", 5, {"m":1}, {"chunk":"$2"}]`,
		[]string{b[0], `5.000000000 {"n":null}`, `5.000000000 {"m":1}`}, "$1", "$2")
	run("an object first", `{"tag":"t"}["$t", 1441588984, {"m":"b"}]`, b)
	run("time 0", `["$t", 0, {"m":"b"}]`, []string{now + `{"m":"b"}`})
}
