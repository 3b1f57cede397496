package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// tmuxScreen is a terminal that tmux draws, so that a test sees what a person does.
type tmuxScreen struct {
	t      *testing.T
	socket string
}

// showsStatus is a shell that runs a program and shows its status. tmux 3.3 tells a pane's
// own, but now and then never hears that the program ended.
const showsStatus = `"$@"; echo "status $?"; exec sleep 600`

func startUnderTmux(t *testing.T, dir string, args ...string) *tmuxScreen {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("there is no tmux")
	}
	s := &tmuxScreen{t, filepath.Join(dir, "tmux")}
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", s.socket, "kill-server").Run() })
	s.tmux(append([]string{"new-session", "-d", "-x", "80", "-y", "50", "-c", dir, "-e", "TGC_CACHE_DIR=" + dir, "-e", "PATH=" + os.Getenv("PATH"),
		"sh", "-c", showsStatus, "sh"}, args...)...)
	return s
}

func (s *tmuxScreen) tmux(args ...string) string {
	s.t.Helper()
	c := exec.Command("tmux", append([]string{"-S", s.socket, "-f", "/dev/null"}, args...)...)
	c.Env = append(os.Environ(), "TMUX=", "LC_ALL=C.UTF-8")
	out, err := c.CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// keys presses keys by tmux's names for them, and texts.
func (s *tmuxScreen) keys(keys ...string) {
	s.t.Helper()
	s.tmux(append([]string{"send-keys"}, keys...)...)
}

// shows waits until the screen, below the line with the model's name, is this.
func (s *tmuxScreen) shows(want string) {
	s.t.Helper()
	got := ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		_, got, _ = strings.Cut(s.tmux("capture-pane", "-p"), "Ctrl-D leaves\n")
		lines := strings.Split(got, "\n")
		for i := range lines {
			lines[i] = strings.TrimRight(lines[i], " ")
		}
		if got = strings.Trim(strings.Join(lines, "\n"), "\n"); got == want {
			return
		}
	}
	s.t.Fatalf("the screen shows\n%s\nwant\n%s", got, want)
}

// A session under tmux: keys are typed, and the screen is compared.
func TestChatUnderTmux(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	dir := t.TempDir()
	s := startUnderTmux(t, dir, "tgc", "chat", "stories", "--device", chatDevice(t, dir), "--threads", "1", "--temp", "0", "-n", "8", "--ctx", "64")
	s.shows(">")
	s.keys("Once upon a tine", "BSpace", "BSpace", "m", "e")
	s.shows("> Once upon a time")
	s.keys("Enter")
	answer := "> Once upon a time\n, there was a patient child named Clara\n(cut at 8 tokens; -n sets the limit)\n\n>"
	s.shows(answer)
	s.keys("/save a.json", "Enter")
	saved := strings.TrimSuffix(answer, ">") + "> /save a.json\n(2 messages written to a.json)\n>"
	s.shows(saved)
	s.keys("not this", "C-u", "/rese", "Tab", "Enter")
	reset := strings.TrimSuffix(saved, ">") + "> /reset\n(a new conversation)\n>"
	s.shows(reset)
	s.keys("C-c")
	cancelled := strings.TrimSuffix(reset, ">") + "> ^C\n(Ctrl-D or /exit leaves)\n>"
	s.shows(cancelled)
	s.keys("/load a.json", "Enter")
	loaded := strings.TrimSuffix(cancelled, ">") + "> /load a.json\n(2 messages read from a.json)\n>"
	s.shows(loaded)
	s.keys("C-d")
	s.shows(loaded + " status 0")
}

// speeds are what differs from one run to the next.
var speeds = regexp.MustCompile(`[0-9.]+tok/s`)

// solid is text without blanks, line ends and speeds, so that it may be wrapped anywhere.
func solid(text string) string {
	return speeds.ReplaceAllString(strings.Join(strings.Fields(text), ""), "Ntok/s")
}

// The recording in docs/chat.md is what a terminal shows today.
func TestChatRecording(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	text, err := os.ReadFile("../../docs/chat.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "```\n$ tgc ")
	block, _, _ = strings.Cut(block, "\n$\n```")
	command, recording, found := strings.Cut(block, "\n")
	if !found {
		t.Fatal("docs/chat.md has no recording that begins with $ tgc and ends with $")
	}
	dir := t.TempDir()
	device := chatDevice(t, dir)
	s := startUnderTmux(t, dir, append([]string{"tgc"}, append(strings.Fields(command), "--device", device)...)...)
	// Up to the end of each typed line the screen is compared, then the line is sent.
	_, recording, _ = strings.Cut(recording, recorded)
	recording = recorded + recording
	want := ""
	for line := range strings.Lines(recording) {
		typed, isTyped := strings.CutPrefix(line, "> ")
		if !isTyped {
			typed, isTyped = strings.CutPrefix(line, ". ")
		}
		if isTyped {
			s.showsSolid(want + line[:1])
			s.keys("-l", strings.TrimSuffix(typed, "\n"))
			s.keys("Enter")
		}
		want += line
	}
	s.showsSolid(want + "status 0")
}

// recorded is where what is compared begins, after a line with the device.
const recorded = "loading stories\n"

// showsSolid waits until the screen is a text however it is wrapped.
func (s *tmuxScreen) showsSolid(want string) {
	s.t.Helper()
	want = solid(want)
	got := ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		_, got, _ = strings.Cut(s.tmux("capture-pane", "-p", "-S", "-"), recorded)
		if got = solid(recorded + got); got == want {
			return
		}
	}
	s.t.Fatalf("the screen shows\n%s\nwant\n%s", got, want)
}
