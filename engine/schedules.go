package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"tgc/internal/cachefile"
	"tgc/ir"
	"tgc/schedule"
)

// Schedules keeps schedules on disk, so that a graph is scheduled once and not by every process that compiles it: that is
// most of the time of a compilation. A schedule is a function of the graph, of the options and of the compiler: the
// key has the text of the first two and, for the third, a hash of the program. What is kept has no records for people
// to read; a compilation that explains or traces schedules its graph itself.
//
// A nil *Schedules keeps nothing. It is safe for concurrent use, also by several processes.
type Schedules struct {
	cache   *cachefile.Cache
	program func() (string, error)
}

// OpenSchedules keeps schedules in a folder; an empty one is the user's (cachefile.DefaultDir).
func OpenSchedules(dir string) *Schedules {
	return &Schedules{cachefile.Open(dir, cachefile.MaxBytes(cachefile.FolderBytes)), sync.OnceValues(hashOfProgram)}
}

// Close releases the folder.
func (s *Schedules) Close() error {
	if s == nil {
		return nil
	}
	return s.cache.Close()
}

// hashOfProgram tells this build of the compiler from every other.
func hashOfProgram() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// keyOf is what a schedule is kept under; "" where it is not.
func (s *Schedules) keyOf(sink *ir.UOp, opt *schedule.Options) string {
	if s == nil || !s.cache.Enabled() || opt.Explain || !opt.Control.Plain() {
		return ""
	}
	program, err := s.program()
	if err != nil {
		return ""
	}
	var key strings.Builder
	fmt.Fprintf(&key, "schedule\n%s\n%v\n%+v\n%v\n", program, opt.Off, opt.Profile, opt.Decisions.List())
	if err := ir.Print(&key, sink); err != nil { // a graph without a text has no key
		return ""
	}
	return key.String()
}

// get is the schedule that is kept under a key.
func (s *Schedules) get(a *ir.Arena, key string) (*schedule.Schedule, bool) {
	if key == "" {
		return nil, false
	}
	data, ok := s.cache.Get(key)
	if !ok {
		return nil, false
	}
	found, err := schedule.Restore(a, data)
	return found, err == nil
}

// put keeps a schedule. A folder that cannot be written keeps nothing.
func (s *Schedules) put(key string, found *schedule.Schedule) {
	if key == "" {
		return
	}
	if data, err := found.Store(); err == nil {
		_ = s.cache.Put(key, data)
	}
}
