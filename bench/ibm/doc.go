// SPDX-License-Identifier: Apache-2.0

// Package ibm measures IBM/fluent-forward-go, which has neither buffer nor retry: batches of 100
// made by its user, as its documentation shows. It is a program of its own because that client
// cannot be in one with the official client.
package ibm
