// SPDX-License-Identifier: Apache-2.0

// Command adapters logs the numbers 1, 2, 3 … through an adapter until it is killed, and prints
// each after its call: then it was accepted.
//
//	adapters ADAPTER DESTINATION SHM
package main

import (
	"fmt"
	"log"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/rs/zerolog"
	"github.com/sirupsen/logrus"
	"go.uber.org/zap"

	"github.com/spillwaylog/spillway"
	spillwaylogr "github.com/spillwaylog/spillway/adapter/logr"
	spillwaylogrus "github.com/spillwaylog/spillway/adapter/logrus"
	spillwayzap "github.com/spillwaylog/spillway/adapter/zap"
	spillwayzerolog "github.com/spillwaylog/spillway/adapter/zerolog"
)

func main() {
	l, err := spillway.Open(os.Args[2], &spillway.Options{
		Name: "trial", Shm: os.Args[3], RingSize: 1 << 20, Overflow: spillway.OverflowBlock, MaxWait: time.Hour,
	})
	if err != nil {
		log.Fatal(err)
	}
	var call func(n int)
	switch os.Args[1] {
	case "logrus":
		from := logrus.New()
		spillwaylogrus.Redirect(from, l)
		call = func(n int) { from.WithField("n", n).Info("m") }
	case "zap":
		from := zap.New(spillwayzap.NewCore(l))
		call = func(n int) { from.Info("m", zap.Int("n", n)) }
	case "zerolog":
		from := zerolog.New(spillwayzerolog.NewWriter(l))
		call = func(n int) { from.Info().Int("n", n).Msg("m") }
	case "logr":
		from := logr.New(spillwaylogr.NewSink(l))
		call = func(n int) { from.Info("m", "n", n) }
	default:
		log.Fatalf("no adapter %q", os.Args[1])
	}
	for n := 1; ; n++ {
		call(n)
		if _, err := fmt.Println(n); err != nil {
			log.Fatal(err)
		}
	}
}
