// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"strings"
	"sync"
	"testing"
)

// TestStatsWhileEventsPass: a picture taken at any moment shows at most as much
// stored as came in, and at most as much out as was stored.
func TestStatsWhileEventsPass(t *testing.T) {
	r := run(t, &Config{
		Dir: t.TempDir(), Outputs: Ends("discard:"), Ack: AckDelivered,
		Inputs: Ends("forward://127.0.0.1:0", "forward://127.0.0.1:0"),
	})
	var senders sync.WaitGroup
	for i := range 4 {
		c := r.client(t)
		if i%2 > 0 {
			c.Address = r.Addrs()[1].String()
		}
		senders.Go(func() {
			for n := range 50 {
				send(t, c, numbered("t", n*10, 10))
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		senders.Wait()
		close(ended)
	}()
	for passing := true; passing; {
		select {
		case <-ended:
			passing = false
		default:
		}
		s := r.Stats()
		if s.In < s.Stored+s.Repeated+s.Skipped+s.Invalid+s.Refused {
			t.Fatalf("in %d, stored %d", s.In, s.Stored)
		}
		if o := s.Outputs[0]; o.Out > s.Stored {
			t.Fatalf("out %d, stored %d", o.Out, s.Stored)
		}
	}
	s := r.Stats()
	wantLaws(t, s)
	if s.Stored != 2000 || s.Inputs[0].Stored != 1000 || s.Inputs[1].Stored != 1000 || s.Outputs[0].Out != 2000 {
		t.Errorf("stored %d, of these %d and %d; out %d", s.Stored, s.Inputs[0].Stored, s.Inputs[1].Stored,
			s.Outputs[0].Out)
	}
}

// TestStatsAtTheEnd: a caller that asks while the collector ends gets a whole picture, and after
// that the last one.
func TestStatsAtTheEnd(t *testing.T) {
	for range 5 {
		r := run(t, &Config{Dir: t.TempDir(), Outputs: Ends("discard:")})
		send(t, r.client(t), numbered("t", 0, 10))
		stopped := make(chan error, 1)
		go func() { stopped <- r.stop() }()
		for ended := false; !ended; {
			select {
			case err := <-stopped:
				if err != nil {
					t.Fatal(err)
				}
				ended = true
			default:
			}
			if s := r.Stats(); s.Stored != 10 || len(s.Outputs) != 1 {
				t.Fatalf("%+v", s)
			}
		}
		wantLaws(t, r.Stats())
	}
}

// TestStatsCheck: a law that does not hold is named.
func TestStatsCheck(t *testing.T) {
	s := Stats{
		Counts: Counts{In: 3, Stored: 3}, Inputs: []InputStats{{Name: "in:"}},
		Outputs: []OutputStats{{Name: "out:", Out: 1, Behind: 1, Dropped: map[string]int64{unreadable: 1}}},
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	s.Outputs[0].Behind = 0
	if err := s.Check(); err == nil || !strings.HasPrefix(err.Error(), "out:") {
		t.Errorf("an event is missing, and the check says %v", err)
	}
}
