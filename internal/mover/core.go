// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"fmt"

	"github.com/spillwaylog/spillway/internal/output"
)

// A core is what all parts of a Mover share.
type core struct {
	cfg Config
	life
	pressure
	mail  mailbox
	disk  disk
	rings rings
	count accounts

	resumer  output.Resumer  // the destination, if it has states
	byOrigin output.ByOrigin // the same, if each process has states of its own
}

func newCore(cfg *Config) (*core, error) {
	g := &core{cfg: *cfg, life: newLife(), mail: mailbox{wakeup: make(chan struct{}, 1)}}
	g.rings.cfg, g.rings.wake = &g.cfg, g.mail.wake
	g.count.rings, g.count.wake = &g.rings, g.mail.wake
	g.resumer, _ = cfg.Destination.(output.Resumer)
	g.byOrigin, _ = cfg.Destination.(output.ByOrigin)
	return g, g.rings.open()
}

func (c *core) report(err error) { c.cfg.report(err) }

// overwritten counts records of a ring that were overwritten, or cannot be read.
func (c *core) overwritten(s *feed, n uint64) {
	c.count.miss(Lost, n)
	where := s.Ring.Path()
	if where == "" {
		where = "in plain memory"
	}
	c.report(fmt.Errorf("%d events of the ring %s were overwritten there, or cannot be read: they are lost", n, where))
}
