package tensor_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"tgc/internal/oracle"
	_ "tgc/internal/rarecollection"
	"tgc/runtime/devices"
)

var vectorGroup = flag.String("group", "", "run the operator vectors of this group only")

// TestOpVectors runs every case of the operator vectors (the oracle's folder
// ops, and the folders that TGC_OP_VECTORS lists) on the device TGC_DEVICE (cpu
// by default), forward and backward, and prints a line for each group. An op,
// attribute value or dtype that the library lacks counts as missing and fails.
func TestOpVectors(t *testing.T) {
	var cases []*vectorCase
	seen := make(map[string]bool) // the larger set of the oracle holds the smaller
	for _, dir := range oracle.Dirs(t, "ops") {
		for _, c := range readVectors(t, dir) {
			if name := c.group + "/" + c.Name; !seen[name] {
				seen[name] = true
				cases = append(cases, c)
			}
		}
	}
	for _, dir := range filepath.SplitList(os.Getenv("TGC_OP_VECTORS")) {
		cases = append(cases, readVectors(t, dir)...)
	}
	if *vectorGroup != "" {
		cases = slices.DeleteFunc(cases, func(c *vectorCase) bool { return c.group != *vectorGroup })
	}
	runVectors(t, cases)
	for _, part := range []struct {
		name    string
		outcome func(c *vectorCase) error
		asked   func(c *vectorCase) bool
	}{
		{"forward", func(c *vectorCase) error { return c.forward }, func(*vectorCase) bool { return true }},
		{"gradient", func(c *vectorCase) error { return c.backward }, (*vectorCase).hasGradient},
	} {
		tally(t, cases, part.name, part.outcome, part.asked)
	}
}

// errMissing is wrapped by the outcome of a case that the library cannot state.
var errMissing = errors.New("missing")

// tally prints the counts of each group and reports every case that did not
// pass.
func tally(t *testing.T, cases []*vectorCase, part string, outcome func(*vectorCase) error, asked func(*vectorCase) bool) {
	var groups []string
	counts := make(map[string]*[3]int)
	for _, c := range cases {
		if !asked(c) {
			continue
		}
		n := counts[c.group]
		if n == nil {
			n = new([3]int)
			counts[c.group] = n
			groups = append(groups, c.group)
		}
		switch err := outcome(c); {
		case err == nil:
			n[0]++
		case errors.Is(err, errMissing):
			n[2]++
			t.Errorf("%s %s/%s: %v", part, c.group, c.Name, err)
		default:
			n[1]++
			t.Errorf("%s %s/%s (%s %s): %v", part, c.group, c.Name, c.Op, c.Attrs, err)
		}
	}
	slices.Sort(groups)
	for _, group := range groups {
		n := counts[group]
		fmt.Printf("%s %s: %d passed, %d failed, %d missing\n", part, group, n[0], n[1], n[2])
	}
}

// runVectors runs the cases on two devices at once: compiling takes the time,
// and a device compiles one program after another.
func runVectors(t *testing.T, cases []*vectorCase) {
	t.Helper()
	queue := make(chan *vectorCase)
	var workers sync.WaitGroup
	for range 2 {
		dev := openDevice(t)
		workers.Go(func() {
			for c := range queue {
				c.forward = c.runForward(t.Context(), dev)
				if c.hasGradient() {
					c.backward = c.runBackward(t.Context(), dev)
				}
			}
		})
	}
	for _, c := range cases {
		queue <- c
	}
	close(queue)
	workers.Wait()
}

// openDevice opens the device that TGC_DEVICE names, the CPU by default, or
// skips the test where there is no libLLVM.
func openDevice(t *testing.T) *devices.Device {
	t.Helper()
	name := os.Getenv("TGC_DEVICE")
	if name == "" {
		name = "cpu"
	}
	dev, _, err := devices.Open(context.Background(), name, devices.Options{Threads: 1, CacheDir: os.Getenv("TGC_CACHE_DIR")})
	if errors.Is(err, devices.ErrNoLLVM) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}
