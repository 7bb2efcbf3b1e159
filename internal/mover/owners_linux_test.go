// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/spill"
	"github.com/spillwaylog/spillway/ring"
)

// TestOwners: rings and spills count for their destination, whatever their process is called, lives
// or not; what is no ring or spill does not.
func TestOwners(t *testing.T) {
	shm, dir := filepath.Join(t.TempDir(), "shm"), filepath.Join(t.TempDir(), "spill")
	for _, folders := range [][2]string{{"", ""}, {shm, dir}} {
		if all, err := Owners(folders[0], folders[1], "file:/x"); len(all) > 0 || err != nil {
			t.Errorf("%q: %v, %v", folders, all, err)
		}
	}
	before := time.Now()
	var rings []*ring.Ring
	for _, o := range [][2]string{
		{"a", "file:/x\x00" + dir},
		{"b", "file:/x\x00"},
		{"b", "file:/xy\x00"},
		{"b", "file:/x"},
	} {
		r, err := ring.Open(&ring.Options{Dir: shm, Name: o[0], Identity: []byte(o[1]), Size: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		rings = append(rings, r)
	}
	if err := rings[1].Leave(); err != nil { // as a killed process does
		t.Fatal(err)
	}
	folder := func(identity string) *spill.Folder {
		return spill.New(&spill.Options{
			Name: "a", Identity: []byte(identity), Dir: dir, MaxDisk: 64 << 20,
			Report: func(err error) { t.Error(err) },
		})
	}
	for identity, path := range map[string]string{
		"file:/x\x00" + dir: rings[0].Path(),
		"file:/x\x00other":  filepath.Join(shm, "gone.17.0123456789abcdef"), "file:/y\x00" + dir: "",
	} {
		sp, err := folder(identity).Make(path, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		defer sp.Close()
	}
	for _, name := range []string{"letters", "a.17.0123456789abcdef"} { // the second is just being made
		for _, in := range []string{shm, dir} {
			if err := os.Mkdir(filepath.Join(in, name), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	all, err := Owners(shm, dir, "file:/x")
	if err != nil {
		t.Fatal(err)
	}
	var timed, dead int
	for _, o := range all {
		if o.PID != os.Getpid() || !o.Made.IsZero() && (o.Made.Before(before) || o.Made.After(time.Now())) {
			t.Errorf("%+v", o)
		}
		if !o.Made.IsZero() {
			timed++
		}
		if o.Dead {
			dead++
		}
	}
	if len(all) != 7 || timed != 5 || dead != 1 {
		t.Errorf("%d, %d, %d: %+v", len(all), timed, dead, all)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.17.0123456789abcdef", "owner.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := Owners(shm, dir, "file:/x"); err == nil {
		t.Errorf("%v, and an owner's file cannot be read", all)
	}
}
