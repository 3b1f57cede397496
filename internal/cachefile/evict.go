package cachefile

import (
	"encoding/hex"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"
)

// sizeEstimate counts the bytes this process believes the cache to hold. It
// may be off by what other processes write; each eviction measures anew.
type sizeEstimate struct {
	mu       sync.Mutex
	measured bool
	bytes    int64
}

// bound records that added bytes were written and evicts the oldest entries
// if the cache has outgrown its bound.
func (c *Cache) bound(added int64) {
	if c.maxBytes <= 0 {
		return
	}
	c.size.mu.Lock()
	defer c.size.mu.Unlock()
	c.size.bytes += added
	if c.size.measured && c.size.bytes <= c.maxBytes {
		return
	}
	c.size.bytes = c.evict()
	c.size.measured = true
}

// evict removes the oldest entries, if their total exceeds the bound, until
// three quarters of the bound are left, and returns the total that remains.
func (c *Cache) evict() int64 {
	infos := c.kept()
	slices.SortFunc(infos, func(a, b fs.FileInfo) int {
		if byTime := a.ModTime().Compare(b.ModTime()); byTime != 0 {
			return byTime
		}
		return strings.Compare(a.Name(), b.Name())
	})
	var total int64
	for _, info := range infos {
		total += info.Size()
	}
	if total <= c.maxBytes {
		return total
	}
	for _, info := range infos {
		if total <= c.maxBytes/4*3 {
			break
		}
		if c.root.Remove(info.Name()) == nil {
			total -= info.Size()
		}
	}
	return total
}

// removeStaleTemps removes what a killed writer left behind.
func (c *Cache) removeStaleTemps() {
	for _, info := range c.entries() {
		if strings.HasSuffix(info.Name(), tempSuffix) && time.Since(info.ModTime()) > staleTemp {
			_ = c.root.Remove(info.Name()) // another process may have been first
		}
	}
}

// kept lists the files of entries.
func (c *Cache) kept() []fs.FileInfo {
	return slices.DeleteFunc(c.entries(), func(info fs.FileInfo) bool { return !isEntry(info.Name()) })
}

// isEntry tells entries from foreign files, which are never removed.
func isEntry(name string) bool {
	raw, err := hex.DecodeString(name)
	return err == nil && len(raw) == 32
}
