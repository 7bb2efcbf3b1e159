// SPDX-License-Identifier: Apache-2.0

//go:build unix

package await

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

// TestReadable: it returns when a byte comes, when the other end is closed, and when ctx ends.
func TestReadable(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	wait := func(ctx context.Context) chan error {
		ended := make(chan error, 1)
		go func() { ended <- Readable(ctx, r) }()
		return ended
	}
	came := wait(ctx)
	if _, err := w.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := <-came; err != nil {
		t.Error(err)
	}
	if n, err := r.Read(make([]byte, 8)); n != 1 || err != nil {
		t.Error(n, err)
	}
	over, end := context.WithCancelCause(ctx)
	nothing := wait(over)
	end(errors.New("enough"))
	if err := <-nothing; !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	closed := wait(ctx)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-closed; err != nil {
		t.Errorf("the other end is closed: %v", err)
	}
}
