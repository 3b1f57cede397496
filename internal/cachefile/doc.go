// Package cachefile is a content-addressed cache of files: compiled objects,
// re-laid tables, anything that can be made again from its key.
//
// An entry lives in one file named by the SHA-256 of its key. Writers write a
// temporary file and rename it, so two processes may share one directory and
// a reader sees a whole entry or none. Every read checks a checksum over key
// and data; what fails the check is removed and counts as a miss. A cache that
// cannot be created or written is silently empty: a cache is never a reason
// for a program to fail.
package cachefile
