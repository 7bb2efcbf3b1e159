// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"net"
	"strings"

	"github.com/spillwaylog/spillway/internal/urls"
)

// parseURL is urls.Parse for a URL that may be host:port alone.
func parseURL(text string) (*urls.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	return urls.Parse(text, schemes...)
}

// hostOf returns what a URL has of the address: all of it, and the host.
func hostOf(u *urls.URL) (address, host string, err error) {
	if u.Scheme != "http" && u.Scheme != "https" {
		return "", "", u.Errorf("it is host:port, http://host:port or https://host:port")
	}
	address = strings.TrimSuffix(strings.TrimPrefix(u.Path, "//"), "/")
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return "", "", u.Errorf("write host:port, such as %s", DefaultAddress)
	}
	return address, host, nil
}

// DefaultAddress is where a collector is asked that listens where the documents say.
const DefaultAddress = "127.0.0.1:24220"

// schemes are those of the URL.
var schemes = []string{"http", "https"}
