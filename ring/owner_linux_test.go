// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spillwaylog/spillway/internal/needs"
)

func init() {
	roles["owner"] = ownerChild
	roles["sleeper"] = func() error { _, err := io.Copy(io.Discard, os.Stdin); return err }
}

// ownerChild opens a ring, appends, says so, and waits. DESCENDANT=exec starts a process that
// outlives it; DESCENDANT=fork forks one that keeps the descriptors, as a program does that forks
// without exec.
func ownerChild() error {
	r, err := Open(&Options{Dir: os.Getenv("DIR"), Name: "own", Size: 256 << 10, Identity: []byte("who\n\"I\" am")})
	if err != nil {
		return err
	}
	var h Hint
	for n := range uint32(100) {
		if _, err := r.Append(&h, Now, payload(nil, 0, n, 50)); err != nil {
			return err
		}
	}
	descendant := 0
	switch os.Getenv("DESCENDANT") {
	case "exec":
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childRole+"=sleeper")
		cmd.Stdin = os.NewFile(3, "the test's pipe")
		if err := cmd.Start(); err != nil {
			return err
		}
		descendant = cmd.Process.Pid
	case "fork":
		pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if errno != 0 {
			return errno
		}
		if pid == 0 { // one thread, no runtime: only system calls from here on
			for {
				syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
			}
		}
		descendant = int(pid)
	}
	fmt.Println(descendant, r.Path())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return r.Leave()
}

type child struct {
	cmd        *exec.Cmd
	descendant int
	path       string
	end        func() // ends a descendant that waits on the pipe
}

func startOwner(t *testing.T, dir, descendant string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childRole+"=owner", "DIR="+dir, "DESCENDANT="+descendant)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipeOut, pipeIn, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{pipeOut}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pipeOut.Close()
	c := &child{cmd: cmd, end: func() { pipeIn.Close() }}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		in.Close()
		pipeIn.Close()
		if c.descendant != 0 && descendant == "fork" {
			_ = syscall.Kill(c.descendant, syscall.SIGKILL)
		}
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal("the child did not start: ", err)
	}
	pid, path, _ := strings.Cut(strings.TrimSpace(line), " ")
	c.descendant, _ = strconv.Atoi(pid)
	c.path = path
	return c
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_, _ = c.cmd.Process.Wait()
}

// adoptAll adopts and fails on any report.
func adoptAll(t *testing.T, dir string) []*Ring {
	t.Helper()
	rings, err := Adopt(dir, "own", nil, func(err error) { t.Error(err) })
	if err != nil {
		t.Error(err)
	}
	for _, r := range rings {
		t.Cleanup(func() { r.Leave() })
	}
	return rings
}

func countAll(t *testing.T, r *Ring) int {
	t.Helper()
	var a tally
	for {
		rec, ok, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return a.count
		}
		if err := a.take(rec); err != nil {
			t.Fatal(err)
		}
	}
}

func wantOne(t *testing.T, dir string) *Ring {
	t.Helper()
	rings := adoptAll(t, dir)
	if len(rings) != 1 {
		t.Fatalf("%d rings adopted", len(rings))
	}
	if n := countAll(t, rings[0]); n != 100 {
		t.Fatalf("%d records", n)
	}
	return rings[0]
}

func wantNone(t *testing.T, dir, why string) {
	t.Helper()
	if rings := adoptAll(t, dir); len(rings) != 0 {
		t.Fatalf("adopted a ring %s", why)
	}
}

func TestOwnerKilled(t *testing.T) {
	dir := sharedDir(t)
	c := startOwner(t, dir, "")
	wantNone(t, dir, "whose owner lives")
	c.kill()
	r := wantOne(t, dir)
	if o := r.Owner(); o.PID != c.cmd.Process.Pid || string(o.Identity) != "who\n\"I\" am" || o.Name != "own" ||
		o.Path != c.path || time.Since(o.Made) > time.Hour {
		t.Errorf("%+v", o)
	}
	if _, err := r.Append(new(Hint), Now, nil); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if _, err := r.AppendReserved(Now, nil); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	wantNone(t, dir, "that was adopted already")
	r.Rewind()
	if n := countAll(t, r); n != 100 {
		t.Errorf("%d records after Rewind", n)
	}
	// The adopter dies, too.
	if err := r.Leave(); err != nil {
		t.Fatal(err)
	}
	if err := wantOne(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	wantNone(t, dir, "that is gone")
}

func TestOwnerStopped(t *testing.T) {
	dir := sharedDir(t)
	c := startOwner(t, dir, "")
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	wantNone(t, dir, "whose owner is stopped")
	c.kill()
	wantOne(t, dir)
}

// TestDescendants: a process that the owner started does not hold its ring, one that it forked and
// that keeps its descriptors does: then the ring is held, not lost.
func TestDescendants(t *testing.T) {
	t.Run("exec", func(t *testing.T) {
		dir := sharedDir(t)
		c := startOwner(t, dir, "exec")
		c.kill()
		if err := syscall.Kill(c.descendant, 0); err != nil {
			t.Fatal("the descendant is dead: ", err)
		}
		wantOne(t, dir)
		c.end()
	})
	t.Run("fork", func(t *testing.T) {
		dir := sharedDir(t)
		c := startOwner(t, dir, "fork")
		c.kill()
		if err := syscall.Kill(c.descendant, 0); err != nil {
			t.Fatal("the descendant is dead: ", err)
		}
		wantNone(t, dir, "that a forked child holds")
		if err := syscall.Kill(c.descendant, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(4 * time.Minute)
		for len(adoptAll(t, dir)) == 0 {
			if time.Now().After(deadline) {
				t.Fatal("never adopted")
			}
		}
	})
}

// TestAdoptersAtOnce: each ring goes to one of them.
func TestAdoptersAtOnce(t *testing.T) {
	dir := sharedDir(t)
	const n = 12
	for range n {
		r := mustOpen(t, &Options{Dir: dir, Name: "own", Size: 256 << 10})
		if err := r.Leave(); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	seen := map[string]int{}
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			rings, err := Adopt(dir, "own", nil, func(err error) { t.Error(err) })
			if err != nil {
				t.Error(err)
			}
			for i, r := range rings {
				mu.Lock()
				seen[r.Path()]++
				mu.Unlock()
				if i > 0 && r.Owner().Made.Before(rings[i-1].Owner().Made) {
					t.Error("not the oldest first")
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for path, times := range seen {
		if times != 1 {
			t.Errorf("%s was adopted %d times", path, times)
		}
	}
	if len(seen) != n {
		t.Errorf("%d of %d adopted", len(seen), n)
	}
}

// forgeOwner makes the ring at path say something else of its owner.
func forgeOwner(t *testing.T, path string, change func(*Owner)) {
	t.Helper()
	name := filepath.Join(path, ownerFile)
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var o Owner
	if err := o.parse(b); err != nil {
		t.Fatal(err)
	}
	change(&o)
	if err := os.WriteFile(name, o.text(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPids: process numbers decide nothing. That of a dead owner may be a living process's now; two
// containers on one volume both have a process 1.
func TestPids(t *testing.T) {
	dir := sharedDir(t)
	c := startOwner(t, dir, "")
	c.kill()
	forgeOwner(t, c.path, func(o *Owner) { o.PID = os.Getpid() })
	var id [16]byte
	if _, err := hex.Decode(id[:8], []byte(filepath.Ext(c.path)[1:])); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, folderName("own", 1, id))
	if err := os.Rename(c.path, path); err != nil {
		t.Fatal(err)
	}
	live := startOwner(t, dir, "")
	id[0] ^= 1
	same := filepath.Join(dir, folderName("own", 1, id)) // as its container sees itself
	if err := os.Rename(live.path, same); err != nil {
		t.Fatal(err)
	}
	if r := wantOne(t, dir); r.Path() != path {
		t.Errorf("adopted %s", r.Path())
	}
}

// TestLeftWhileAChildStarts: between its fork and its exec a child has all files of its parent
// open, the locked one too. A ring that is left meanwhile is free all the same.
func TestLeftWhileAChildStarts(t *testing.T) {
	dir := t.TempDir()
	r, err := Open(&Options{Dir: dir, Name: "own", Size: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	var h Hint
	for n := range uint32(100) {
		if _, err := r.Append(&h, Now, payload(nil, 0, n, 50)); err != nil {
			t.Fatal(err)
		}
	}
	inherited, err := unix.Dup(int(r.home.lock.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(inherited)
	if err := r.Leave(); err != nil {
		t.Fatal(err)
	}
	wantOne(t, dir)
}

func TestNotAdopted(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, path string)
		report string
	}{
		{"other boot", func(t *testing.T, path string) {
			forgeOwner(t, path,
				func(o *Owner) { o.BootID = "of another start" })
		}, "before the machine was last started"},
		{
			"owner garbled", func(t *testing.T, path string) { overwrite(t, filepath.Join(path, ownerFile), 20, "X") },
			"owner file cannot be read",
		},
		{
			"owner empty", func(t *testing.T, path string) { truncate(t, filepath.Join(path, ownerFile), 0) },
			"owner file cannot be read",
		},
		{
			"other ring", func(t *testing.T, path string) { forgeOwner(t, path, func(o *Owner) { o.RingID = "00" }) },
			"do not belong together",
		},
		{
			"head garbled", func(t *testing.T, path string) { overwrite(t, filepath.Join(path, ringFile), 33, "X") },
			"head of the file",
		},
		{
			"no head", func(t *testing.T, path string) { truncate(t, filepath.Join(path, ringFile), 100) },
			"cannot be read",
		},
		{"no ring", func(t *testing.T, path string) { remove(t, filepath.Join(path, ringFile)) }, "no such file"},
		{"ring is a link", func(t *testing.T, path string) {
			other := filepath.Join(t.TempDir(), "ring")
			if err := errors.Join(os.Rename(filepath.Join(path, ringFile), other),
				os.Symlink(other, filepath.Join(path, ringFile))); err != nil {
				t.Fatal(err)
			}
		}, "symbolic links"},
		{"ring is a pipe", func(t *testing.T, path string) {
			name := filepath.Join(path, ringFile)
			if err := errors.Join(os.Remove(name), unix.Mkfifo(name, 0o600)); err != nil {
				t.Fatal(err)
			}
		}, "is no file"},
		{"no owner", func(t *testing.T, path string) { remove(t, filepath.Join(path, ownerFile)) }, "no owner file"},
		{"other name", func(t *testing.T, path string) {
			if err := os.Rename(path, filepath.Join(filepath.Dir(path),
				strings.Replace(filepath.Base(path), "own", "other", 1))); err != nil {
				t.Fatal(err)
			}
		}, ""},
		{"no folder", func(t *testing.T, path string) {
			if err := errors.Join(os.Rename(path, path+"x"), os.WriteFile(path, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}, "cannot be trusted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := sharedDir(t)
			r := mustOpen(t, &Options{Dir: dir, Name: "own", Size: 256 << 10})
			if err := r.Leave(); err != nil {
				t.Fatal(err)
			}
			tt.change(t, r.Path())
			before := listing(t, dir)
			var told []error
			rings, err := Adopt(dir, "own", nil, func(err error) { told = append(told, err) })
			if err != nil || len(rings) != 0 {
				t.Fatalf("%d rings, %v", len(rings), err)
			}
			if tt.report == "" && told != nil || tt.report != "" &&
				(len(told) != 1 || !strings.Contains(told[0].Error(), tt.report)) {
				t.Errorf("told: %v", told)
			}
			if after := listing(t, dir); after != before {
				t.Errorf("before:\n%safter:\n%s", before, after)
			}
		})
	}
	// A process that only looks does not wait for it either.
	for _, pipe := range []string{ownerFile, ringFile} {
		t.Run(pipe+" is a pipe, inspected", func(t *testing.T) {
			dir := sharedDir(t)
			r := mustOpen(t, &Options{Dir: dir, Name: "own", Size: 256 << 10})
			if err := r.Leave(); err != nil {
				t.Fatal(err)
			}
			name := filepath.Join(r.Path(), pipe)
			if err := errors.Join(os.Remove(name), unix.Mkfifo(name, 0o600)); err != nil {
				t.Fatal(err)
			}
			looked := make(chan struct{})
			go func() {
				defer close(looked)
				all, err := Inspect(dir)
				if err != nil || len(all) != 1 || all[0].Live || !errors.Is(all[0].Err, ErrCorrupt) {
					t.Errorf("%+v, %v", all, err)
				}
			}()
			select {
			case <-looked:
			case <-time.After(4 * time.Minute):
				t.Error("it waits for somebody to write into the pipe")
				if f, err := os.OpenFile(name, os.O_RDWR, 0); err == nil {
					f.Close()
				}
				<-looked
			}
		})
	}
	t.Run("not accepted", func(t *testing.T) {
		dir := sharedDir(t)
		r := mustOpen(t, &Options{Dir: dir, Name: "own", Size: 256 << 10, Identity: []byte("a")})
		if err := r.Leave(); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"b", "a"} {
			rings, err := Adopt(dir, "own", func(o Owner) bool { return string(o.Identity) == id },
				func(err error) { t.Error(err) })
			if err != nil || (len(rings) == 1) != (id == "a") {
				t.Fatalf("%s: %d rings, %v", id, len(rings), err)
			}
			for _, r := range rings {
				r.Close()
			}
		}
	})
	t.Run("nowhere", func(t *testing.T) { wantNone(t, filepath.Join(t.TempDir(), "not", "there"), "from nowhere") })
}

// listing is all names below dir, with sizes.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.Walk(dir, func(path string, fi os.FileInfo, err error) error {
		if err == nil {
			fmt.Fprintln(&b, path, fi.Mode(), fi.Size())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestFolder: whose folder is good for rings.
func TestFolder(t *testing.T) {
	open := func(dir string) error {
		r, err := Open(&Options{Dir: dir, Size: 256 << 10})
		if err == nil {
			err = r.Close()
		}
		return err
	}
	t.Run("open to others", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "rings")
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)); err != nil {
			t.Fatal(err)
		}
		if _, err := Adopt(dir, "own", nil, nil); !errors.Is(err, ErrUnsafe) {
			t.Error(err)
		}
		var told error
		r := mustOpen(t, &Options{Dir: dir, Size: 256 << 10, Report: func(err error) { told = err }})
		if err := r.Close(); err != nil || !errors.Is(told, ErrUnsafe) {
			t.Fatal(err, told)
		}
		if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o700 {
			t.Error(fi.Mode(), err)
		}
	})
	t.Run("for everybody", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "rings")
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777|os.ModeSticky)); err != nil {
			t.Fatal(err)
		}
		if err := open(dir); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "for everybody") {
			t.Error(err)
		}
		if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o777 {
			t.Error(fi.Mode(), err)
		}
	})
	t.Run("link", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "rings")
		if err := os.Symlink(t.TempDir(), dir); err != nil {
			t.Fatal(err)
		}
		if err := open(dir); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "symbolic link") {
			t.Error(err)
		}
	})
	t.Run("file", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "rings")
		if err := os.WriteFile(dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := open(dir); !errors.Is(err, ErrUnsafe) {
			t.Error(err)
		}
	})
	t.Run("stranger's", func(t *testing.T) {
		needs.Have(t, os.Geteuid() == 0, "giving a folder away needs root")
		dir := filepath.Join(t.TempDir(), "rings")
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 12345, 12345)); err != nil {
			t.Fatal(err)
		}
		if err := open(dir); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "another user") {
			t.Error(err)
		}
		if _, err := Adopt(dir, "own", nil, nil); !errors.Is(err, ErrUnsafe) {
			t.Error(err)
		}
	})
	t.Run("nowhere", func(t *testing.T) {
		if err := open(filepath.Join(t.TempDir(), "a", "b")); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
}

// TestLeftovers: what processes left that died in Open or Close is removed, unless somebody has it
// or may be just about to.
func TestLeftovers(t *testing.T) {
	dir := sharedDir(t)
	old := time.Now().Add(-time.Hour)
	made := func(name string, owner bool) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if owner {
			if err := os.WriteFile(filepath.Join(path, ownerFile), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	gone := []string{made("own.1.0123456789abcdef.tmp", true), made("other.1.0123456789abcdee.tmp", false)}
	young := made("own.2.0123456789abcdef.tmp", false)
	now := time.Now()
	if err := os.Chtimes(young, now, now); err != nil {
		t.Fatal(err)
	}
	locked := made("own.3.0123456789abcdef.tmp", true)
	f, err := os.Open(filepath.Join(locked, ownerFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := lock(f); err != nil {
		t.Fatal(err)
	}
	kept := []string{
		young, locked, made("own.4.0123456789abcdef", true), made("strange.tmp", false),
		made("own.0123456789abcdef.tmp", true),
	}
	mustOpen(t, &Options{Dir: dir, Size: 256 << 10})
	for _, path := range gone {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range kept {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
}
