// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// locked is what a merge has written so far.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

// take returns what has come since the last call.
func (l *locked) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.b.Reset()
	return l.b.String()
}

// at is a line of JSON.
func at(sec int, text string) string { return fmt.Sprintf(`{"time":%d,"text":%q}`+"\n", sec, text) }

// following is a merge that goes on, in a bubble of its own time.
type following struct {
	*testing.T
	dir  string
	out  locked
	told []string
	res  Result
}

// follow runs a merge of app* in a folder, and does steps meanwhile.
func follow(t *testing.T, o Options, steps func(f *following)) *following {
	t.Helper()
	f := &following{T: t, dir: t.TempDir()}
	f.put("app.1", at(1, "first"))
	f.put("app.2", at(3, "third")+at(4, "4")[:9])
	f.put("app.3.gz", string(packed(t, 1, []byte(at(2, "second")))))
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		o.Warn = func(path string, line int, err error) {
			f.told = append(f.told, fmt.Sprintf("%s:%d: %v", filepath.Base(path), line, err))
		}
		o.Follow = func() []string {
			found, _ := filepath.Glob(filepath.Join(f.dir, "app*")) // the pattern is good
			return found
		}
		done := make(chan error)
		go func() {
			var err error
			f.res, err = Run(ctx, &f.out, o.Follow(), &o)
			done <- err
		}()
		steps(f)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return f
}

func (f *following) put(name, text string) {
	f.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600); err != nil {
		f.Fatal(err)
	}
}

func (f *following) append(name, text string) {
	f.Helper()
	w, err := os.OpenFile(filepath.Join(f.dir, name), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		_, err = w.WriteString(text)
	}
	if err != nil || w.Close() != nil {
		f.Fatal(err)
	}
}

func (f *following) rename(from, to string) {
	f.Helper()
	if err := os.Rename(filepath.Join(f.dir, from), filepath.Join(f.dir, to)); err != nil {
		f.Fatal(err)
	}
}

// wait lets time pass, and tells what was written.
func (f *following) wait(d time.Duration, want ...string) {
	f.Helper()
	<-time.After(d)
	synctest.Wait()
	if got := f.out.take(); got != strings.Join(want, "") {
		f.Errorf("written is %q, want %q", got, want)
	}
}

const aLook = lookEvery + lookEvery/2

// TestFollow: lines of files that grow, are rotated, cut, or new come once, and sorted as far as
// they come together.
func TestFollow(t *testing.T) {
	f := follow(t, Options{}, func(f *following) {
		f.wait(aLook, at(1, "first"), at(2, "second"), at(3, "third"))
		f.append("app.1", at(6, "6")+at(7, "7"))
		f.append("app.2", at(4, "4")[9:]+at(5, "5"))
		f.wait(aLook, at(4, "4"), at(5, "5"), at(6, "6"), at(7, "7"))
		f.append("app.1", "nonsense\n"+at(8, "8"))
		f.wait(aLook, at(8, "8"))

		f.append("app.1", at(10, "10")) // rotated, as the pattern finds it under its new name, too
		f.rename("app.1", "app.1.old")
		f.wait(aLook, at(10, "10"))
		f.append("app.1.old", at(11, "11")+at(12, "12")[:10])
		f.put("app.1", at(9, "9"))
		f.wait(aLook, at(9, "9"), at(11, "11"))
		f.wait(2 * findEvery)
		f.append("app.1.old", at(12, "12")[10:]+at(9, "9")[:10]) // its writer has not seen it yet
		f.wait(aLook, at(12, "12"))

		f.put("app.2", at(13, "13")) // cut
		f.wait(aLook, at(13, "13"))
		f.put("app.4", at(14, "14"))
		f.put("app.5.gz", string(packed(t, 1, []byte(at(1, "packed")))))
		f.wait(2*findEvery, at(14, "14"))
		f.append("app.4", strings.Repeat("x", 3*MaxLine/2))
		f.wait(aLook)
		f.append("app.4", strings.Repeat("x", MaxLine)+"\n"+at(15, "15"))
		f.wait(aLook, at(15, "15"))
		if err := os.Remove(filepath.Join(f.dir, "app.4")); err != nil {
			t.Fatal(err)
		}
		f.wait(2 * missEvery)
		f.put("app.4", at(16, "16"))
		f.wait(2*findEvery, at(16, "16"))
		f.append("app.4", at(17, "17"))
	})
	if got := f.out.take(); got != at(17, "17") {
		t.Errorf("left is %q", got)
	}
	want := []string{
		"app.1:4: " + ErrTorn.Error(), fmt.Sprintf("app.4:2: %v", errLong),
		"app.1:9: " + ErrUnfinish.Error(),
	}
	if fmt.Sprint(f.told) != fmt.Sprint(want) || f.res.Broken != 3 {
		t.Errorf("told are %q, want %q", f.told, want)
	}
}

// TestFollowNew: files come while others are read: one that was not there at the start, one that is
// compressed and empty at first.
func TestFollowNew(t *testing.T) {
	f := follow(t, Options{}, func(f *following) {
		f.put("app.4.gz", "")
		f.wait(2*findEvery, at(1, "first"), at(2, "second"), at(3, "third"))
		f.put("app.4.gz", string(packed(t, 1, []byte(at(1, "packed")))))
		f.put("app.5", at(5, "5"))
		f.wait(2*findEvery, at(5, "5"))
	})
	if len(f.told) > 0 {
		t.Errorf("told are %q", f.told)
	}

	path := filepath.Join(f.dir, "none")
	ctx, cancel := context.WithCancel(t.Context())
	o := &Options{Warn: func(string, int, error) { // it is not there yet
		f.put("none", at(1, "1"))
	}}
	o.Follow = func() []string { return []string{path} }
	r, w := io.Pipe()
	done := make(chan Result)
	go func() {
		res, err := Run(ctx, w, o.Follow(), o)
		w.CloseWithError(err)
		done <- res
	}()
	b := make([]byte, len(at(1, "1")))
	if _, err := io.ReadFull(r, b); err != nil || string(b) != at(1, "1") {
		t.Errorf("%q, %v", b, err)
	}
	cancel()
	if res := <-done; res.Broken > 0 {
		t.Errorf("%+v", res)
	}
}

// TestFollowNumber: a new file with the number of one that is gone is a new one.
func TestFollowNumber(t *testing.T) {
	dir := t.TempDir()
	path := put(t, dir, 0, []byte(at(1, "old")))
	m := newMerge(&Options{}, 1)
	w := &follower{merge: m}
	f := m.input(0, path, nil, regular(path))
	f.part.at = f.part.size
	w.remember(f)
	if !w.was(regular(path), path) {
		t.Error("the old one counts as new")
	}
	put(t, dir, 0, []byte(at(2, "a new one of the same number")))
	if w.was(regular(path), path) {
		t.Error("the new one counts as old")
	}
	if _, err := f.moved(); err != nil {
		t.Error(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := f.moved(); !errors.Is(err, errGone) {
		t.Error(err)
	}
}

// TestFollowFails: a file that cannot be read for long is told once.
func TestFollowFails(t *testing.T) {
	told := 0
	m := newMerge(&Options{Warn: func(string, int, error) { told++ }}, 1)
	w := &follower{merge: m}
	path := put(t, t.TempDir(), 0, []byte(at(1, "1")))
	info := regular(path)
	f := m.input(0, path+".none", nil, info)
	f.follow = true
	var latest int64
	for range 3 {
		if err := w.lines(f, info, &latest); err != nil {
			t.Fatal(err)
		}
	}
	if told != 1 {
		t.Errorf("%d are told", told)
	}
}

// TestFollowSlack: what comes from one file while lines of others are held finds its place.
func TestFollowSlack(t *testing.T) {
	f := follow(t, Options{Slack: 2 * time.Second}, func(f *following) {
		f.wait(aLook)
		f.append("app.1", at(2, "late"))
		f.wait(3*time.Second, at(1, "first"), at(2, "late"), at(2, "second"), at(3, "third"))
		f.append("app.1", at(20, "20"))
		f.wait(time.Second)
		f.append("app.2", at(4, "4")[9:]+at(19, "19")+at(30, "30"))
		f.wait(time.Second+aLook, at(4, "4"), at(19, "19"), at(20, "20"))
		f.wait(time.Second, at(30, "30"))
		f.append("app.1", at(40, "40"))
		f.append("app.2", at(39, "39"))
		f.wait(aLook)
	})
	if got, want := f.out.take(), at(39, "39")+at(40, "40"); got != want || len(f.told) > 0 || f.res.Late > 0 {
		t.Errorf("left is %q, %q, want %q; %+v", got, f.told, want, f.res)
	}
}

// TestFollowMemory: held lines have an end, and so have files.
func TestFollowMemory(t *testing.T) {
	f := follow(t, Options{Slack: time.Hour, Memory: 64 << 10}, func(f *following) {
		f.wait(aLook)
		f.append("app.1", at(5, strings.Repeat("x", 10<<10))+at(6, strings.Repeat("x", 10<<10)))
		f.wait(aLook, at(1, "first"), at(2, "second"), at(3, "third"), at(5, strings.Repeat("x", 10<<10)))
	})
	if f.res.Written != 5 {
		t.Errorf("%+v", f.res)
	}
	_, err := Run(t.Context(), &f.out, []string{
		filepath.Join(f.dir, "app.1"), filepath.Join(f.dir, "app.2"),
		filepath.Join(f.dir, "app.3.gz"),
	},
		&Options{Memory: 1, Follow: func() []string { return nil }})
	if err == nil || !strings.Contains(err.Error(), "3 files are too many to follow") {
		t.Error(err)
	}
}
