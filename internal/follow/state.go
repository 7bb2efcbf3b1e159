// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"encoding/binary"
	"errors"
	"strings"
)

// What steps know goes before the output's own state, where they remember anything:
//
//	state   "SPILLSTP" [length] [steps: package step] [own]
//
// Any other state is the output's own. One of its own that begins so has an empty state of steps
// before it.
const stateMagic = "SPILLSTP"

// packState puts what steps know before an output's own state.
func packState(dst, steps, own []byte) []byte {
	if len(steps) > 0 || strings.HasPrefix(string(own), stateMagic) {
		dst = append(dst, stateMagic...)
		dst = binary.AppendUvarint(dst, uint64(len(steps)))
		dst = append(dst, steps...)
	}
	return append(dst, own...)
}

// errState says that a state is none.
var errState = errors.New("the state of the cursor is not readable: the output and the steps before it begin without one")

// unpackState is the reverse.
func unpackState(state []byte) (steps, own []byte, err error) {
	if !strings.HasPrefix(string(state), stateMagic) {
		return nil, state, nil
	}
	rest := state[len(stateMagic):]
	n, k := binary.Uvarint(rest)
	if k <= 0 || n > uint64(len(rest)-k) {
		return nil, nil, errState
	}
	rest = rest[k:]
	return rest[:n:n], rest[n:], nil
}

// pack is the state for a commit at stop.
func (c *core) pack(own []byte) []byte {
	var steps []byte
	if c.cfg.Sift.Remembers() {
		steps = c.cfg.Sift.AppendState(nil)
	}
	return packState(nil, steps, own)
}

// ownState is the output's own part of what is committed.
func (c *core) ownState() []byte {
	_, state := c.cfg.Reader.Committed()
	_, own, err := unpackState(state)
	if err != nil && !c.toldState {
		c.toldState = true
		c.cfg.Report(err)
	}
	return own
}

// recall has steps know what they knew when the cursor was where it is.
func (c *core) recall() {
	if !c.cfg.Sift.Remembers() {
		return
	}
	p, state := c.cfg.Reader.Committed()
	steps, _, _ := unpackState(state) // ownState tells of an error
	if err := c.cfg.Sift.Recall(steps, uint64(p)); err != nil && !c.toldState {
		c.toldState = true
		c.cfg.Report(err)
	}
}

// back has the reader and the steps be where the cursor stands.
func (c *core) back() error {
	c.recall()
	return c.cfg.Reader.SkipTo(c.committed)
}

// settle says that all is passed that steps have seen.
func (c *core) settle() {
	if c.cfg.Sift.Remembers() {
		record, _ := c.cfg.Sift.Learnt()
		c.cfg.Sift.Settle(record)
	}
}
