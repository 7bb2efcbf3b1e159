// SPDX-License-Identifier: Apache-2.0

//go:build unix

package forward

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/spillwaylog/spillway/internal/testcert"

	"github.com/spillwaylog/spillway/internal/needs"
)

// senderEnv makes this test binary a sender, so that the benchmark's own processor time is that of
// the server.
const senderEnv = "FORWARD_TEST_SENDER"

func TestMain(m *testing.M) {
	if os.Getenv(senderEnv) != "" {
		sendForEver()
		return
	}
	os.Exit(needs.Main(m))
}

// sendForEver sends what it is told to, until the server is gone.
func sendForEver() {
	var how, address, ca string
	if _, err := fmt.Sscan(os.Getenv(senderEnv), &how, &address, &ca); err != nil {
		panic(err)
	}
	nc, err := net.Dial("tcp", address)
	if err != nil {
		panic(err)
	}
	if ca != "-" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			panic(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		nc = tls.Client(nc, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", DynamicRecordSizingDisabled: true})
	}
	var data []byte
	for len(data) < 1<<20 {
		data = append(data, benchMessage(how)...)
	}
	for {
		if _, err := nc.Write(data); err != nil {
			return
		}
	}
}

func benchMessage(how string) []byte {
	switch how {
	case "packed":
		return packedMessage("app.web", 1000, "")
	case "forward":
		return forwardMessage(1000)
	}
	return messages(1000, 1, false)
}

// BenchmarkTLS is what the server needs for a thousand events that come over TCP, and over TLS.
func BenchmarkTLS(b *testing.B) {
	ca := testcert.New(b)
	for _, how := range []string{"packed", "forward", "message"} {
		for _, secure := range []bool{false, true} {
			name, file, ep := how+"/plain", "-", &Endpoint{}
			if secure {
				name, file, ep = how+
					"/tls", ca.File, &Endpoint{TLS: &tls.Config{Certificates: []tls.Certificate{ca.Server.TLS}}}
			}
			b.Run(name, func(b *testing.B) {
				got := make(chan int, 64)
				s := &Server{Handler: HandlerFunc(func(ctx context.Context, c *Chunk) error {
					select {
					case got <- c.Events:
					case <-ctx.Done():
					}
					return nil
				})}
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					b.Fatal(err)
				}
				served := make(chan error, 1)
				go func() { served <- s.ServeEndpoint(l, ep) }()
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s", senderEnv, how, l.Addr(), file))
				var out bytes.Buffer
				cmd.Stderr = &out
				if err := cmd.Start(); err != nil {
					b.Fatal(err)
				}
				<-got // it has begun
				b.ReportAllocs()
				b.SetBytes(int64(len(benchMessage(how))))
				before, events := cpu(b), 0
				for b.Loop() {
					for events < 1000 {
						events += <-got
					}
					events -= 1000
				}
				perEvent(b, before)
				_ = s.Close()
				<-served
				if err := cmd.Wait(); err != nil {
					b.Error(err, out.String())
				}
				used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
				b.ReportMetric(float64(used.Nanoseconds())/float64(b.N)/1000, "sender-ns/event")
			})
		}
	}
}
