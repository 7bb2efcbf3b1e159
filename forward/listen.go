// SPDX-License-Identifier: Apache-2.0

package forward

import "errors"

// ListenAndServe listens on the address of a network, "tcp", "tcp4", "tcp6" or "unix", and then calls Serve.
func (s *Server) ListenAndServe(network, address string) error {
	return errors.ErrUnsupported
}
