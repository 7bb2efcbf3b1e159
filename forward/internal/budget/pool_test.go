// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Every size has a class, whose buffers hold it and are not much larger; the classes are in order.
func TestClasses(t *testing.T) {
	const largest = 1<<30 + 256<<10 // of a message, and a read behind it
	last, lastSize := -1, int64(0)
	for n := int64(1); n <= largest; n += 1 + n/97 {
		class, size := classOf(n)
		if size < n || n > Base && size > n+n/fineSteps+1 || n > Parked && n <= Base && size >= 2*n {
			t.Fatalf("%d bytes: a buffer of %d", n, size)
		}
		if class < last || class >= poolClasses || (class == last) != (size == lastSize) {
			t.Fatalf("%d bytes: class %d of %d, size %d; before: class %d, size %d", n, class, poolClasses, size, last,
				lastSize)
		}
		if again, same := classOf(size); again != class || same != size {
			t.Fatalf("%d bytes: class %d and size %d, of that class %d and size %d", n, class, size, again, same)
		}
		last, lastSize = class, size
	}
	for _, n := range []int64{Parked, Base, 8 << 20, 64 << 20} {
		if SizeOf(n) != int(n) {
			t.Errorf("%d bytes: a buffer of %d", n, SizeOf(n))
		}
	}
}

// What a pool keeps and what is in use stay within its limit; a buffer of another size makes room;
// what nobody wants goes.
func TestPoolKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var used atomic.Int64
		p := &pool{limit: 8 << 20, used: &used}
		defer p.close()
		take := func(size int) *Buffer {
			used.Add(int64(size))
			return p.take(size, 1)
		}
		put := func(b *Buffer) {
			p.put(b, 1)
			used.Add(-b.Size())
		}
		within := func(want int64) {
			t.Helper()
			if idle := p.idle.Load(); idle != want {
				t.Errorf("%d bytes kept, want %d", idle, want)
			}
		}
		a, b, c := take(4<<20), take(4<<20), take(4<<20) // somebody overdraws
		put(a)
		within(0)
		put(b)
		put(c)
		within(8 << 20)
		if d := take(4 << 20); d != c {
			t.Error("what came back last was not taken")
		} else {
			put(d)
		}
		e := take(1 << 20)
		within(4 << 20)
		put(e)
		small := take(Base)
		put(small)
		within(5 << 20)
		if p.take(Base, 1) != small {
			t.Error("a small one was not kept")
		}
		<-time.After(idleFor + idleFor/2)
		if e := take(1 << 20); e == nil {
			t.Error("nothing was taken")
		} else {
			put(e) // wanted just now
		}
		<-time.After(idleFor)
		within(1 << 20)
		<-time.After(2 * idleFor)
		within(0)
		synctest.Wait()
		if p.ticking.Load() {
			t.Error("it still looks")
		}
	})
}

// Small buffers have a cap too, for each size.
func TestPoolKeepsFewSmall(t *testing.T) {
	var used atomic.Int64
	p := &pool{limit: 64 << 20, used: &used}
	defer p.close()
	var all []*Buffer
	for conn := range uint64(1000) {
		all = append(all, p.take(Base, conn))
	}
	for conn, b := range all {
		p.put(b, uint64(conn))
	}
	kept := 0
	for i := range p.small {
		for _, list := range p.small[i].free {
			kept += len(list)
		}
	}
	if kept*Base > 16<<20 || kept < poolShards {
		t.Errorf("%d kept", kept)
	}
}

func BenchmarkPool(b *testing.B) {
	var used atomic.Int64
	p := &pool{limit: 1 << 30, used: &used}
	defer p.close()
	var shard atomic.Uint64
	for _, size := range []int{Base, 8 << 20} {
		b.Run(map[bool]string{true: "small", false: "large"}[size == Base], func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				me := shard.Add(1)
				for pb.Next() {
					p.put(p.take(size, me), me)
				}
			})
		})
	}
}
