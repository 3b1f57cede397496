// Package filelock locks files against other processes.
package filelock
