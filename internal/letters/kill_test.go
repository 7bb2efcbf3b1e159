// SPDX-License-Identifier: Apache-2.0

package letters

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
)

const killDir = "SPILLWAY_LETTERS_KILL_DIR"

// TestStoreKilled starts itself as a child that puts letters and says the number of each that Put
// returned nil for; kills it in the middle; and starts it again some letters before the last that
// was said, as an output does whose cursor was not committed. Each letter is there once.
func TestStoreKilled(t *testing.T) {
	if dir := os.Getenv(killDir); dir != "" {
		killedChild(dir)
		return
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	said := 0 // all up to here
	for range needs.Rounds(t, "SPILLWAY_KILLS", 6, 50) {
		from := max(0, said-r.IntN(100))
		cmd := exec.Command(os.Args[0], "-test.run=^TestStoreKilled$")
		cmd.Env = append(os.Environ(), killDir+"="+dir, fmt.Sprintf("FROM=%d", from))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(out)
		for stop := r.IntN(300); ; stop-- {
			if stop == 0 {
				_ = cmd.Process.Kill()
			}
			var n uint32
			if err := binary.Read(in, binary.LittleEndian, &n); err != nil {
				break // what was said before it was killed has been read
			}
			said = max(said, int(n))
		}
		_ = cmd.Wait()
		if said == 0 && !IsStore(dir) { // killed before it began
			continue
		}
		got := list(t, dir)
		if len(got) < said {
			t.Fatalf("%d letters are there, and %d were put", len(got), said)
		}
		for i, name := range got {
			if want := fmt.Sprintf("a@%d", i+1); name != want {
				t.Fatalf("letter %d is %s, want %s", i, name, want)
			}
		}
	}
	if said == 0 {
		t.Error("no letter was put")
	}
}

func killedChild(dir string) {
	var from int
	fmt.Sscan(os.Getenv("FROM"), &from)
	s, err := Open(dir, nil)
	for n := from + 1; err == nil; n += 3 {
		var three []Letter
		for i := range 3 {
			three = append(three, letter("a", uint64(n+i), 1+(n+i)%3))
		}
		err = s.Put(context.Background(), three...)
		err = errors.Join(err, binary.Write(os.Stdout, binary.LittleEndian, uint32(n+2)))
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
