//go:build unix

package childprocess

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// Detach keeps signals of the terminal from a child: Ctrl-C goes to all of the terminal's
// foreground group, and what it means is the parent's to decide.
func Detach(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// ClaimStdout keeps the pipe to the parent for replies, and sends whatever libraries print to
// standard output to standard error.
func ClaimStdout() (*os.File, error) {
	fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	if err := redirect(2, 1); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "replies"), nil
}
