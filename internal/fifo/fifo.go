// SPDX-License-Identifier: Apache-2.0

// Package fifo is a queue in memory: what was pushed first is popped first.
package fifo

// A Queue belongs to one goroutine. The zero value is empty. Memory of what was popped is used
// again when it is half of all.
type Queue[T any] struct {
	all  []T
	head int
}

// Len is how many there are.
func (q *Queue[T]) Len() int { return len(q.all) - q.head }

// Front is the first one. There must be one.
func (q *Queue[T]) Front() T { return q.all[q.head] }

// At is the i-th one from the front, to be changed in place until the next Push or Pop.
func (q *Queue[T]) At(i int) *T { return &q.all[q.head+i] }

// Push puts v behind all others.
func (q *Queue[T]) Push(v T) { q.all = append(q.all, v) }

// Pop takes the first one away. There must be one.
func (q *Queue[T]) Pop() T {
	var none T
	v := q.all[q.head]
	q.all[q.head] = none
	q.head++
	switch {
	case q.head == len(q.all):
		q.all, q.head = q.all[:0], 0
	case q.head >= 64 && q.head*2 >= len(q.all):
		n := copy(q.all, q.all[q.head:])
		clear(q.all[n:])
		q.all, q.head = q.all[:n], 0
	}
	return v
}
