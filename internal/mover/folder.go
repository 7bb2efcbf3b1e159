// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/journal"
	"github.com/spillwaylog/spillway/ring"
)

const (
	ownerFile   = "owner.json"
	emptyFile   = "empty" // in its place while the folder is removed: nothing in it matters any more
	budgetEvery = time.Second
	quarantine  = "quarantine" // where a journal sets aside what it cannot read
)

// errBudget says that all spills together hold what Config.MaxDisk allows.
var errBudget = fmt.Errorf("mover: all spills together have reached MaxDisk: %w", journal.ErrFull)

// owner is what the owner's file in a spill says.
type owner struct {
	Identity []byte    `json:"identity"`
	PID      int       `json:"pid"`
	Made     time.Time `json:"made"`
}

// cleanName makes a part of a file name of s, as package ring does.
func cleanName(s string) string {
	b := []byte(s)
	b = b[:min(len(b), 100)]
	for i, c := range b {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("_-+@", c) >= 0:
		default:
			b[i] = '_'
		}
	}
	return string(b)
}

func (m *Mover) freshName() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return fmt.Sprintf("%s.%d.%s", cleanName(m.cfg.Name), os.Getpid(), hex.EncodeToString(b[:]))
}

// spillOf takes the name of a spill's folder apart, which freshName or a ring has given: whose it is. false: it is none.
func spillOf(folder string) (name string, ok bool) {
	rest, id := cutLast(folder)
	name, pid := cutLast(rest)
	return name, name != "" && pid != "" && strings.Trim(pid, "0123456789") == "" && len(id) == 16 && strings.Trim(id, "0123456789abcdef") == ""
}

func cutLast(s string) (before, after string) {
	i := max(strings.LastIndexByte(s, '.'), 0)
	return s[:i], strings.TrimPrefix(s[i:], ".")
}

// makeSpill makes a spill for this process. Where it has a ring in shared memory the folders have one name: whoever adopts one looks for the other.
func (m *Mover) makeSpill(made time.Time) (*spill, error) {
	if err := os.MkdirAll(m.cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("mover: %w", err)
	}
	paired := ""
	if path := m.mainPath; path != "" && !m.disk.named {
		paired = filepath.Base(path)
	}
	for try := range 10 {
		name := paired
		switch {
		case name == "" || try >= 8:
			name = m.freshName()
		case try > 0:
			<-time.After(time.Millisecond) // whoever removes the folder will soon be done
		}
		dir := filepath.Join(m.cfg.Dir, name)
		err := os.Mkdir(dir, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("mover: %w", err)
		}
		err = writeOwner(dir, owner{m.identity(), os.Getpid(), made})
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			_ = os.RemoveAll(dir) // the error of writing is what counts
			return nil, fmt.Errorf("mover: %w", err)
		}
		if m.cfg.MaxDisk-m.others(dir) < m.segment() {
			_ = os.RemoveAll(dir)
			return nil, errBudget
		}
		sp := &spill{dir: dir, made: made, own: true}
		for range 100 {
			if err = m.openSpill(sp); !errors.Is(err, journal.ErrLocked) {
				break
			}
			<-time.After(time.Millisecond) // somebody takes it for an abandoned one, and removes it, or has just seen that it is not
		}
		if err == nil {
			if _, err = os.Lstat(filepath.Join(dir, ownerFile)); errors.Is(err, fs.ErrNotExist) {
				_ = sp.j.Close() // they have, before it was locked
				continue
			}
		}
		if errors.Is(err, fs.ErrNotExist) { // the same, while it was opened
			_ = os.RemoveAll(dir)
			continue
		}
		if err != nil {
			_ = os.RemoveAll(dir)
			return nil, err
		}
		m.disk.named = true
		return sp, nil
	}
	return nil, errors.New("mover: no name for a spill is free")
}

// segment is how many bytes a spill grows by.
func (m *Mover) segment() int64 { return min(spillSegment, m.cfg.MaxDisk/8) }

// openSpill opens the journal in sp.dir and its reader. What others take now does not bound the journal: they come and go, and budget looks at them.
func (m *Mover) openSpill(sp *spill) error {
	j, err := journal.Open(sp.dir, &journal.Options{
		MaxBytes: m.cfg.MaxDisk, SegmentBytes: m.segment(), FS: m.cfg.fs, Report: func(err error) {
			if !sp.gone.Load() {
				m.report(err)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("mover: %w", err)
	}
	rd, err := j.Reader(cursor)
	if err != nil {
		_ = j.Close() // the error of the reader is what counts
		return fmt.Errorf("mover: %w", err)
	}
	sp.j, sp.rd = j, rd
	return nil
}

// others is what all spills but one take, adopted ones and those of other processes.
func (m *Mover) others(dir string) int64 {
	var sum int64
	dirs, err := os.ReadDir(m.cfg.Dir)
	if err != nil {
		return 0
	}
	for _, d := range dirs {
		path := filepath.Join(m.cfg.Dir, d.Name())
		if _, ok := spillOf(d.Name()); !ok || !d.IsDir() || path == dir {
			continue
		}
		files, _ := os.ReadDir(path) // removed meanwhile: takes nothing
		for _, f := range files {
			if info, err := f.Info(); err == nil && info.Mode().IsRegular() {
				sum += info.Size()
			}
		}
	}
	return sum
}

// budget says whether sp may grow: the bounds of journals that live at the same time do not know of each other.
func (m *Mover) budget(sp *spill) error {
	if now := time.Now(); now.Sub(m.disk.counted) > budgetEvery {
		m.disk.counted, m.disk.others = now, m.others(sp.dir)
	}
	if m.disk.others+sp.j.Stats().Bytes > m.cfg.MaxDisk {
		m.disk.counted = time.Time{}
		return errBudget
	}
	return nil
}

// unusable says why Dir, or the folder above it in which it would be made, takes no spill. A spill is made only when it is needed, and then it is too late to be told.
func (m *Mover) unusable() error {
	for dir := m.cfg.Dir; dir != ""; dir = filepath.Dir(dir) {
		fi, err := os.Stat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir):
			continue
		case err == nil && !fi.IsDir():
			err = fmt.Errorf("%s is no folder", dir)
		case err == nil:
			err = writable(dir)
		}
		if err != nil {
			return fmt.Errorf("nothing can flow over to %s: %w", m.cfg.Dir, err)
		}
		break
	}
	return nil
}

// scout opens the spills that dead processes of our name left, oldest first. Those whose ring is somebody else's are theirs.
func (m *Mover) scout(rings []*source) []*spill {
	dirs, err := os.ReadDir(m.cfg.Dir)
	if m.cfg.Dir == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		m.report(fmt.Errorf("looking for spills: %w", err))
		return nil
	}
	var found []*spill
	for _, d := range dirs {
		if !d.IsDir() || !m.named(d.Name()) {
			continue
		}
		sp := &spill{dir: filepath.Join(m.cfg.Dir, d.Name())}
		who, err := readOwner(sp.dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			m.sweep(sp.dir)
			continue
		case err != nil:
			m.report(fmt.Errorf("%s is left alone: %w", sp.dir, err))
			continue
		case string(who.Identity) != string(m.identity()) || !m.orphan(d.Name(), rings):
			continue
		}
		sp.made = who.Made
		if err := m.openOrphan(sp, rings); err != nil {
			if !errors.Is(err, journal.ErrLocked) {
				m.report(fmt.Errorf("%s is left alone: %w", sp.dir, err))
			}
			continue
		}
		if err := sp.list(); err != nil {
			m.report(fmt.Errorf("%s is left alone: %w", sp.dir, err))
			_ = sp.j.Close() // told already
			continue
		}
		found = append(found, sp)
	}
	slices.SortStableFunc(found, func(a, b *spill) int { return a.made.Compare(b.made) })
	return found
}

// openOrphan opens a spill that may belong to an adopted ring: then its owner is dead, but the kernel need not have let go of all its locks yet.
func (m *Mover) openOrphan(sp *spill, rings []*source) error {
	mine := slices.ContainsFunc(rings, func(s *source) bool { return s.name == filepath.Base(sp.dir) })
	for tries := 0; ; tries++ {
		err := m.openSpill(sp)
		if !mine || tries == 20 || !errors.Is(err, journal.ErrLocked) || m.over() {
			return err
		}
		m.pause()
	}
}

// sweep removes a folder without an owner's file: its process died while it made or removed it. Whoever is making it just now finds that it is gone, and makes another.
func (m *Mover) sweep(dir string) {
	if !m.ours(dir) {
		return
	}
	_, err := os.Lstat(filepath.Join(dir, emptyFile))
	empty := err == nil
	sp := &spill{dir: dir}
	if err := m.openSpill(sp); err != nil {
		if empty && !errors.Is(err, journal.ErrLocked) {
			_ = removeBut(dir, quarantine) // what is left of a journal cannot always be opened
		}
		return
	}
	// What is left of a journal may look as if nobody had read it: the cursor went first.
	some := false
	if !empty {
		_, some, err = sp.rd.TryNext()
	}
	if err == nil && !some {
		_, err = readOwner(dir)
	}
	nothing := errors.Is(err, fs.ErrNotExist)
	if nothing {
		sp.gone.Store(true)
		_ = removeBut(dir, quarantine) // it may be preparing a segment, and so come to nothing
	}
	_ = sp.j.Close() // nothing was written
	if nothing {
		_ = removeBut(dir, quarantine) // another time, then
	}
}

// named says that freshName or a ring could have given a folder its name, in a process of our name. Dir may hold what is somebody else's.
func (m *Mover) named(folder string) bool {
	name, ok := spillOf(folder)
	return ok && name == cleanName(m.cfg.Name)
}

// ours says of a folder without an owner's file that nothing lies in it but what we and the journal put into spills.
func (m *Mover) ours(dir string) bool {
	all, err := os.ReadDir(dir)
	return err == nil && !slices.ContainsFunc(all, func(e fs.DirEntry) bool {
		switch name := e.Name(); name {
		case "lock", "identity", "identity.tmp", ownerFile, ownerFile + ".new", emptyFile, quarantine:
			return false
		default:
			return !strings.HasPrefix(name, "seg-") && !strings.HasPrefix(name, "cursor-") && !strings.HasPrefix(name, "rescue-")
		}
	})
}

// orphan says that a spill's ring is not another process's, nor will be: it is ours, or gone, or can never be adopted.
func (m *Mover) orphan(name string, rings []*source) bool {
	if m.cfg.Shm == "" || slices.ContainsFunc(rings, func(s *source) bool { return s.name == name }) {
		return true
	}
	path := filepath.Join(m.cfg.Shm, name)
	if _, err := os.Lstat(path); err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	all, err := ring.Inspect(path)
	if err != nil || len(all) != 1 || all[0].Live {
		return errors.Is(err, ring.ErrNone)
	}
	boot := m.cur.Load().r.Owner().BootID
	return errors.Is(all[0].Err, ring.ErrCorrupt) || boot != "" && all[0].Owner.BootID != boot
}

// writeOwner writes it whole or not at all.
func writeOwner(dir string, o owner) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, ownerFile)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func readOwner(dir string) (owner, error) {
	var o owner
	path := filepath.Join(dir, ownerFile)
	fi, err := os.Lstat(path)
	if err != nil {
		return o, err
	}
	if !fi.Mode().IsRegular() { // to read from a pipe would be to wait for ever
		return o, fmt.Errorf("mover: %s is no file", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(text, &o)
}

// list reads the heads of all chunks that are not known to be done.
func (sp *spill) list() error {
	failures := 0
	sp.ids = map[[idLen]byte]bool{}
	for {
		rec, ok, err := sp.rd.TryNext()
		if err != nil {
			if failures++; failures > 10 {
				return err
			}
			continue
		}
		if !ok {
			break
		}
		e := entry{pos: rec.Pos, bytes: uint64(len(rec.Data))}
		var c forward.Chunk
		if c.Parse(rec.Data) == nil {
			e.events, e.bytes = uint32(c.Events), uint64(len(c.Entries))
			if len(c.ID) == idLen {
				sp.ids[[idLen]byte(c.ID)] = true
			}
		}
		sp.entries.push(e)
	}
	pos, state := sp.rd.Committed()
	sp.at, sp.state = pos, state
	// From the beginning again.
	if err := sp.rd.Close(); err != nil {
		return err
	}
	rd, err := sp.j.Reader(cursor)
	if err != nil {
		return err
	}
	sp.rd = rd
	return nil
}

// remove takes away a spill in which nothing is left. Without its owner's file nobody takes it for one of theirs any more. What its journal set aside because it could not be
// read stays, unless the process died with a ring that was adopted too: then it is the end of a write that was cut short, and the ring still had it.
func (m *Mover) remove(sp *spill) {
	m.disk.do("removing "+sp.dir, func() {
		m.report(sp.discard())
		m.disk.counted = time.Time{}
	})
}

func (sp *spill) discard() error {
	sp.gone.Store(true)
	remove := func() error {
		if sp.paired {
			return removeBut(sp.dir, "")
		}
		return removeBut(sp.dir, quarantine)
	}
	err := os.Rename(filepath.Join(sp.dir, ownerFile), filepath.Join(sp.dir, emptyFile))
	if err == nil {
		_ = remove() // it may be preparing a segment, and so come to nothing
	}
	_ = sp.j.Close() // only now, for its lock keeps others away; what it has not synced is nothing any more
	if err == nil {
		err = remove()
	}
	if err != nil {
		return fmt.Errorf("removing a spill: %w", err)
	}
	return nil
}

// removeBut removes a folder, but not a folder in it, nor itself, if there is something in that one. The file that says that nothing in it matters goes last.
func removeBut(dir, kept string) error {
	if kept != "" {
		_ = os.Remove(filepath.Join(dir, kept)) // fails unless it is empty, as it should
	}
	all, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	stays := false
	for _, e := range all {
		switch e.Name() {
		case kept:
			stays = true
		case emptyFile:
		default:
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, emptyFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if stays {
		return nil
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
