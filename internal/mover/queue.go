// SPDX-License-Identifier: Apache-2.0

package mover

// A queue is first in, first out. The zero value is empty.
type queue[T any] struct {
	all  []T
	head int
}

func (q *queue[T]) len() int    { return len(q.all) - q.head }
func (q *queue[T]) front() T    { return q.all[q.head] }
func (q *queue[T]) at(i int) *T { return &q.all[q.head+i] }
func (q *queue[T]) push(v T)    { q.all = append(q.all, v) }

// pop takes the first one away. What was popped is given back when it is half of all.
func (q *queue[T]) pop() {
	var zero T
	q.all[q.head] = zero
	q.head++
	switch {
	case q.head == len(q.all):
		q.all, q.head = q.all[:0], 0
	case q.head >= 64 && q.head*2 >= len(q.all):
		n := copy(q.all, q.all[q.head:])
		clear(q.all[n:])
		q.all, q.head = q.all[:n], 0
	}
}
