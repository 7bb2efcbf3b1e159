// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/credentials"
	"github.com/spillwaylog/spillway/internal/urls"
)

// An inputPlan is an input URL that was understood but touches nothing yet, so
// that a mistake in one of them is told before anything is opened.
type inputPlan struct {
	scheme      string
	address     string // host:port, or the path of a unix socket
	credentials *credentials.Server
	endpoint    *forward.Endpoint
}

func planInputs(c *Config) ([]inputPlan, error) {
	plans := make([]inputPlan, 0, len(c.Inputs))
	for i := range c.Inputs {
		p, err := planInput(c.Inputs[i].URL)
		if err != nil {
			return nil, err
		}
		plans = append(plans, p)
	}
	return plans, nil
}

func planInput(text string) (inputPlan, error) {
	u, err := urls.Parse(text)
	if err != nil {
		return inputPlan{}, err
	}
	plan := inputPlan{scheme: u.Scheme}
	switch u.Scheme {
	case "forward", "forward+tls":
		if len(u.Hosts) != 1 {
			return plan, u.Errorf("an input listens on one address; give another one as an input of its own")
		}
		plan.address = u.Hosts[0]
	case "forward+unix":
		plan.address = u.Path
	default:
		return plan, u.Errorf("no input of this kind; there are forward://host:port, forward+tls://host:port and forward+unix:///path")
	}
	p := u.Params()
	plan.credentials, err = credentials.ReadServer(u, p)
	plan.endpoint = &forward.Endpoint{
		Tag:        p.String("tag", ""),
		TagPrefix:  p.String("tag_prefix", ""),
		AddressKey: p.String("address_key", ""),
		HostKey:    p.String("host_key", ""),
		SubjectKey: p.String("subject_key", ""),
		UserKey:    p.String("user_key", ""),
	}
	if err == nil {
		err = p.Err()
	}
	if err != nil {
		return plan, err
	}
	return plan, plan.check(u)
}

// check refuses what could never be seen in a record, and tags that are none.
func (p *inputPlan) check(u *urls.URL) error {
	e, c := p.endpoint, p.credentials
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

// listeners are the sockets of one input.
type listeners struct {
	url         string // with the port that was really taken, without settings
	stream      net.Listener
	heartbeat   net.PacketConn // nil for unix sockets
	endpoint    *forward.Endpoint
	credentials *credentials.Server
}

func (l *listeners) close() {
	l.stream.Close()
	if l.heartbeat != nil {
		l.heartbeat.Close()
	}
}

// name is the URL without its settings, as one may write it.
func (p *inputPlan) name() string {
	if p.scheme == "forward+unix" && !strings.HasPrefix(p.address, "/") { // behind two slashes stands a host, and a path in the working directory has none
		return p.scheme + ":" + p.address
	}
	return p.scheme + "://" + p.address
}

// listen opens the sockets of an input, and the files that it names.
func (p *inputPlan) listen(log *slog.Logger) (l *listeners, err error) {
	name := p.name()
	err = p.credentials.Open(&credentials.Reports{
		Trouble: func(err error) { log.Warn("credentials", "url", name, "error", err) },
		Renewed: func(files []string) {
			log.Info("credentials renewed", "url", name, "files", strings.Join(files, ", "))
		},
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	l = &listeners{url: name}
	if p.scheme == "forward+unix" {
		if l.stream, err = listenUnix(p.address); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	} else {
		if l.stream, l.heartbeat, err = forward.Listen("tcp", p.address); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		l.url = p.scheme + "://" + l.stream.Addr().String()
	}
	p.credentials.Apply(p.endpoint)
	l.endpoint, l.credentials = p.endpoint, p.credentials
	return l, nil
}

// errLive says that another process listens on a unix socket.
var errLive = errors.New("another process listens on this socket")
