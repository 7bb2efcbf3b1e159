// SPDX-License-Identifier: Apache-2.0

package follow

// queue is flights in order: pushed at the end, popped from the front.
type queue struct {
	all  []*flight
	head int
}

func (q *queue) len() int { return len(q.all) - q.head }

func (q *queue) front() *flight { return q.all[q.head] }

func (q *queue) push(x *flight) {
	if q.head > 64 && q.head >= len(q.all)/2 {
		n := copy(q.all, q.all[q.head:])
		clear(q.all[n:])
		q.all, q.head = q.all[:n], 0
	}
	q.all = append(q.all, x)
}

func (q *queue) pop() *flight {
	x := q.all[q.head]
	q.all[q.head] = nil
	q.head++
	return x
}
