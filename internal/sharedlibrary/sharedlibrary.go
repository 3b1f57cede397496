// Package sharedlibrary opens shared libraries (.so, .dylib, .dll) and finds their
// functions, without cgo. Nothing is ever closed: what a library has started may run on.
package sharedlibrary

import "errors"

// Scope is who sees the symbols of a library.
type Scope int

const (
	Local  Scope = iota // who asks this library
	Global              // libraries that are opened later, too
)

// ErrNotFound is wrapped by the errors of this package where a system says no more.
var ErrNotFound = errors.New("not found")
