// SPDX-License-Identifier: Apache-2.0

//go:build unix

package files

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
)

// Process ids that no kernel gives.
const (
	dead1 = 2000000001
	dead2 = 2000000002
	dead3 = 2000000003
)

// called returns the name of a test's file: D1 and so on are ids of ended processes, ME is one that
// lives, and @20 is the stamp of 20 minutes ago.
func called(name string, now time.Time) string {
	name = strings.NewReplacer("D1", strconv.Itoa(dead1), "D2", strconv.Itoa(dead2), "D3", strconv.Itoa(dead3), "ME",
		strconv.Itoa(os.Getpid())).Replace(name)
	before, after, ok := strings.Cut(name, "@")
	if !ok {
		return name
	}
	return before + "-" + now.UTC().Add(-ageOf(after)).Format(stampLayout) + after[2:]
}

// ageOf reads two digits, of minutes.
func ageOf(text string) time.Duration {
	n, err := strconv.Atoi(text[:2])
	if err != nil {
		panic(err)
	}
	return time.Duration(n) * time.Minute
}

// put makes files of ten bytes. "30 app" was last changed 30 minutes ago.
func put(t *testing.T, dir string, now time.Time, files ...string) {
	t.Helper()
	for _, f := range files {
		path := filepath.Join(dir, called(f[3:], now))
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte("123456789\n"), 0o600))
		at := now.Add(-ageOf(f))
		must(t, os.Chtimes(path, at, at))
	}
}

// has compares what lies in a folder, and in those below.
func has(t *testing.T, dir string, now time.Time, files ...string) {
	t.Helper()
	var got, want []string
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			got = append(got, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	}))
	for _, f := range files {
		want = append(want, called(f, now))
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("\ngot  %q\nwant %q", got, want)
	}
}

// keeperOf is one for a process of the id 7, and the family of a path for the tag web.
func keeperOf(t *testing.T, path string, o Options) (*keeper, *family) {
	t.Helper()
	o.self = &identity{host: "h", pid: "7"}
	options, err := o.resolved()
	must(t, err)
	p := pattern1(t, path)
	me := p.of(*o.self)
	return newKeeper(&options), p.familyOf(p.path(p.route("web", time.Now().Unix()), me), me, o.Shared)
}

// TestLookEnded: of the files of ended processes those that are too many, too old or too much are
// deleted, the oldest first, all processes together.
func TestLookEnded(t *testing.T) {
	now := time.Now()
	ago := func(minutes int) time.Time { return now.Add(-time.Duration(minutes) * time.Minute) }
	written := []string{"90 app.7.jsonl", "90 app.ME.jsonl"}
	ended := []string{
		"10 app.7@10.jsonl", "20 app.D1.jsonl", "30 app.D1@30.jsonl", "40 app.D2.jsonl",
		"50 app.D2@50.jsonl.gz",
	}
	usedAgain := 3
	if _, known := processBegan(os.Getpid()); !known {
		usedAgain = 1
	}
	for _, tt := range []struct {
		name    string
		rule    Rotation
		awaited []Process
		kept    int // of those above
	}{
		{"nothing is said", Rotation{}, nil, 5},
		{"number", Rotation{Keep: 2}, nil, 2},
		{"age", Rotation{MaxAge: 35 * time.Minute}, nil, 3},
		{"size, with what is written", Rotation{MaxTotal: 60}, nil, 4},
		{"size, with what is written alone", Rotation{MaxTotal: 19}, nil, 0},
		{"all three", Rotation{Keep: 4, MaxAge: 45 * time.Minute, MaxTotal: 55}, nil, 3},
		{"both are awaited", Rotation{Keep: 1}, []Process{{PID: dead1, Made: now}, {PID: dead2, Made: now}}, 5},
		{
			"another is awaited, and may have lines in what is younger",
			Rotation{Keep: 1},
			[]Process{{PID: dead3, Made: ago(35)}},
			3,
		},
		{
			"the same, and its id is used again",
			Rotation{Keep: 1},
			[]Process{{PID: os.Getpid(), Made: ago(35), Dead: true}},
			3,
		},
		{"another is awaited, whose lines are elsewhere", Rotation{Keep: 1}, []Process{{PID: dead3, Dead: true}}, 1},
		{"another lives", Rotation{Keep: 1}, []Process{{PID: os.Getpid(), Made: time.Now()}}, 1},
		{
			"it had the id that a process has now which began later",
			Rotation{Keep: 1},
			[]Process{{PID: os.Getpid(), Made: ago(35)}},
			usedAgain,
		},
		{
			"it had the id of this process",
			Rotation{MaxAge: time.Minute},
			[]Process{{PID: 7, Made: ago(35), Dead: true}},
			3,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, now, slices.Concat(written, ended)...)
			k, m := keeperOf(t, filepath.Join(dir, "app.{pid}.jsonl"),
				Options{Rotation: tt.rule, Awaited: func() ([]Process, error) { return tt.awaited, nil }})
			for range 2 {
				if again, err := k.look(m); !again || err != nil {
					t.Errorf("%v, %v", again, err)
				}
				var want []string
				for _, f := range slices.Concat(written, ended[:tt.kept]) {
					want = append(want, f[3:])
				}
				has(t, dir, now, want...)
			}
		})
	}
}

// TestLookUnknown: where it is not known which processes are awaited, nothing of others is touched.
func TestLookUnknown(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	put(t, dir, now, "20 app.D1.jsonl", "30 app.D1@30.jsonl", "40 app.7@40.jsonl")
	broken := errors.New("broken")
	k, m := keeperOf(t, filepath.Join(dir, "app.{pid}.jsonl"), Options{
		Rotation: Rotation{MaxAge: time.Minute, Compress: "gzip"},
		Awaited:  func() ([]Process, error) { return nil, broken },
	})
	if again, err := k.look(m); !again || !errors.Is(err, broken) {
		t.Errorf("%v, %v", again, err)
	}
	has(t, dir, now, "app.D1.jsonl", "app.D1@30.jsonl")
}

// TestLookCompress: the last file of an ended process gets the name of a rotated one, so that who
// gets its id begins a new one.
func TestLookCompress(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	put(t, dir, now, "20 app.D1.jsonl", "30 app.D1@30.jsonl", "40 app.D2.jsonl", "40 app.D2@40.jsonl.gz",
		"50 app.D3@50.jsonl.gz.tmp", "60 app.ME.jsonl")
	k, m := keeperOf(t, filepath.Join(dir, "app.{pid}.jsonl"), Options{Rotation: Rotation{Compress: "gzip"}})
	for range 2 {
		if _, err := k.look(m); err != nil {
			t.Error(err)
		}
		all := names(t, dir)
		next := called("app.D2@40.jsonl.gz", now.Add(time.Millisecond)) // its stamp was taken
		has(t, dir, now, "app.D1@20.jsonl.gz", "app.D1@30.jsonl.gz", "app.D2@40.jsonl.gz", next, "app.ME.jsonl")
		if got := string(unpack(t, read(t, filepath.Join(dir, next)))); got != "123456789\n" {
			t.Errorf("%q: %q", all, got)
		}
	}
}

// TestLookOthers: nothing is touched that is not a regular file of a name that the path makes.
func TestLookOthers(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	others := []string{
		"90 app-D1.jsonl.bak", "90 app-2147483648.jsonl", "90 app-0D1.jsonl", "90 app-D1.jsonl.gz",
		"90 app.D1.jsonl", "90 app-x@90.jsonl",
	}
	put(t, dir, now, others...)
	must(t, os.Mkdir(filepath.Join(dir, called("app-D1.jsonl", now)), 0o700))
	must(t, syscall.Mkfifo(filepath.Join(dir, called("app-D2.jsonl", now)), 0o600))
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, nil, 0o600))
	must(t, os.Symlink(secret, filepath.Join(dir, called("app-D3.jsonl", now))))
	must(t, os.Symlink(secret, filepath.Join(dir, called("app-D3@90.jsonl", now))))
	before := names(t, dir)
	k, m := keeperOf(t, filepath.Join(dir, "app-{pid}.jsonl"),
		Options{Rotation: Rotation{Keep: 1, MaxAge: time.Minute, MaxTotal: 1, Compress: "gzip"}})
	if _, err := k.look(m); err != nil {
		t.Error(err)
	}
	if got := names(t, dir); !slices.Equal(got, before) {
		t.Errorf("got %q, want %q", got, before)
	}
	if _, err := os.Stat(secret); err != nil {
		t.Error(err)
	}
}

// TestLookPast: files of days and hours past go, and the folders in which nothing else is; what the
// Set knows of stays.
func TestLookPast(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	files := []string{
		"90 2020-01-01/web.05.jsonl", "80 2020-01-01/web.06.jsonl", "90 2020-01-02/web.05@90.jsonl.gz",
		"90 2020-01-03/web.05.jsonl",
		"90 2020-01-03/api.05.jsonl", "90 2020-01-04/web.05.jsonl", "90 other/web.other.jsonl",
	}
	put(t, dir, now, files...)
	present := now.UTC().Format("2006-01-02/web.15.jsonl")
	put(t, dir, now, "90 "+present)
	path := filepath.Join(dir, "{date}", "{tag}.{hour}.jsonl")
	k, m := keeperOf(t, path, Options{Shared: SharedLock, Rotation: Rotation{MaxAge: 85 * time.Minute}})
	if _, err := k.look(m); err != nil || m.varies {
		t.Errorf("%v, %v", m, err)
	}
	k, m = keeperOf(t, path, Options{Rotation: Rotation{MaxAge: 85 * time.Minute}})
	k.hold(filepath.Join(dir, "2020-01-04/web.05.jsonl"))
	if _, err := k.look(m); err != nil {
		t.Error(err)
	}
	want := []string{
		"2020-01-01/web.06.jsonl", "2020-01-03/api.05.jsonl", "2020-01-04/web.05.jsonl",
		"other/web.other.jsonl",
	}
	if time.Now().UTC().Hour() == now.UTC().Hour() { // else it is past
		want = append(want, present)
		has(t, dir, now, want...)
	}
	if got := names(t, dir); slices.Contains(got, "2020-01-02") || !slices.Contains(got, "2020-01-03") {
		t.Errorf("%q", got)
	}
}

// TestHeldUntilCommitted: a file of a day past is the keeper's when no state names it any more, and
// not before that is committed.
func TestHeldUntilCommitted(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.1970-01-01.jsonl")
	var state []byte
	o := &Options{
		Idle: time.Nanosecond, Rotation: Rotation{MaxAge: time.Nanosecond},
		Record: func(b []byte) error { state = b; return nil },
	}
	s := openSet(t, filepath.Join(dir, "app.{date}.jsonl"), nil, o)
	is := func(when string, held bool) {
		t.Helper()
		if s.rotator.keeper.holds(path) != held {
			t.Errorf("%s it is held: %v", when, !held)
		}
	}
	add(t, s, "", "1\n")
	must(t, s.Write())
	is("written", true)
	must(t, s.Write()) // which closes it
	if s.Open() > 0 {
		t.Error("it is open")
	}
	is("closed", true)
	o.Record = func([]byte) error { return nil }
	successor := openSet(t, filepath.Join(dir, "app.{date}.jsonl"), state, o) // of one that was killed here
	if !successor.rotator.keeper.holds(path) {
		t.Error("the successor does not hold it")
	}
	must(t, successor.Close())
	_, err := s.Sync()
	must(t, err)
	is("settled", true)
	must(t, s.Write())
	is("committed", false)
	must(t, s.Close())
	if got := names(t, dir); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// TestLookTogether: many processes that collect at the same time keep what one would keep, and none
// has an error.
func TestLookTogether(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	var all, want []string
	for i := range 60 {
		f := fmt.Sprintf("%02d app.%d.jsonl", i+10, dead1+i)
		all = append(all, f)
		if i < 10 {
			want = append(want, fmt.Sprintf("app.%d@%02d.jsonl.gz", dead1+i, i+10))
		}
	}
	put(t, dir, now, all...)
	var wg sync.WaitGroup
	for range 20 {
		k, m := keeperOf(t, filepath.Join(dir, "app.{pid}.jsonl"),
			Options{Rotation: Rotation{Keep: 10, Compress: "gzip"}})
		wg.Go(func() {
			for range 5 {
				if _, err := k.look(m); err != nil && !errors.Is(err, errBusy) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	k, m := keeperOf(t, filepath.Join(dir, "app.{pid}.jsonl"), Options{Rotation: Rotation{Keep: 10, Compress: "gzip"}})
	if _, err := k.look(m); err != nil {
		t.Error(err)
	}
	has(t, dir, now, want...)
}

// TestLookInherited: a file is left alone while a child has it that got it from its writer, though
// the writer has ended.
func TestLookInherited(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	path := filepath.Join(dir, called("app.D1.jsonl", now))
	s := openSet(t, filepath.Join(dir, "app.{pid}.jsonl"), nil, &Options{self: &identity{pid: strconv.Itoa(dead1)}})
	add(t, s, "", "1\n")
	must(t, s.Write())
	_, err := s.Sync()
	must(t, err)
	child := exec.Command(os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), childHolds+"=true")
	child.ExtraFiles = []*os.File{s.handles.newest.handle}
	in, err := child.StdinPipe()
	must(t, err)
	must(t, child.Start())
	must(t, s.Close())
	k, m := keeperOf(t, filepath.Join(dir, "app.{pid}.jsonl"),
		Options{Rotation: Rotation{MaxAge: time.Nanosecond, Compress: "gzip"}})
	if again, err := k.look(m); !again || !errors.Is(err, errBusy) {
		t.Errorf("%v, %v", again, err)
	}
	if got := string(read(t, path)); got != "1\n" {
		t.Errorf("%q", got)
	}
	must(t, in.Close()) // it ends
	must(t, child.Wait())
	if _, err := k.look(m); err != nil {
		t.Error(err)
	}
	has(t, dir, now)
}

// TestReusedID: a process that gets the id of one that has ended goes on in its file, rotates it,
// and keeps it from being collected; another finds it again when it has ended.
func TestReusedID(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	put(t, dir, now, "90 app.D1.jsonl", "90 app.D1@90.jsonl")
	path := filepath.Join(dir, "app.{pid}.jsonl")
	s := openSet(t, path, nil, &Options{
		self:     &identity{pid: strconv.Itoa(dead1)},
		Rotation: Rotation{Size: 20, Keep: 1},
	})
	add(t, s, "", "1234567\n")
	settle(t, s)
	if got := string(read(t, filepath.Join(dir, called("app.D1.jsonl", now)))); got != "123456789\n1234567\n" {
		t.Errorf("%q", got)
	}
	k, m := keeperOf(t, path, Options{
		Rotation: Rotation{MaxTotal: 1},
		Awaited:  func() ([]Process, error) { return []Process{{PID: dead1, Made: now}}, nil },
	})
	_, err := k.look(m)
	must(t, err)
	k, m = keeperOf(t, path, Options{Rotation: Rotation{MaxTotal: 1}}) // the lock alone
	if _, err := k.look(m); !errors.Is(err, errBusy) {
		t.Error(err)
	}
	has(t, dir, now, "app.D1.jsonl") // what was rotated before goes when nobody awaits it
	add(t, s, "", "new\n")
	settle(t, s)
	must(t, s.Close())
	if got := names(t, dir); len(got) != 2 || string(read(t, filepath.Join(dir, got[1]))) != "new\n" {
		t.Errorf("%q", got)
	}
	_, err = k.look(m)
	must(t, err)
	has(t, dir, now)
}

// TestOpenWhileCollected: a file that a writer has open is at its path, however often others delete
// it in between.
func TestOpenWhileCollected(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.{pid}.jsonl")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		k, m := keeperOf(t, path, Options{Rotation: Rotation{MaxTotal: 1}})
		wg.Go(func() {
			for !isClosed(stop) {
				if _, err := k.look(m); err != nil && !errors.Is(err, errBusy) {
					t.Error(err)
				}
			}
		})
	}
	gone := 0
	for i := range needs.Rounds(t, "SPILLWAY_COLLECTED", 300, 3000) {
		s, err := Open(path, nil, &Options{self: &identity{pid: strconv.Itoa(dead1)}})
		must(t, err)
		line := fmt.Sprintf("line %d\n", i)
		add(t, s, "", line)
		must(t, s.Write())
		got := string(read(t, filepath.Join(dir, fmt.Sprint("app.", dead1, ".jsonl"))))
		if !strings.HasSuffix(got, line) {
			t.Errorf("%q, and it wrote %q", got, line)
		}
		if got == line {
			gone++
		}
		must(t, s.Close())
	}
	close(stop)
	wg.Wait()
	t.Logf("it began anew %d times", gone)
}
