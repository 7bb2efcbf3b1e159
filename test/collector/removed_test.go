// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"os"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/test/internal/rig"
)

// TestRemovedData removes the data directory under a running collector: nothing is acked after
// that, whatever an ack promises, neither what is new nor what was acked before and comes again;
// and the collector says so.
func TestRemovedData(t *testing.T) {
	t.Parallel()
	for _, ack := range []string{"journaled", "synced", "delivered"} {
		t.Run(ack, func(t *testing.T) {
			t.Parallel()
			s, _ := rig.NewSetup(t)
			s.Args = []string{"--ack", ack}
			c := rig.StartCollector(t, s)
			l := c.Lane()
			id := rig.NewID()
			message := rig.Packed("removed", id, rig.Named("before").Append(nil))
			l.Send(message, id)
			err := os.RemoveAll(s.Data)
			for err != nil { // the collector may be making a file just then
				err = os.RemoveAll(s.Data)
			}
			again := c.Lane()
			again.Write(message)
			l.Write(rig.Packed("removed", rig.NewID(), rig.Named("after").Append(nil)))
			c.Says("level=ERROR", "journal broken", "removed")
			for _, l := range []*rig.Lane{l, again} {
				l.Deadline(300 * time.Millisecond) // an ack would have been sent before the collector said so
				if id, err := rig.ReadAck(l.Acks); err == nil {
					t.Errorf("ack %q after the data directory was removed", id)
				}
			}
			c.Kill()
		})
	}
}
