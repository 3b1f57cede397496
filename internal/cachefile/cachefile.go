package cachefile

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	// magic opens every entry; its last byte is the layout version.
	magic = "tgccach\x01"
	// headerSize is magic plus the SHA-256 of key and data.
	headerSize = len(magic) + sha256.Size
	// maxEntry bounds what Get reads: a larger file is not ours.
	maxEntry = 1 << 30
	// staleTemp is the age at which a temporary file is taken to be left
	// behind by a process that died between write and rename.
	staleTemp = time.Hour
	// touchAfter is the age at which a hit renews an entry's time. Eviction
	// removes the oldest first, and renewing on each hit would cost a system
	// call for nothing.
	touchAfter = time.Hour

	tempSuffix = ".tmp"
)

// FolderBytes bounds the folder that devices' machine code and schedules share (MaxBytes): a kernel is some 10 KB, a
// schedule some 100.
const FolderBytes = 1 << 30

// Cache is a directory of entries. The zero Cache and a nil Cache are valid
// and always empty. All methods are safe for concurrent use, also by several
// processes.
type Cache struct {
	root *os.Root
	// maxBytes bounds the total size; zero is unbounded.
	maxBytes int64
	size     sizeEstimate
}

// Option changes how a cache is opened.
type Option func(*Cache)

// MaxBytes bounds the total size of the entries. When a Put exceeds it the
// oldest entries are removed until three quarters of the bound are left.
func MaxBytes(n int64) Option { return func(c *Cache) { c.maxBytes = n } }

// DefaultDir is $TGC_CACHE_DIR, else "tgc" under the user's cache directory,
// else empty (no cache).
func DefaultDir() string {
	if dir := os.Getenv("TGC_CACHE_DIR"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "tgc")
}

// Open opens the cache in dir, creating the directory. An empty dir means
// DefaultDir. A directory that cannot be created gives a cache that is always
// empty; Enabled tells.
func Open(dir string, options ...Option) *Cache {
	c := &Cache{}
	for _, option := range options {
		option(c)
	}
	if dir == "" {
		dir = DefaultDir()
	}
	if dir == "" || os.MkdirAll(dir, 0o700) != nil {
		return c
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return c
	}
	c.root = root
	c.removeStaleTemps()
	return c
}

// Enabled reports whether the cache has a directory.
func (c *Cache) Enabled() bool { return c != nil && c.root != nil }

// Dir is the directory of an enabled cache, else empty.
func (c *Cache) Dir() string {
	if !c.Enabled() {
		return ""
	}
	return c.root.Name()
}

// Close releases the directory handle. Later calls find nothing.
func (c *Cache) Close() error {
	if !c.Enabled() {
		return nil
	}
	return c.root.Close()
}

// Get returns the data stored under key. A missing, unreadable or corrupt
// entry is a miss; a corrupt one is removed.
func (c *Cache) Get(key string) ([]byte, bool) {
	if !c.Enabled() {
		return nil, false
	}
	name := entryName(key)
	info, err := c.root.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxEntry {
		return nil, false
	}
	file, err := c.root.ReadFile(name)
	if err != nil {
		return nil, false
	}
	if len(file) < headerSize || !bytes.Equal(file[:headerSize], header(key, file[headerSize:])) {
		_ = c.root.Remove(name) // a corrupt entry is a miss either way
		return nil, false
	}
	if now := time.Now(); now.Sub(info.ModTime()) > touchAfter {
		_ = c.root.Chtimes(name, now, now) // only the order of eviction
	}
	return file[headerSize:], true
}

// Put stores data under key, replacing what was there. The error is for
// those who want to log it: a failed Put leaves the cache as it was.
func (c *Cache) Put(key string, data []byte) error {
	if !c.Enabled() {
		return nil
	}
	name := entryName(key)
	temp, err := c.writeTemp(name, header(key, data), data)
	if err != nil {
		return fmt.Errorf("cachefile: %s: %w", c.root.Name(), err)
	}
	if err := c.root.Rename(temp, name); err != nil {
		_ = c.root.Remove(temp) // best effort after the rename failed
		return fmt.Errorf("cachefile: %s: %w", c.root.Name(), err)
	}
	c.bound(int64(headerSize + len(data)))
	return nil
}

// writeTemp writes a new file beside the entry and returns its name. A whole
// file that is later found short (no fsync is done) fails its checksum.
func (c *Cache) writeTemp(name string, parts ...[]byte) (string, error) {
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", err
	}
	temp := name + "." + hex.EncodeToString(random[:]) + tempSuffix
	file, err := c.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	var writeErr error
	for _, part := range parts {
		if _, err := file.Write(part); err != nil {
			writeErr = err
			break
		}
	}
	if err := errors.Join(writeErr, file.Close()); err != nil {
		_ = c.root.Remove(temp) // best effort after the write failed
		return "", err
	}
	return temp, nil
}

// entryName is the file name of a key. Entries are flat: a cache holds some
// thousands of files, which file systems look up by hash.
func entryName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// header is the fixed start of an entry's file. The checksum covers the key,
// so that a renamed file is a miss and never another key's data.
func header(key string, data []byte) []byte {
	hash := sha256.New()
	keySum := sha256.Sum256([]byte(key))
	hash.Write(keySum[:])
	hash.Write(data)
	return hash.Sum([]byte(magic))
}

// Usage is the number of entries and their size.
func (c *Cache) Usage() (entries int, bytes int64) {
	if !c.Enabled() {
		return 0, 0
	}
	for _, info := range c.kept() {
		entries++
		bytes += info.Size()
	}
	return entries, bytes
}

// Clear removes all entries. Who uses one at the time keeps it.
func (c *Cache) Clear() error {
	if !c.Enabled() {
		return nil
	}
	for _, info := range c.kept() {
		if err := c.root.Remove(info.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// entries lists the regular files of the cache; a concurrent removal is not
// an error.
func (c *Cache) entries() []fs.FileInfo {
	listed, err := fs.ReadDir(c.root.FS(), ".")
	if err != nil {
		return nil
	}
	var infos []fs.FileInfo
	for _, entry := range listed {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			infos = append(infos, info)
		}
	}
	return infos
}
