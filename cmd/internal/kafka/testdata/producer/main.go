// SPDX-License-Identifier: Apache-2.0

// Command producer sends lines of a file to a topic by franz-go's producer, over and over, and does
// nothing else: what an output to Kafka is measured beside. A line is a key, a space and a value. It
// prints how many it sent in a second, from the first ack to the last.
//
//	producer BROKERS TOPIC FILE COUNT
package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	text, err := os.ReadFile(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	count, err := strconv.Atoi(os.Args[4])
	if err != nil {
		log.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Args[1], ",")...), kgo.DefaultProduceTopic(os.Args[2]),
		kgo.AllowAutoTopicCreation(), kgo.UnknownTopicRetries(-1),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.ProducerLinger(5*time.Millisecond),
		kgo.ProducerBatchMaxBytes(1_000_000),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	var failed atomic.Pointer[error]
	var first time.Time // with the promises, of which one runs at a time
	for i := range count {
		key, value, _ := bytes.Cut(lines[i%len(lines)], []byte(" "))
		client.Produce(context.Background(), &kgo.Record{Key: key, Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.Store(&err)
			}
			if first.IsZero() {
				first = time.Now()
			}
		})
	}
	if err := client.Flush(context.Background()); err != nil {
		log.Fatal(err)
	}
	if err := failed.Load(); err != nil {
		log.Fatal(*err)
	}
	fmt.Printf("%.0f\n", float64(count)/time.Since(first).Seconds())
}
