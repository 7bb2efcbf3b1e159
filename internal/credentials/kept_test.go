// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
)

// A reportLog remembers what it was told.
type reportLog struct{ warnings, renewed []string }

func (l *reportLog) reports() *Reports {
	return &Reports{
		Warn:    func(err error) { l.warnings = append(l.warnings, err.Error()) },
		Renewed: func(files []string) { l.renewed = append(l.renewed, files...) },
	}
}

// A word is a value that is a file's text, which must not begin with "bad".
func word(path string) func(*files) (string, error) {
	return func(f *files) (string, error) {
		data, err := f.read(file{"key", path}, 100, true)
		if err == nil && strings.HasPrefix(string(data), "bad") {
			err = errors.New("it is bad")
		}
		return string(data), err
	}
}

func wantValue(t *testing.T, k *kept[string], want string) {
	t.Helper()
	if got := *k.get(); got != want {
		t.Errorf("in force is %q, want %q", got, want)
	}
}

func (l *reportLog) want(t *testing.T, warnings, renewed int) {
	t.Helper()
	if len(l.warnings) != warnings || len(l.renewed) != renewed {
		t.Errorf("told of %d warnings and %d renewals, want %d and %d: %q %q", len(l.warnings), len(l.renewed),
			warnings, renewed, l.warnings, l.renewed)
	}
}

// next lets the time pass until files are looked at again.
func next() { <-time.After(lookEvery) }

// In a bubble it is the year 2000: files that are written now come from the future.
func TestKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "f")
		save(t, path, "one")
		var told reportLog
		k, err := keep(word(path), told.reports())
		if err != nil {
			t.Fatal(err)
		}
		save(t, path, "two")
		wantValue(t, k, "one") // not looked at yet
		next()
		wantValue(t, k, "two")
		told.want(t, 0, 1)
		for _, broken := range []func(){
			func() { save(t, path, "bad") },
			func() { save(t, path, "bad again") },
			func() { os.Remove(path) },
		} {
			told = reportLog{}
			broken()
			for range 3 {
				next()
				wantValue(t, k, "two")
			}
			told.want(t, 1, 0) // once a change
		}
		told = reportLog{}
		save(t, path, "two")
		next()
		wantValue(t, k, "two")
		told.want(t, 0, 1) // it was missed
		save(t, path, "two")
		next()
		wantValue(t, k, "two")
		told.want(t, 0, 1) // written again with the same contents
	})
}

// TestRenewed: of two files the one that was broken is named, and not the one that was not read
// meanwhile.
func TestRenewed(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	save(t, a, "one")
	save(t, b, "one")
	var told reportLog
	k, err := keep(func(f *files) (string, error) {
		first, err := word(a)(f)
		if err != nil {
			return "", err
		}
		second, err := word(b)(f)
		return first + second, err
	}, told.reports())
	if err != nil {
		t.Fatal(err)
	}
	save(t, a, "bad")
	if err := k.reload(); err == nil {
		t.Error("no error")
	}
	save(t, a, "one")
	if err := k.reload(); err != nil || !slices.Equal(told.renewed, []string{a}) {
		t.Errorf("%q, %v", told.renewed, err)
	}
}

func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "f")
		save(t, path, "one")
		var told reportLog
		k, err := keep(word(path), told.reports())
		if err != nil {
			t.Fatal(err)
		}
		save(t, path, "two")
		if err := k.reload(); err != nil {
			t.Fatal(err)
		}
		wantValue(t, k, "two")
		told.want(t, 0, 1)
		save(t, path, "bad")
		if err := k.reload(); err == nil {
			t.Error("no error")
		}
		next()
		wantValue(t, k, "two")
		told.want(t, 0, 1) // the caller was told
		save(t, path, "three")
		next()
		wantValue(t, k, "three")
	})
}

// TestYoung: a file that is broken and has just been written may be half of what is being written.
func TestYoung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "f")
		write := func(text string) {
			save(t, path, text)
			if err := os.Chtimes(path, time.Time{}, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		write("one")
		var told reportLog
		k, err := keep(word(path), told.reports())
		if err != nil {
			t.Fatal(err)
		}
		next()
		write("bad")
		wantValue(t, k, "one")
		next()
		wantValue(t, k, "one")
		told.want(t, 0, 0)
		next()
		wantValue(t, k, "one")
		told.want(t, 1, 0)
		next()
		wantValue(t, k, "one")
		told.want(t, 1, 0)
		write("bad2")
		next()
		wantValue(t, k, "one")
		write("two")
		next()
		wantValue(t, k, "two")
		told.want(t, 1, 1)
	})
}

// TestStat: what stat cannot see is seen while the file is young; what it sees is enough
// afterwards.
func TestStat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "f")
		write := func(text string, at time.Time) {
			save(t, path, text)
			if err := os.Chtimes(path, time.Time{}, at); err != nil {
				t.Fatal(err)
			}
		}
		born := time.Now()
		write("one", born)
		k, err := keep(word(path), (&reportLog{}).reports())
		if err != nil {
			t.Fatal(err)
		}
		write("two", born) // within the clock tick of the file system
		next()
		wantValue(t, k, "two")
		next()
		wantValue(t, k, "two")
		next()
		wantValue(t, k, "two")
		write("six", born) // nobody writes a file with an old time and the same size: it is not looked into
		next()
		wantValue(t, k, "two")
		write("six", time.Now())
		next()
		wantValue(t, k, "six")
	})
}

// TestLinks: mounted secrets are exchanged by exchanging a link to their folder.
func TestLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		needs.Skip(t, "links need a privilege there")
	}
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		link := filepath.Join(dir, "now")
		for i, text := range []string{"one", "two"} {
			folder := filepath.Join(dir, fmt.Sprint(i))
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			save(t, filepath.Join(folder, "f"), text)
		}
		if err := os.Symlink("0", link); err != nil {
			t.Fatal(err)
		}
		k, err := keep(word(filepath.Join(link, "f")), &Reports{})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("1", link+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link+".new", link); err != nil {
			t.Fatal(err)
		}
		next()
		wantValue(t, k, "two")
	})
}

// TestNobodyWaits: while one connection's look at the disk hangs, others go on, and so does that
// one soon.
func TestNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "f")
		save(t, path, "one")
		hang := make(chan struct{})
		close(hang)
		load := word(path)
		k, err := keep(func(f *files) (string, error) {
			<-hang
			return load(f)
		}, &Reports{})
		if err != nil {
			t.Fatal(err)
		}
		hang = make(chan struct{})
		save(t, path, "two")
		next()
		first := make(chan time.Duration)
		go func() {
			began := time.Now()
			wantValue(t, k, "one")
			first <- time.Since(began)
		}()
		synctest.Wait()
		began := time.Now()
		wantValue(t, k, "one")
		if d := time.Since(began); d != 0 {
			t.Errorf("the second one waited for %v", d)
		}
		if d := <-first; d != maxLookTime {
			t.Errorf("the first one waited for %v", d)
		}
		if err := k.reload(); !errors.Is(err, errSlow) {
			t.Error(err)
		}
		close(hang)
		synctest.Wait()
		wantValue(t, k, "two")
	})
}

func TestPermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		needs.Skip(t, "files have no such bits there")
	}
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "f")
		save(t, path, "topsecret")
		var told reportLog
		k, err := keep(word(path), told.reports())
		if err != nil {
			t.Fatal(err)
		}
		told.want(t, 0, 0)
		for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o602} {
			told = reportLog{}
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := k.reload(); err != nil {
					t.Fatal(err)
				}
			}
			told.want(t, 1, 0)
			if !slices.ContainsFunc(told.warnings,
				func(s string) bool { return strings.Contains(s, fmt.Sprintf("mode %04o", mode)) }) {
				t.Error(told.warnings)
			}
		}
	})
}
