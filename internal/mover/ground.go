// SPDX-License-Identifier: Apache-2.0

package mover

// A ground is what all parts of a Mover stand on.
type ground struct {
	cfg Config
	life
	pressure
	mail  mailbox
	disk  disk
	rings rings
	count accounts
}

func newGround(cfg *Config) (*ground, error) {
	g := &ground{cfg: *cfg, life: newLife(), mail: mailbox{bell: make(chan struct{}, 1)}}
	g.rings.cfg, g.rings.wake = &g.cfg, g.mail.wake
	g.count.rings, g.count.wake = &g.rings, g.mail.wake
	return g, g.rings.open()
}

func (g *ground) report(err error) { g.cfg.report(err) }
