// SPDX-License-Identifier: Apache-2.0

package needs

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
)

// given are the addresses that this process has had.
var given sync.Map

// Address is a host:port of the loopback range at which nobody listens until the caller does, again and again if it likes: for servers that come back, and for those that
// are down. The port lies below those that the kernel gives away: one of these can be taken by anybody between two uses, and a client that dials it while nobody
// listens can meet itself.
func Address() string {
	var err error
	for range 1000 {
		host := "127.0.0.1"
		if runtime.GOOS == "linux" { // where all of the range is there
			host = fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250))
		}
		address := fmt.Sprintf("%s:%d", host, 20000+rand.IntN(10000))
		if _, again := given.LoadOrStore(address, true); again {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	panic(fmt.Sprint("no free address of the loopback range: ", err))
}
