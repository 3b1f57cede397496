package childprocess

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// Detach keeps Ctrl-C from a child: what it means is the parent's to decide.
func Detach(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// ClaimStdout keeps the pipe to the parent for replies, and sends what is printed to
// standard output to standard error.
func ClaimStdout() (*os.File, error) {
	replies := os.Stdout
	os.Stdout = os.Stderr
	return replies, windows.SetStdHandle(windows.STD_OUTPUT_HANDLE, windows.Handle(os.Stderr.Fd()))
}

// Executable is the file of the running program.
func Executable() (string, error) { return os.Executable() }
