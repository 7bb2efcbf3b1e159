// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// TestPowerCut cuts the power of a real file system under senders that wait for acks, with the
// journal on the same file system as the output and on another one: what was acked is in the output
// once, and each line of it is whole.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	for _, together := range []bool{true, false} {
		t.Run(map[bool]string{true: "together", false: "journal elsewhere"}[together], func(t *testing.T) {
			t.Parallel()
			d := newPowered(t)
			s, _ := rig.NewSetup(t)
			out := filepath.Join(d.dir, "out")
			rig.Must(t, os.Mkdir(out, 0o700))
			s.To = []string{"file://" + out + "/{tag}.jsonl"}
			if together {
				s.Data = filepath.Join(d.dir, "data")
			}
			nuls := 0
			s.Cut = func(c *rig.Collector) {
				freeze(c)
				d.cut()
			}
			s.Mend = func() {
				d.mend()
				nuls += countNULs(t, out)
			}
			r := rig.Random(t)
			seed := r.Uint64()
			killUnder(t, s, out, r, needs.Rounds(t, "SPILLWAY_KILLS", 4, 10),
				func(ctx context.Context, addr string, stop <-chan struct{}) [][]string {
					senders := make([]*rig.Sender, 2)
					var wg sync.WaitGroup
					for i := range senders {
						senders[i] = &rig.Sender{
							Name: fmt.Sprint("s", i), Addr: addr, Tag: fmt.Sprint("cut.", i%2),
							Rand: rand.New(rand.NewPCG(seed, uint64(i))),
						}
						wg.Go(func() {
							if err := senders[i].Run(ctx, stop); err != nil {
								t.Error(err)
							}
						})
					}
					wg.Wait()
					var sent [][]string
					for _, s := range senders {
						sent = append(sent, s.Sent)
					}
					return sent
				})
			rig.Figure(t, "%d NUL bytes stood behind what was committed after the cuts", nuls)
		})
	}
}

func countNULs(t *testing.T, dir string) (n int) {
	for _, name := range rig.LineFiles(t, dir) {
		b, err := os.ReadFile(name)
		rig.Must(t, err)
		n += bytes.Count(b, []byte{0})
	}
	return n
}

// A powered file system is an ext4 of its own whose power can be cut.
type powered struct {
	t          testing.TB
	dir, image string
}

// newPowered makes and mounts one. A process beside this one unmounts it when this one has ended,
// in whatever way.
func newPowered(t testing.TB) *powered {
	t.Helper()
	_, err := exec.LookPath("mkfs.ext4")
	needs.Have(t, os.Getuid() == 0 && err == nil,
		"a file system whose power is cut needs root and mkfs.ext4 (apt-get install e2fsprogs)")
	dir := t.TempDir()
	d := &powered{t: t, dir: filepath.Join(dir, "mount"), image: filepath.Join(dir, "image")}
	rig.Must(t, os.Mkdir(d.dir, 0o700))
	f, err := os.Create(d.image)
	rig.Must(t, err)
	rig.Must(t, f.Truncate(512<<20))
	rig.Must(t, f.Close())
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1",
		d.image).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.ext4: %v: %s", err, out)
	}
	guard := exec.Command("sh", "-c", `cat; umount --lazy "$1" 2>/dev/null; rm -f "$2"`, "guard", d.dir, d.image)
	guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what ends the tests does not end it
	in, err := guard.StdinPipe()
	rig.Must(t, err)
	rig.Must(t, guard.Start())
	t.Cleanup(func() {
		in.Close()
		if err := guard.Wait(); err != nil {
			t.Errorf("unmounting: %v", err)
		}
	})
	out, err := d.mount()
	needs.Have(t, err == nil, "mounting a file system needs the right to, and a loop device: %v: %s", err, out)
	return d
}

func (d *powered) mount() ([]byte, error) {
	return exec.Command("mount", "-t", "ext4", "-o", "loop", d.image, d.dir).CombinedOutput()
}

// freeze stops the process where it is, with what it has asked of the kernel under way. The kernel
// outlives the power cut of a file system, and may say then that it has synced what it has not;
// nobody may be told that.
func freeze(c *rig.Collector) {
	c.T.Helper()
	if err := c.Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return // it has ended
	}
	rig.Eventually(c.T, "the process is stopped", func() bool {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", c.Cmd.Process.Pid))
		for _, name := range threads {
			stat, err := os.ReadFile(name)
			if err != nil {
				continue // this one has ended
			}
			_, state, _ := bytes.Cut(stat, []byte(") "))
			if len(state) > 0 && bytes.IndexByte([]byte("RS"), state[0]) >= 0 {
				return false
			}
		}
		return true
	})
}

// cut loses all that was not synced, and fails all that comes after it.
func (d *powered) cut() {
	d.t.Helper()
	// Another program syncs a file: the kernel commits the lengths of all, of some before their
	// bytes.
	f, err := os.CreateTemp(d.dir, "")
	rig.Must(d.t, err)
	defer f.Close()
	rig.Must(d.t, f.Sync())
	const shutdown, noLogFlush = 0x8004587d, 2 // EXT4_IOC_SHUTDOWN
	rig.Must(d.t, unix.IoctlSetPointerInt(int(f.Fd()), shutdown, noLogFlush))
}

// mend mounts it again, as after a reboot.
func (d *powered) mend() {
	d.t.Helper()
	var out []byte
	rig.Eventually(d.t, "the file system is unmounted", func() (ok bool) {
		var err error
		out, err = exec.Command("umount", d.dir).CombinedOutput()
		return err == nil || bytes.Contains(out, []byte("not mounted"))
	})
	rig.Eventually(d.t, "the file system is mounted again", func() (ok bool) {
		var err error
		out, err = d.mount()
		return err == nil
	})
}
