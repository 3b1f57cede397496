//go:build unix

package llvmc

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Ctrl-C on a terminal, which goes to the group of this process, does not reach a child.
func TestChildHasItsOwnGroup(t *testing.T) {
	c := start(t, Options{Workers: 1})
	worker := <-c.slots
	defer func() { c.slots <- worker }()
	group, err := unix.Getpgid(worker.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if own := unix.Getpgrp(); group == own {
		t.Errorf("the child is in the group %d of this process", own)
	}
}
