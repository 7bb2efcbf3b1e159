// SPDX-License-Identifier: Apache-2.0

// Package docs runs what the documents tell their readers to run, and looks up what they name.
package docs
