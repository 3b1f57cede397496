//go:build !unix

package database_test

func maybeWriteToFullDisk() {}
