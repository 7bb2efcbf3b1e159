// SPDX-License-Identifier: Apache-2.0

// The program sends an order's events with IBM/fluent-forward-go, which has neither buffer nor
// retry: its user makes the messages, and sends one again when the connection broke.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/IBM/fluent-forward-go/fluent/client"
	"github.com/IBM/fluent-forward-go/fluent/protocol"
	"github.com/tinylib/msgp/msgp"

	"github.com/spillwaylog/spillway/test/clients"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	err := errors.Join(send(out), out.Flush())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // a program, in a folder that is none of those of programs
	}
}

func send(out *bufio.Writer) error {
	var o clients.Order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		return err
	}
	c, err := newClient(&o)
	if err != nil {
		return err
	}
	if err := connect(c, &o); err != nil && !o.Retry {
		return err
	}
	for first := 0; first < o.Count; first += 3 * o.Batch {
		for tag := range 3 { // a message has one
			var numbers []int
			for n := first + tag; n < min(first+3*o.Batch, o.Count); n += 3 {
				numbers = append(numbers, n)
			}
			if err := deliver(c, &o, out, numbers); err != nil {
				return err
			}
		}
	}
	return c.Disconnect()
}

// deliver sends the events, as one message where the mode has such, and with acks tells that they
// are acked.
func deliver(c *client.Client, o *clients.Order, out *bufio.Writer, numbers []int) error {
	if o.Mode == "message" && len(numbers) > 1 {
		return errors.Join(deliver(c, o, out, numbers[:1]), deliver(c, o, out, numbers[1:]))
	}
	if len(numbers) == 0 {
		return nil
	}
	m, err := message(o, numbers)
	if err != nil {
		return err
	}
	for err = c.Send(m); err != nil && o.Retry; err = c.Send(m) { // it keeps its chunk id
		<-time.After(20 * time.Millisecond)
		_ = c.Disconnect() // it is broken
		_ = connect(c, o)  // else Send says so
	}
	if err != nil || !o.Ack {
		return err
	}
	for _, n := range numbers {
		fmt.Fprintln(out, n)
	}
	return out.Flush()
}

func newClient(o *clients.Order) (*client.Client, error) {
	factory := &client.ConnFactory{Network: "tcp", Address: net.JoinHostPort(o.Host, strconv.Itoa(o.Port))}
	if o.Path != "" {
		factory.Network, factory.Address = "unix", o.Path
	}
	if o.CA != "" {
		pem, err := os.ReadFile(o.CA)
		if err != nil {
			return nil, err
		}
		factory.TLSConfig = &tls.Config{RootCAs: x509.NewCertPool()}
		factory.TLSConfig.RootCAs.AppendCertsFromPEM(pem)
		if o.Cert != "" {
			pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
			if err != nil {
				return nil, err
			}
			factory.TLSConfig.Certificates = []tls.Certificate{pair}
		}
	}
	options := client.ConnectionOptions{Factory: factory, RequireAck: o.Ack}
	if o.Username != "" {
		return nil, errors.New("the client knows no users")
	}
	if o.SharedKey != "" {
		options.AuthInfo.SharedKey = []byte(o.SharedKey)
	}
	c := client.New(options)
	c.Hostname = o.Hostname
	return c, nil
}

func connect(c *client.Client, o *clients.Order) error {
	if err := c.Connect(); err != nil {
		return err
	}
	if o.SharedKey == "" {
		return nil
	}
	return c.Handshake()
}

func message(o *clients.Order, numbers []int) (protocol.ChunkEncoder, error) {
	when, tag, _ := o.Event(numbers[0])
	var entries protocol.EntryList
	for _, n := range numbers {
		when, _, event := o.Event(n)
		// A map would be written in another order each time that the message is sent, and with
		// other bytes it is no resend.
		record, err := msgp.AppendIntf(nil, event)
		if err != nil {
			return nil, err
		}
		entries = append(entries, protocol.EntryExt{
			Timestamp: protocol.EventTime{Time: when},
			Record:    msgp.Raw(record),
		})
	}
	switch o.Mode {
	case "message":
		if o.Times == clients.Seconds {
			return &protocol.Message{Tag: tag, Timestamp: when.Unix(), Record: entries[0].Record}, nil
		}
		return &protocol.MessageExt{Tag: tag, Timestamp: entries[0].Timestamp, Record: entries[0].Record}, nil
	case "forward":
		return protocol.NewForwardMessage(tag, entries), nil
	case "packed":
		return protocol.NewPackedForwardMessage(tag, entries)
	case "compressed":
		return protocol.NewCompressedPackedForwardMessage(tag, entries)
	default:
		return nil, fmt.Errorf("the client has no mode %s", o.Mode)
	}
}
