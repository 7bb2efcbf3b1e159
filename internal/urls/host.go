// SPDX-License-Identifier: Apache-2.0

package urls

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// hostName is the parameter that adds hosts.
const hostName = "host"

// parseHosts reads what stands behind the colon of a scheme with hosts, and takes the host
// parameters out of the query.
func (u *URL) parseHosts(rest string, s shape) (reason string) {
	list, ok := strings.CutPrefix(rest, "//")
	if !ok {
		return "two slashes stand before the host"
	}
	list, p, _ := strings.Cut(list, "/")
	if p != "" {
		return s.scheme + " takes no path"
	}
	lists := []string{list}
	kept := u.query[:0]
	for _, q := range u.query {
		if q.name != hostName {
			kept = append(kept, q)
			continue
		}
		lists = append(lists, q.value)
	}
	u.query = kept
	for _, list := range lists {
		if list == "" {
			continue
		}
		for item := range strings.SplitSeq(list, ",") {
			host, reason := parseHost(item, s.port)
			if reason != "" {
				return reason
			}
			u.Hosts = append(u.Hosts, host)
		}
	}
	if len(u.Hosts) == 0 {
		return "the host is missing"
	}
	return ""
}

// parseHost returns item as host:port.
func parseHost(item, defaultPort string) (hostPort, reason string) {
	if item == "" {
		return "", "there is an empty place in the list of hosts"
	}
	var host, port string
	var colon bool
	if after, ok := strings.CutPrefix(item, "["); ok {
		end := strings.IndexByte(after, ']')
		if end < 0 {
			return "", "the bracket that closes the IPv6 address in " + quote(item) + " is missing"
		}
		host = after[:end]
		zoned := strings.Replace(host, "%25", "%", 1) // [fe80::1%25eth0], as RFC 6874 has it
		a, err := netip.ParseAddr(zoned)
		if err != nil || !a.Is6() {
			return "", quote(host) + " is no IPv6 address"
		}
		host = zoned
		switch tail := after[end+1:]; {
		case tail == "":
		case tail[0] == ':':
			port, colon = tail[1:], true
		default:
			return "", quote(tail) + " behind the IPv6 address is no port"
		}
	} else {
		host, port, colon = strings.Cut(item, ":")
		if strings.Contains(port, ":") {
			if _, err := netip.ParseAddr(item); err == nil {
				return "", "an IPv6 address stands in brackets: [" + item + "]"
			}
			return "", quote(item) + " has more than one colon; an IPv6 address stands in brackets"
		}
		if reason := badHost(host); reason != "" {
			return "", reason
		}
	}
	if !colon {
		port = defaultPort
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", "port " + quote(port) + " is no number from 0 to 65535"
	} else if port = strconv.FormatUint(n, 10); host == "" && !colon {
		return "", "the host is missing"
	}
	return net.JoinHostPort(host, port), ""
}

// badHost says what in a host that is no IPv6 address can be in none. The empty host is every
// interface of this machine.
func badHost(host string) string {
	if host == "*" {
		return "every interface of this machine is an empty host, as in forward://:24224"
	}
	for _, c := range host {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.', c == '_', c >= 0x80:
		default:
			return quote(string(c)) + " cannot be in the name of a host"
		}
	}
	return ""
}
