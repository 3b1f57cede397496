// Package passtable holds the test that writes docs/passes.md: every pass of the
// compiler, why it is there, and in how much of a zoo of programs it changes
// anything. A pass that works for one program only shows there.
package passtable
