// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"testing"
	"time"
)

// TestRemovedData removes the data directory under a running collector: nothing is acked after
// that, whatever an ack promises, neither what is new nor what was acked before and comes again;
// and the collector says so.
func TestRemovedData(t *testing.T) {
	t.Parallel()
	for _, ack := range []string{"journaled", "synced", "delivered"} {
		t.Run(ack, func(t *testing.T) {
			t.Parallel()
			s, _ := newSetup(t)
			s.args = []string{"--ack", ack}
			c := startCollector(t, s)
			l := c.lane()
			id := newID()
			message := packed("removed", id, named("before").append(nil))
			l.send(message, id)
			err := os.RemoveAll(s.data)
			for err != nil { // the collector may be making a file just then
				err = os.RemoveAll(s.data)
			}
			again := c.lane()
			again.write(message)
			l.write(packed("removed", newID(), named("after").append(nil)))
			c.says("level=ERROR", "journal broken", "removed")
			for _, l := range []*lane{l, again} {
				l.deadline(300 * time.Millisecond) // an ack would have been sent before the collector said so
				if id, err := readAck(l.acks); err == nil {
					t.Errorf("ack %q after the data directory was removed", id)
				}
			}
			c.kill()
		})
	}
}
