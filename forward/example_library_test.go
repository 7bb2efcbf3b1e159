// SPDX-License-Identifier: Apache-2.0

package forward_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// order is what the examples log.
type order struct {
	ID    int     `json:"id"`
	Total float64 `json:"total"`
}

// send sends one order a chunk, and returns when all are acked.
func send(c *forward.Client, tag string, orders ...order) error {
	for _, o := range orders {
		b := msgpack.AppendArrayHeader(nil, 2)
		b = forward.AppendEventTime(b, 1441588984, 0)
		b = msgpack.AppendMapHeader(b, 2)
		b = msgpack.AppendInt(msgpack.AppendString(b, "id"), int64(o.ID))
		b = msgpack.AppendFloat64(msgpack.AppendString(b, "total"), o.Total)
		if err := c.Send(context.Background(), &forward.Chunk{Tag: tag, Entries: b, Events: 1}); err != nil {
			return err
		}
	}
	return c.Close()
}

// A server that prints events. A program that does nothing else calls ListenAndServe.
func ExampleServer() {
	s := &forward.Server{Handler: forward.HandlerFunc(func(_ context.Context, c *forward.Chunk) error {
		for when, record := range c.All() {
			var o order
			if err := record.Decode(&o); err != nil {
				return err // not stored: the client sends the chunk again
			}
			fmt.Println(when.Format(time.TimeOnly), c.Tag, o.ID, o.Total)
		}
		return nil // stored: the ack goes out
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go s.Serve(l)

	if err := send(&forward.Client{Address: l.Addr().String()}, "shop.orders", order{1, 9.5},
		order{2, 12}); err != nil {
		fmt.Println(err)
	}
	_ = s.Shutdown(context.Background())
	// Output:
	// 01:23:04 shop.orders 1 9.5
	// 01:23:04 shop.orders 2 12
}

// table stores chunks in the background, several at a time: that of the first tag takes longest.
type table struct{ writers sync.WaitGroup }

func (t *table) ServeForward(context.Context, *forward.Chunk) error {
	return errors.New("not called: StartForward is there")
}

func (t *table) StartForward(ctx context.Context, c *forward.Chunk, done func(error)) {
	t.writers.Go(func() {
		// c is valid until done is called.
		done(t.insert(ctx, c.Tag, c.Entries))
	})
}

func (t *table) insert(ctx context.Context, _ string, _ []byte) error { return ctx.Err() }

// A handler that takes its time, with several chunks of a connection at once. Their acks leave in
// order all the same.
func ExampleAsyncHandler() {
	t := new(table)
	s := &forward.Server{Handler: t, MaxInFlight: 16}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go s.Serve(l)

	err = send(&forward.Client{Address: l.Addr().String()}, "shop.orders", order{1, 9.5}, order{2, 12})
	fmt.Println("acked:", err == nil)
	_ = s.Shutdown(context.Background()) // waits for what the handler still has
	t.writers.Wait()
	fmt.Println("events:", s.Stats().Events)
	// Output:
	// acked: true
	// events: 2
}

// TLS, a shared key and users. The handler learns who has sent a chunk.
func ExampleServer_security() {
	certificate, roots := certify("logs.example")
	s := &forward.Server{
		Endpoint: forward.Endpoint{
			TLS:      &tls.Config{Certificates: []tls.Certificate{certificate}},
			Security: &forward.Security{SharedKey: "secret", Users: map[string]string{"web": "password"}},
			UserKey:  "sent_by",
		},
		Handler: forward.HandlerFunc(func(ctx context.Context, c *forward.Chunk) error {
			sender := forward.SenderOf(ctx)
			for _, record := range c.All() {
				text, err := record.AppendJSON(nil)
				if err != nil {
					return err
				}
				fmt.Printf("%s by %s over %s\n", text, sender.User, tls.VersionName(sender.TLS.Version))
			}
			return nil
		}),
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go s.Serve(l)

	c := &forward.Client{
		Address: l.Addr().String(),
		TLS:     &tls.Config{RootCAs: roots, ServerName: "logs.example"},
		Login:   &forward.Login{SharedKey: "secret", Username: "web", Password: "password"},
	}
	if err := send(c, "shop.orders", order{1, 9.5}); err != nil {
		fmt.Println(err)
	}
	_ = s.Shutdown(context.Background())
	// Output:
	// {"id":1,"total":9.5,"sent_by":"web"} by web over TLS 1.3
}

// A value of a record, without decoding the rest.
func ExampleRecord_Get() {
	record := forward.Record("\x82\xa5level\xa5ERROR\xa4code\xcd\x01\xf4")
	level, _ := record.Get("level")
	text, _ := level.Text()
	code, _ := record.Get("code")
	n, _ := code.Int()
	fmt.Printf("%s %d\n", text, n)
	// Output: ERROR 500
}

// certify makes a certificate that vouches for itself.
func certify(name string) (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}
