// SPDX-License-Identifier: Apache-2.0

package needs

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
	"sync"
)

// given are the ports that this process has had: while a server comes back, its own is as free as
// any.
var given sync.Map

// Address is a host:port of the loopback range at which nobody listens until the caller does, see
// Port.
func Address() string {
	host := "127.0.0.1"
	if runtime.GOOS == "linux" { // where all of the range is there
		host = fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250))
	}
	return net.JoinHostPort(host, strconv.Itoa(Port(host)))
}

// Port is a port of a host of the loopback range at which nobody listens until the caller does,
// again and again if it likes: for servers that come back, and for those that are down. It lies
// below those that the kernel gives away: one of these can be taken by anybody between two uses,
// and a client that dials it while nobody listens can meet itself.
func Port(host string) int {
	var err error
	for range 1000 {
		port := 20000 + rand.IntN(10000)
		if _, again := given.LoadOrStore(port, true); again { // of whichever host: some servers listen on all
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port))); err == nil {
			l.Close()
			return port
		}
	}
	panic(fmt.Sprintf("no free port of %s: %v", host, err))
}
