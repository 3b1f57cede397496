//go:build !linux

package processor

func identify() identity { return identity{} }
