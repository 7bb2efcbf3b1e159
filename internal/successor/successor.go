// SPDX-License-Identifier: Apache-2.0

package successor

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/internal/window"
	"github.com/spillwaylog/spillway/internal/within"
	"github.com/spillwaylog/spillway/ring"
)

// prefix begins the names of the folders in which loggers keep rings, one a user.
const prefix = "spillway-"

const (
	maxNames = 1 << 14  // of rings in one folder that are looked at
	maxDue   = 256      // that a Look returns: what has died meanwhile is not to wait for all
	maxSpill = 16 << 30 // what a spill may take: its owner's bound is not known, and nothing is added
	// leaveFor: what could not be taken over is not tried again before that.
	leaveFor = time.Minute
	// lockedFor: the kernel need not have let go of all locks of a dead process at once. What is
	// locked for longer is left alone.
	lockedFor = 2 * time.Second
)

// An ID is a chunk's.
type ID = [window.IDLen]byte

// Options of a Successor. Path, MaxRing and Report are needed.
type Options struct {
	Path    string        // the folder in which the folders of rings lie
	After   time.Duration // for so long the owner must have been dead
	Any     bool          // rings for any destination, not only for Forward servers
	MaxRing int64         // bytes; a larger one is left alone
	Report  func(error)   // told of what is left alone, once, and of what cannot be read
	GaveUp  <-chan struct{}
}

// A Successor belongs to one goroutine.
type Successor struct {
	opt  Options
	seen map[string]*sighting // by the path of the ring
	turn int                  // of Look
	now  func() time.Time
}

// A sighting is what is known of a ring, since it was first seen.
type sighting struct {
	turn   int
	other  bool      // it is none of ours, and will never be
	dead   time.Time // since when nobody has had it, as far as it was looked at; zero: somebody has
	not    time.Time // it is not tried before
	told   string
	folder string
	name   string
	made   time.Time

	locked  bool // the lock of a spill was waited for
	counted bool // what is no event under the marks that its owner left
}

// Supported says why there are no rings of dead processes on this system, if so.
func Supported() error {
	if _, err := ring.OpenDir(""); errors.Is(err, ring.ErrUnsupported) {
		return err
	}
	return nil
}

// New looks at nothing yet.
func New(o *Options) *Successor {
	return &Successor{opt: *o, seen: map[string]*sighting{}, now: time.Now}
}

// Every is how often Look is to be called.
func (h *Successor) Every() time.Duration {
	return min(max(h.opt.After/4, 200*time.Millisecond), 5*time.Second)
}

// Look returns the rings whose owners have been dead for long enough, the oldest first, of each
// folder one before a second of any: Take takes them. Of many it returns some.
func (h *Successor) Look() ([]string, error) {
	h.turn++
	folders, err := h.folders()
	for _, f := range folders {
		h.lookInto(f)
	}
	var due []*sighting
	for path, s := range h.seen {
		switch {
		case s.turn != h.turn:
			delete(h.seen, path)
		case !s.other && !s.dead.IsZero() && h.now().Sub(s.dead) >= h.opt.After && !h.now().Before(s.not):
			due = append(due, s)
		}
	}
	slices.SortFunc(due, func(a, b *sighting) int {
		return cmp.Or(a.made.Compare(b.made),
			cmp.Compare(a.name, b.name))
	})
	round, rounds := map[string]int{}, map[*sighting]int{} // a user may have many, and give them any age
	for _, s := range due {
		rounds[s] = round[s.folder]
		round[s.folder]++
	}
	slices.SortStableFunc(due, func(a, b *sighting) int { return cmp.Compare(rounds[a], rounds[b]) })
	due = due[:min(len(due), maxDue)]
	paths := make([]string, len(due))
	for i, s := range due {
		paths[i] = filepath.Join(s.folder, s.name)
	}
	return paths, err
}

// folders lists those of rings.
func (h *Successor) folders() ([]string, error) {
	top, err := within.OpenAny(h.opt.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer top.Close()
	names, err := top.Names(0)
	var all []string
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			all = append(all, filepath.Join(h.opt.Path, name))
		}
	}
	return all, err
}

// lookInto looks at the rings of a folder.
func (h *Successor) lookInto(folder string) {
	d, err := ring.OpenDir(folder)
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
		return // another user's, or gone
	case err != nil:
		h.tell(h.sight(folder, ""), err)
		return
	}
	defer d.Close()
	d.Clean(maxNames)
	names, err := d.Names(maxNames)
	if err != nil {
		h.tell(h.sight(folder, ""), err)
	}
	for _, name := range names {
		s := h.sight(folder, name)
		if s.other || h.now().Before(s.not) {
			continue
		}
		o, live, err := d.Look(name, h.wants)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			h.leave(s, err)
		case !h.wants(o):
			s.other = true
		case live:
			s.dead = time.Time{}
		case s.dead.IsZero():
			s.dead, s.made = h.now(), o.Made
		}
	}
}

func (h *Successor) sight(folder, name string) *sighting {
	path := filepath.Join(folder, name)
	s := h.seen[path]
	if s == nil {
		s = &sighting{folder: folder, name: name, other: name == ""}
		h.seen[path] = s
	}
	s.turn = h.turn
	return s
}

// leave leaves a ring alone for a while.
func (h *Successor) leave(s *sighting, err error) {
	s.not = h.now().Add(leaveFor)
	h.tell(s, err)
}

// tell tells once what is wrong with a ring, or with the folder of rings.
func (h *Successor) tell(s *sighting, err error) {
	if text := err.Error(); text != s.told {
		s.told = text
		h.opt.Report(codes.RingLeft.Errorf("%s is left alone: %w", filepath.Join(s.folder, s.name), err))
	}
}

// identity takes apart what a logger writes into its ring: the destination, and the folder of its
// spills.
func identity(o ring.Owner) (destination, dir string) {
	destination, dir, _ = strings.Cut(string(o.Identity), "\x00")
	return destination, dir
}

// wants says whether a ring is for a destination whose rings are taken over.
func (h *Successor) wants(o ring.Owner) bool {
	destination, _ := identity(o)
	scheme, _, _ := strings.Cut(destination, ":")
	return h.opt.Any || strings.HasPrefix(scheme, "forward")
}
