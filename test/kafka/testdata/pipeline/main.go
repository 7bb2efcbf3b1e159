// SPDX-License-Identifier: Apache-2.0

// Command pipeline logs lines through logrus, as a service does: to a syslog socket, or through the
// adapter to a collector.
//
//	pipeline SERVICE COUNT syslog SOCKET
//	pipeline SERVICE COUNT forward URL SHM
package main

import (
	"context"
	"log"
	"log/syslog"
	"os"
	"strconv"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/spillwaylog/spillway"
	spillwaylogrus "github.com/spillwaylog/spillway/adapter/logrus"
)

func main() {
	service, to := os.Args[1], logrus.New()
	count, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	end := func() error { return nil }
	if os.Args[3] == "syslog" {
		w, err := syslog.Dial("unixgram", os.Args[4], syslog.LOG_LOCAL0|syslog.LOG_INFO, service)
		if err != nil {
			log.Fatal(err)
		}
		to.SetFormatter(spillwaylogrus.NewServiceFormatter(service))
		to.SetOutput(w)
		end = w.Close
	} else {
		l, err := spillway.Open(os.Args[4], &spillway.Options{
			Name: service, Tag: service, Shm: os.Args[5],
			Overflow: spillway.OverflowBlock, MaxWait: time.Hour,
		})
		if err != nil {
			log.Fatal(err)
		}
		spillwaylogrus.Redirect(to, l)
		end = func() error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			return l.Close(ctx)
		}
	}
	for n := range count {
		to.WithFields(logrus.Fields{"service": service, "task_id": strconv.Itoa(n)}).Info("the task is done")
	}
	if err := end(); err != nil {
		log.Fatal(err)
	}
}
