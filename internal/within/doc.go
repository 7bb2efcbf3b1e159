// SPDX-License-Identifier: Apache-2.0

// Package within reaches files by open folders. A folder may belong to another user, and so may get
// anything at any moment: a link, a pipe, another folder under a name that was just looked at. So a
// name is one element, is looked up in the open folder wherever the path of that leads by now, no
// symbolic link is followed, and a file that is opened is a regular one of the folder's owner.
package within

import "errors"

var (
	// ErrOwner says that a file or folder is not the folder's owner's.
	ErrOwner = errors.New("it belongs to another user than its folder")
	// ErrKind says that there is something else than a file.
	ErrKind = errors.New("it is no file")
	// ErrUnsupported says that this system cannot do that.
	ErrUnsupported = errors.New("folders cannot be held open here")
)
