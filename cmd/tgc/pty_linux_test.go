package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openPTY makes a pseudo-terminal: what a user's fingers and eyes have, and what the
// program has.
func openPTY(t *testing.T) (user, program *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal here: %v", err)
	}
	t.Cleanup(func() { user.Close() })
	if err := unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Skipf("no pseudo-terminal here: %v", err)
	}
	n, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Skipf("no pseudo-terminal here: %v", err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal here: %v", err)
	}
	return user, program
}

// keyboard is a session of the program on a pseudo-terminal.
type keyboard struct {
	t      *testing.T
	user   *os.File
	cmd    *exec.Cmd
	mutex  sync.Mutex
	screen bytes.Buffer
	seen   int // bytes of the screen's text that expectations have used up
}

func startOnTerminal(t *testing.T, cache string, args ...string) *keyboard {
	t.Helper()
	return startWithColumns(t, 80, cache, args...)
}

func startWithColumns(t *testing.T, columns uint16, cache string, args ...string) *keyboard {
	t.Helper()
	user, program := openPTY(t)
	if err := unix.IoctlSetWinsize(int(user.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatal(err)
	}
	k := &keyboard{t: t, user: user}
	k.cmd = exec.Command("tgc", args...)
	k.cmd.Env = append(os.Environ(), "TERM=xterm", "TGC_CACHE_DIR="+cache)
	k.cmd.Stdin, k.cmd.Stdout, k.cmd.Stderr = program, program, program
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	program.Close()
	t.Cleanup(func() { _ = k.cmd.Process.Kill() })
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := user.Read(buffer)
			k.mutex.Lock()
			k.screen.Write(buffer[:n])
			k.mutex.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return k
}

// press types keys.
func (k *keyboard) press(keys string) {
	k.t.Helper()
	if _, err := k.user.WriteString(keys); err != nil {
		k.t.Fatal(err)
	}
}

// escapes are what moves the cursor and clears lines.
var escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]|\r")

// shown is what has been on the screen since the last expectation.
func (k *keyboard) shown() string {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return escapes.ReplaceAllString(k.screen.String(), "")[k.seen:]
}

// nextPrompt is a prompt that stands on a fresh line after an answer.
const nextPrompt = "\n\n> "

// expect waits until a text is on the screen, after what was expected before.
func (k *keyboard) expect(text string) {
	k.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if before, _, found := strings.Cut(k.shown(), text); found {
			k.seen += len(before) + len(text)
			return
		}
	}
	k.t.Fatalf("no %q on the screen: %q", text, k.shown())
}

// ends waits for the end of the program.
func (k *keyboard) ends(status int) {
	k.t.Helper()
	done := make(chan error, 1)
	go func() { done <- k.cmd.Wait() }()
	select {
	case <-done:
		if got := k.cmd.ProcessState.ExitCode(); got != status {
			k.t.Errorf("exit status %d, want %d; the screen: %q", got, status, k.shown())
		}
	case <-time.After(30 * time.Second):
		k.t.Fatalf("the program does not end; the screen: %q", k.shown())
	}
}

// device is the CPU where there is a compiler: the interpreter answers slowly.
func chatDevice(t *testing.T, cache string) string {
	cmd := exec.Command("tgc", "run", "tiny", "--device", "cpu", "-n", "1", "--tokens", "1")
	cmd.Env = append(os.Environ(), "TGC_CACHE_DIR="+cache)
	if cmd.Run() != nil {
		return "interp"
	}
	return "cpu"
}

// A session as a person has it: a line is edited, an answer stopped, the line before
// fetched back, commands, a message of several lines, and the end.
func TestChatOnTerminal(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	cache := t.TempDir()
	device := chatDevice(t, cache)
	k := startOnTerminal(t, cache, "chat", "tiny", "--device", device, "--threads", "1", "-n", "4", "--temp", "0")
	k.expect("Ctrl-D leaves")
	k.press("helo\x1b[Dl\r") // the left arrow, then the letter that was forgotten
	k.expect("hello")
	k.expect(nextPrompt)
	k.press("/save " + cache + "/a.json\r")
	k.expect("2 messages written")
	if data, err := os.ReadFile(cache + "/a.json"); err != nil || !strings.Contains(string(data), `"hello"`) {
		t.Errorf("the message was not what was typed: %s, %v", data, err)
	}
	k.press("\x1b[A\x1b[A") // back to the first line
	k.expect("hello")
	k.press(" again\r")
	k.expect(nextPrompt)
	k.press("thrown away\x03")
	k.expect("/exit leaves")
	k.expect("\n> ")
	k.press("\"\"\"\r")
	k.expect("\n. ")
	k.press("first\r")
	k.expect("\n. ")
	k.press("second\"\"\"\r")
	k.expect(nextPrompt)
	k.press("/sta\t\r") // completed
	k.expect("3 answers")
	k.press("/save " + cache + "/b.json\r")
	k.expect("6 messages written")
	if data, err := os.ReadFile(cache + "/b.json"); err != nil || !strings.Contains(string(data), `"first\nsecond"`) || !strings.Contains(string(data), `"hello again"`) {
		t.Errorf("the conversation: %s, %v", data, err)
	}
	k.press("\x04")
	k.ends(0)
	info, err := os.Stat(cache + "/" + historyName)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the history: %v, %v", info, err)
	}
}

// Ctrl-C stops an answer and not the program, again and again; SIGTERM ends it.
func TestInterruptOnTerminal(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	cache := t.TempDir()
	device := chatDevice(t, cache)
	// Without the tokens that end an answer, only Ctrl-C and the context's end do.
	k := startOnTerminal(t, cache, "chat", "tiny", "--device", device, "--threads", "1", "--temp", "0",
		"--logit-bias", "2039-inf", "--logit-bias", "2046-inf", "--logit-bias", "2047-inf")
	k.expect("Ctrl-D leaves")
	for i := range 6 {
		k.press("tell me a long story\r")
		k.expect("story\n")
		// At once, while steps compile, and while tokens come.
		time.Sleep(time.Duration(i) * 15 * time.Millisecond)
		k.press("\x03")
		k.expect("topped")
		k.expect(nextPrompt)
	}
	k.press("/stats\r")
	k.expect("positions used")
	if err := k.cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	k.ends(exitInterrupted)
}

// On a terminal a run says why it ended and an error has a colour, unless NO_COLOR is set.
func TestRunOnTerminal(t *testing.T) {
	cache := t.TempDir()
	k := startOnTerminal(t, cache, "run", "tiny", "--device", "interp", "--tokens", "1", "-n", "2", "--temp", "0")
	k.expect("ended: 2 tokens (-n)")
	k.ends(0)
	for _, plain := range []string{"", "1"} {
		t.Setenv("NO_COLOR", plain)
		k := startOnTerminal(t, cache, "rum")
		k.expect("is it run?")
		k.ends(2)
		k.mutex.Lock()
		coloured := strings.Contains(k.screen.String(), "\x1b[31mtgc:\x1b[0m")
		k.mutex.Unlock()
		if coloured != (plain == "") {
			t.Errorf("NO_COLOR=%q: %q", plain, k.screen.String())
		}
	}
}

// What is typed while the model loads or answers is there at the next prompt, in its order,
// also on a terminal that does not know its width.
func TestKeysTypedAhead(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	cache := t.TempDir()
	args := []string{"chat", "stories", "--device", chatDevice(t, cache), "--threads", "1", "--temp", "0", "-n", "40"}
	for _, columns := range []uint16{80, 0, 5} {
		k := startWithColumns(t, columns, cache, args...)
		k.expect("loading")
		k.press("Once upon\r/stats\r")
		k.expect("1 answer: 40 tokens")
		k.press("\x04")
		k.ends(0)

		k = startWithColumns(t, columns, cache, args...)
		k.expect("Ctrl-D leaves")
		for _, keys := range []string{"Once upon\r", "/st", "ats\r", "\x04"} {
			k.press(keys)
		}
		k.expect("1 answer: 40 tokens")
		k.ends(0)
	}
	// Only a terminal that hands over keys, and not lines, keeps one that ends the input.
	k := startOnTerminal(t, cache, args...)
	k.expect("loading")
	k.press("/stats\r\x04")
	k.expect("0 answers")
	k.ends(0)
}

// A prompt that takes long says so, and Ctrl-C ends it.
func TestProgressOnTerminal(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	k := startOnTerminal(t, t.TempDir(), "run", "tiny", "--device", "interp", "-p", strings.Repeat("word ", 900), "-n", "1")
	k.expect("reading the prompt of ")
	k.press("\x03")
	k.expect("interrupted")
	k.ends(exitInterrupted)
}
