// SPDX-License-Identifier: Apache-2.0

// Package await waits until something comes or a context ends. It waits for time, and for what
// others give: pipes, terminals, sockets that a process was started with. Such a file may have no
// deadlines, and a read of it that has begun lasts until something comes, whatever the context
// says.
//
//	for await.Readable(ctx, f) == nil {
//		n, err := f.Read(b) // does not wait
//		…
//	}
package await
