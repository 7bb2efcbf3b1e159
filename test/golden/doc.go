// SPDX-License-Identifier: Apache-2.0

// Package golden reads with today's code what earlier code left when it was killed: data
// directories, rings and spills.
package golden
