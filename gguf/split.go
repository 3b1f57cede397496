package gguf

import (
	"errors"
	"fmt"
	"strings"
)

// Keys of a model that is split over files named NAME-00001-of-00003.gguf. The
// first file holds all metadata; every file holds some of the tensors.
const (
	splitCountKey   = "split.count"
	splitNumberKey  = "split.no"
	splitTensorsKey = "split.tensors.count"
)

// shardNumbers returns over how many files the model is split and which of them
// this is, from 0; 1 and 0 for a model in one file.
func (f *File) shardNumbers() (count, number int, err error) {
	c, err := f.UintOr(splitCountKey, 1)
	if err != nil {
		return 0, 0, err
	}
	if c <= 1 {
		return 1, 0, nil
	}
	if c > maxShards {
		return 0, 0, f.KeyErrorf(splitCountKey, "%d shards, want at most %d", c, maxShards)
	}
	n, err := f.Uint(splitNumberKey)
	if err != nil {
		return 0, 0, err
	}
	if n >= c {
		return 0, 0, f.KeyErrorf(splitNumberKey, "this is shard %d, want 0 to %d", n, c-1)
	}
	return int(c), int(n), nil
}

// shardSuffix is the end of the name of shard number (from 0) of count.
func shardSuffix(number, count int) string {
	return fmt.Sprintf("-%05d-of-%05d.gguf", number+1, count)
}

// withShards completes a freshly opened file: it returns f itself, or for a
// shard the whole model. On an error everything is closed.
func (f *File) withShards() (*File, error) {
	count, number, err := f.shardNumbers()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if count == 1 {
		return f, nil
	}
	shards, err := f.openShards(count, number)
	if err == nil {
		err = merge(shards)
	}
	if err != nil {
		for _, s := range shards {
			err = errors.Join(err, s.Close())
		}
		return nil, err
	}
	return shards[0], nil
}

// openShards opens the files beside f, which is one of them. It returns those
// opened so far, f included, also on an error.
func (f *File) openShards(count, number int) ([]*File, error) {
	prefix, ok := strings.CutSuffix(f.name, shardSuffix(number, count))
	if !ok {
		return []*File{f}, f.KeyErrorf(splitNumberKey, "this is shard %d of %d of a split model, want a file name that ends in %s",
			number+1, count, Quote(shardSuffix(number, count)))
	}
	var shards []*File
	for i := range count {
		if i == number {
			shards = append(shards, f)
			continue
		}
		s, err := openOne(prefix + shardSuffix(i, count))
		if err != nil {
			if i < number {
				shards = append(shards, f)
			}
			return shards, fmt.Errorf("%w (shard %d of %d of a split model)", err, i+1, count)
		}
		shards = append(shards, s)
	}
	return shards, nil
}

// merge moves the tensors and mappings of all shards into the first.
func merge(shards []*File) error {
	first := shards[0]
	for i, s := range shards[1:] {
		count, number, err := s.shardNumbers()
		if err != nil {
			return err
		}
		if count != len(shards) || number != i+1 {
			return s.KeyErrorf(splitNumberKey, "this is shard %d of %d, want %d of %d", number+1, count, i+2, len(shards))
		}
		for _, t := range s.tensors {
			if _, again := first.tensorIndex[t.Name]; again {
				return s.Errorf(&t, "duplicate tensor: the name appears in two shards, want one")
			}
			t.Shard = number
			first.tensorIndex[t.Name] = len(first.tensors)
			first.tensors = append(first.tensors, t)
		}
	}
	want, err := first.UintOr(splitTensorsKey, uint64(len(first.tensors)))
	if err != nil {
		return err
	}
	if want != uint64(len(first.tensors)) {
		return first.KeyErrorf(splitTensorsKey, "the shards hold %d tensors, want %d", len(first.tensors), want)
	}
	for _, s := range shards[1:] { // only now: until here every shard owns its mapping
		first.mappings = append(first.mappings, s.mappings...)
		first.size += s.size
		s.mappings = nil
	}
	return nil
}
