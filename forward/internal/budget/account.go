// SPDX-License-Identifier: Apache-2.0

package budget

// What a connection does with its part of the budget. It asks before it takes a buffer, for as many
// bytes as that has.

// Begin makes a blank holder part of a budget, and of what its peer holds. shard is a number that
// few other holders have.
func (h *Holder) Begin(b *Budget, peer *Peer, shard uint64) { h.b, h.peer, h.shard = b, peer, shard }

// Peer is what the connections of its peer hold together.
func (h *Holder) Peer() *Peer { return h.peer }

// Try takes n bytes, if it need not wait for them.
func (h *Holder) Try(n int64) bool { return h.b.try(h, n) }

// Acquire takes n bytes, and waits for them. false: the server is closing, or what it waited for is
// refused.
func (h *Holder) Acquire(n int64) bool { return h.b.acquire(h, n) }

// Force takes n bytes, whatever there is.
func (h *Holder) Force(n int64) { h.b.force(h, n) }

// ForceRoom is Force for bytes that are not the pool's, which makes room for them.
func (h *Holder) ForceRoom(n int64) {
	h.b.force(h, n)
	h.b.pool.mu.Lock()
	h.b.pool.makeRoomLocked()
	h.b.pool.mu.Unlock()
}

// Release gives n bytes back that are no buffer.
func (h *Holder) Release(n int64) { h.b.release(h, n) }

// Refuse ends its wait, if it waits, with nothing.
func (h *Holder) Refuse() { h.b.refuse(h) }

// Take returns a buffer of a size that SizeOf knows. Its bytes were taken before.
func (h *Holder) Take(size int) *Buffer { return h.b.pool.take(size, h.shard) }

// Drop gives a buffer up that the connection owns. What others share of it they still hold.
func (h *Holder) Drop(b *Buffer) {
	h.lent.Add(b.Size())
	h.GiveBack(b)
}

// GiveBack ends one hold on a buffer that its owner has dropped, or will.
func (h *Holder) GiveBack(b *Buffer) {
	if b.owned.Add(-1) > 0 {
		return
	}
	n := b.Size()
	h.lent.Add(-n)
	h.b.pool.put(b, h.shard) // first: a connection that waits for its room finds it
	h.b.release(h, n)
}

// Own is what the connection itself holds.
func (h *Holder) Own() int64 { return h.held.Load() - h.lent.Load() }

// Lent is what only others hold of it.
func (h *Holder) Lent() int64 { return h.lent.Load() }

// Over tells whether it overdraws. Called by the connection.
func (h *Holder) Over() bool { return h.over }

// Overdraws tells whether it overdraws. It may be called by any goroutine.
func (h *Holder) Overdraws() bool { return h.b.over.Load() == h }

// Big tells whether its message in progress is not small.
func (h *Holder) Big() bool { return h.big.Load() }

// SetBig says so.
func (h *Holder) SetBig(big bool) { h.big.Store(big) }

// Waits tells whether it waits for memory. It may be called by any goroutine.
func (h *Holder) Waits() bool {
	h.b.mu.Lock()
	defer h.b.mu.Unlock()
	return h.grant != nil
}

// Settle ends an overdraft, once next to nothing is held.
func (h *Holder) Settle() {
	if h.over && (h.held.Load() <= Parked || h.b.used.Load() <= h.b.limit) {
		h.b.settle(h)
	}
}

// Forgive gives back what is still taken, by what was interrupted between asking and taking, at the
// end of the connection.
func (h *Holder) Forgive() {
	h.b.release(h, h.Own())
	h.b.settle(h)
}
