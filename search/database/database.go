// Package database keeps plans that searches have found: a folder with a file for each kernel,
// which several processes may read and write. What it says is checked before it is believed: a
// file that is cut or changed, of another kernel, target or version of the Opts is no entry, and
// a plan that gives another source than when it was timed is not used (engine checks that).
package database

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tgc/internal/atomicfile"
	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/packed"
	"tgc/target"
)

// Key names a kernel on a target.
type Key string

// KeyOf is the key of a kernel in canonical form: that of its class (ir.Class), so that a plan of
// attention is found for a cache of another size. What of a target changes which plan is best or
// which program a plan makes takes part; prices do not.
func KeyOf(sink *ir.UOp, desc *target.Desc) Key {
	sum := sha256.New()
	fmt.Fprintln(sum, plan.Version(), BoardOf(desc))
	fmt.Fprint(sum, ir.Text(ir.Class(ir.NewArena(), sink)))
	return Key(fmt.Sprintf("%x", sum.Sum(nil)[:16]))
}

// BoardOf says what of a target an entry is for.
func BoardOf(desc *target.Desc) string {
	board := fmt.Sprintf("%s workers=%d threads=%d shared=%d vector=%d planes=%t records=%s", desc.Name, desc.Cost.Workers, desc.MaxThreads, desc.SharedBytes, desc.VectorBytes, desc.Planes, recordsText(desc.Records))
	if desc.Kind == target.CPU { // a GPU's follow from its name
		board += fmt.Sprintf(" l1=%d l2=%d", desc.CacheL1Bytes, desc.CacheL2Bytes)
	}
	return board
}

// recordsText says which weights have interleaved rows.
func recordsText(bits int) string {
	switch bits {
	case 0:
		return "false"
	case packed.RecordBits:
		return "true"
	}
	return fmt.Sprint(bits)
}

// Entry is what was found for a kernel.
type Entry struct {
	Key    Key       `json:"key"`
	Kernel string    `json:"kernel"` // its name, for people
	Target string    `json:"target"`
	Opts   string    `json:"opts"` // their version
	Plan   string    `json:"plan"`
	Source string    `json:"source"`         // hash of the source that the plan gives the kernel's class
	Over   string    `json:"over,omitempty"` // the heuristic's plan then
	Before float64   `json:"before_us"`      // a call with it
	After  float64   `json:"after_us"`
	Reason string    `json:"reason"`
	Date   time.Time `json:"date"`

	// Decision is what a rule of the schedule does with a value (schedule.Decision), of an entry that
	// has no plan: Source is then the version of the rules, and times are those of the step.
	Decision string `json:"decision,omitempty"`

	// Kept is a kernel that was searched and keeps the heuristic's plan.
	Kept bool `json:"kept,omitempty"`

	// Unproven is an entry from elsewhere: a search offers it as a candidate, and nothing else
	// uses it.
	Unproven bool `json:"unproven,omitempty"`
}

// NewEntry is an entry for a kernel, now.
func NewEntry(sink *ir.UOp, desc *target.Desc) Entry {
	return Entry{Key: KeyOf(sink, desc), Target: BoardOf(desc), Opts: plan.Version(), Date: time.Now().UTC().Truncate(time.Second)}
}

// Against reports whether what was timed against a plan (Entry.Over; empty: any) was timed against
// the heuristic's of a kernel. For a cache of another size that may be another one, which is better
// than both: LLaMA 3.2 1B on an H200 makes 2,780 tokens a second over 128 rows, and 2,620 with a plan
// that was found over 256 (docs/bench/h200-depth.txt).
func Against(sink *ir.UOp, over string, heuristics plan.Plan) bool {
	return over == "" || over == heuristics.String() || !ir.HasCapacities(sink)
}

// DB is a folder of entries.
type DB struct{ dir string }

// Open opens a folder, which need not exist.
func Open(dir string) *DB { return &DB{dir} }

// Dir is the folder.
func (d *DB) Dir() string { return d.dir }

// DefaultDir is where the user's plans are, apart from the cache: they cannot be made again in
// a moment. Empty where there is no such place.
func DefaultDir() string {
	base := os.Getenv("XDG_DATA_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		base = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(base, "tgc", "plans")
}

const (
	extension = ".plan"
	decisions = ".decision"   // of the files of decisions, which a compilation reads all
	header    = "tgc-plan 1 " // of a file, with the hash of what follows

	// largest bounds the files that are read, and exports.
	largest       = 1 << 20
	largestExport = 1 << 28
)

// ErrCorrupt is wrapped by the error of a file that is no entry.
var ErrCorrupt = errors.New("no entry of a database of plans")

func (d *DB) path(key Key) string { return filepath.Join(d.dir, string(key)+extension) }

// pathOf is where an entry is.
func (d *DB) pathOf(e *Entry) string {
	if e.Decision != "" {
		return filepath.Join(d.dir, string(e.Key)+decisions)
	}
	return d.path(e.Key)
}

// ok reports a key as KeyOf makes them.
func (k Key) ok() bool {
	return len(k) == 32 && strings.Trim(string(k), "0123456789abcdef") == ""
}

// Put stores an entry; one that was there is replaced.
func (d *DB) Put(e Entry) error {
	if err := e.check(); err != nil {
		return err
	}
	body, err := json.MarshalIndent(e, "", " ")
	if err != nil {
		return err
	}
	body = append(body, '\n')
	if err := os.MkdirAll(d.dir, 0o755); err != nil {
		return err
	}
	return atomicfile.Write(d.pathOf(&e), append([]byte(headerOf(body)), body...))
}

func headerOf(body []byte) string { return fmt.Sprintf("%s%x\n", header, sha256.Sum256(body)) }

// Find returns the entry of a kernel; ok is false where there is none. An error says why a file
// that is there is not believed.
func (d *DB) Find(key Key) (e Entry, ok bool, err error) {
	e, err = read(d.path(key))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Entry{}, false, nil
	case err == nil && e.Key != key:
		err = fmt.Errorf("%s: %w: it is that of %s", d.path(key), ErrCorrupt, e.Key)
	}
	return e, err == nil, err
}

func read(path string) (e Entry, err error) {
	f, err := os.Open(path)
	if err != nil {
		return e, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, largest))
	if err != nil {
		return e, err
	}
	first, body, _ := strings.Cut(string(data), "\n")
	if first+"\n" != headerOf([]byte(body)) {
		return e, fmt.Errorf("%s: %w: cut short or changed", path, ErrCorrupt)
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		return e, fmt.Errorf("%s: %w: %w", path, ErrCorrupt, err)
	}
	if err := e.check(); err != nil {
		return e, fmt.Errorf("%s: %w", path, err)
	}
	return e, nil
}

// check refuses what no search writes.
func (e *Entry) check() error {
	if e.Decision != "" {
		return e.checkDecision()
	}
	_, err := plan.Parse(e.Plan)
	switch {
	case !e.Key.ok():
		return fmt.Errorf("%w: key %.40q", ErrCorrupt, e.Key)
	case e.Opts != plan.Version():
		return fmt.Errorf("%w of this version: its Opts are %q, these %q", ErrCorrupt, e.Opts, plan.Version())
	case err != nil:
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}

// files lists those with an extension.
func (d *DB) files(extension string) (paths []string) {
	list, _ := os.ReadDir(d.dir) // a folder that cannot be read has none
	for _, f := range list {
		if strings.HasSuffix(f.Name(), extension) {
			paths = append(paths, filepath.Join(d.dir, f.Name()))
		}
	}
	return paths
}

// Remove removes the entry of a kernel, if there is one.
func (d *DB) Remove(key Key) error {
	if err := os.Remove(d.path(key)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// List returns all entries, by target and kernel, and the reasons why other files are none.
func (d *DB) List() (list []Entry, bad []error) {
	for _, path := range append(d.files(extension), d.files(decisions)...) {
		e, err := read(path)
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed just now
		case err != nil:
			bad = append(bad, err)
		default:
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(x, y Entry) int {
		return cmp.Or(cmp.Compare(x.Target, y.Target), cmp.Compare(x.Kernel, y.Kernel), cmp.Compare(x.Key, y.Key))
	})
	return list, bad
}

// Export writes all entries as text that Import reads: a JSON object a line.
func (d *DB) Export(w io.Writer) (n int, bad []error, err error) {
	list, bad := d.List()
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	for _, e := range list {
		if err := out.Encode(e); err != nil {
			return n, bad, err
		}
		n++
	}
	return n, bad, nil
}

// Import stores entries from elsewhere as unproven, but none over an entry that was found here.
func (d *DB) Import(r io.Reader) (n int, err error) {
	in := json.NewDecoder(io.LimitReader(r, largestExport))
	for {
		var e Entry
		if err := in.Decode(&e); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return n, fmt.Errorf("entry %d: %w: %w", n+1, ErrCorrupt, err)
		}
		if err := e.check(); err != nil {
			return n, fmt.Errorf("entry %d: %w", n+1, err)
		}
		if old, err := read(d.pathOf(&e)); err == nil && old.Key == e.Key && !old.Unproven {
			continue
		}
		e.Unproven = true
		if err := d.Put(e); err != nil {
			return n, err
		}
		n++
	}
}
