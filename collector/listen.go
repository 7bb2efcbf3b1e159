// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/internal/credentials"
	"github.com/spillwaylog/spillway/internal/urls"
)

// listeners are a Forward input: its sockets, whose connections one forward.Server serves for all
// such inputs. Chunks come to the store as they do to any forward.Handler, not by a sink.
type listeners struct {
	scheme      string
	address     string // host:port, or the path of a unix socket
	url         string // with the port that was really taken, without settings
	stream      net.Listener
	heartbeat   net.PacketConn // nil for unix sockets
	endpoint    *forward.Endpoint
	credentials *credentials.Server

	server *forward.Server
	ack    Ack
	log    *slog.Logger
	told   []any // of each line about this input
}

// plan reads the URL, and touches nothing.
func (l *listeners) plan(u *urls.URL) (err error) {
	l.scheme = u.Scheme
	if l.address = u.Path; u.Scheme != "forward+unix" {
		if len(u.Hosts) != 1 {
			return u.Errorf("an input listens on one address; give another one as an input of its own")
		}
		l.address = u.Hosts[0]
	}
	p := u.Params()
	l.credentials, err = credentials.ReadServer(u, p)
	l.endpoint = &forward.Endpoint{
		Tag:        p.String("tag", ""),
		TagPrefix:  p.String("tag_prefix", ""),
		AddressKey: p.String("address_key", ""),
		HostKey:    p.String("host_key", ""),
		SubjectKey: p.String("subject_key", ""),
		UserKey:    p.String("user_key", ""),

		RefuseLarge: p.Choice("oversize", "letter", "refuse") == "refuse",
	}
	if err == nil {
		err = p.Err()
	}
	if err != nil {
		return err
	}
	return l.check(u)
}

// check refuses what could never be seen in a record, and tags that are none.
func (l *listeners) check(u *urls.URL) error {
	e, c := l.endpoint, l.credentials
	switch {
	case e.UserKey != "" && !c.Users():
		return u.Errorf("user_key= adds the name of the user, and without users_file= there is none")
	case e.SubjectKey != "" && !c.Certificates():
		return u.Errorf("subject_key= adds the subject of the client's certificate, and without client_ca= nobody is asked for one")
	case len(e.Tag) > forward.MaxTag || len(e.TagPrefix) >= forward.MaxTag:
		return u.Errorf("a tag has at most %d bytes", forward.MaxTag)
	}
	return nil
}

// where is the URL without its settings, as one may write it.
func (l *listeners) where() string {
	// Behind two slashes stands a host, and a path in the working directory has none.
	if l.scheme == "forward+unix" && !strings.HasPrefix(l.address, "/") {
		return l.scheme + ":" + l.address
	}
	return l.scheme + "://" + l.address
}

// open opens the input for a collector.
func (l *listeners) open(c *Collector, a *account, name string) error {
	if err := l.listen(c.config.Log); err != nil {
		return err
	}
	l.log, l.server, l.ack = c.config.Log, c.server, c.config.Ack
	a.url, a.name, a.endpoint = l.url, cmp.Or(name, l.url), l.endpoint
	if l.told = []any{"url", l.url}; name != "" {
		l.told = []any{"input", name, "url", l.url}
	}
	return nil
}

// unlock reads the files that the URL names.
func (l *listeners) unlock(r *credentials.Reports) error {
	if err := l.credentials.Open(r); err != nil {
		return fmt.Errorf("%s: %w", l.where(), err)
	}
	return nil
}

// listen opens the sockets, and the files that the URL names.
func (l *listeners) listen(log *slog.Logger) error {
	where := l.where()
	l.url = where
	err := l.unlock(&credentials.Reports{
		Warn: func(err error) { codes.Credentials.Warn(log, "credentials", "url", where, "error", err) },
		Renewed: func(files []string) {
			codes.Renewed.Info(log, "credentials renewed", "url", where, "files", strings.Join(files, ", "))
			l.server.Recheck(l.endpoint)
		},
	})
	if err != nil {
		return err
	}
	if l.scheme == "forward+unix" {
		l.stream, err = listenUnix(l.address)
	} else {
		l.stream, l.heartbeat, err = forward.Listen("tcp", l.address)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	if l.scheme != "forward+unix" {
		l.url = l.scheme + "://" + l.stream.Addr().String()
	}
	l.credentials.Apply(l.endpoint)
	return nil
}

// announce says where the input listens.
func (l *listeners) announce() {
	codes.Listening.Info(l.log, "listening", append(l.told, "ack", string(l.ack))...)
}

// Run accepts connections until ctx ends. Those that it has accepted end with the server.
func (l *listeners) Run(ctx context.Context, _ Sink) error {
	served := make(chan error, 2)
	var serving sync.WaitGroup
	serving.Go(func() { served <- l.server.ServeEndpoint(l.stream, l.endpoint) })
	if l.heartbeat != nil {
		serving.Go(func() { served <- l.server.ServeHeartbeat(l.heartbeat) })
	}
	defer serving.Wait()
	defer l.Close()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-served:
			if err != nil && !errors.Is(err, forward.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
				return err
			}
		}
	}
}

// Stats implements Input; the server knows more.
func (l *listeners) Stats() Received {
	s := l.server.EndpointStats(l.endpoint)
	return Received{
		Bytes: int64(s.Bytes), Connections: int64(s.Connections),
		Skipped: int64(s.Skipped), Invalid: int64(s.Invalid), Refused: int64(s.RefusedEvents),
	}
}

// Reload reads the files that the URL names again.
func (l *listeners) Reload() error { return l.credentials.Reload() }

// Addr is where the input listens.
func (l *listeners) Addr() net.Addr { return l.stream.Addr() }

// Close closes the sockets. Those that were served are closed already.
func (l *listeners) Close() error {
	_ = l.stream.Close()
	if l.heartbeat != nil {
		_ = l.heartbeat.Close()
	}
	return nil
}

// errLive says that another process listens on a unix socket.
var errLive = errors.New("another process listens on this socket")
