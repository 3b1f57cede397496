package cuda

import (
	"strings"
	"testing"
)

// What a temporary held in an earlier step is undefined: under the emulator a step that
// reads it, and does not write it first, is an error.
func TestTemporariesAreUndefined(t *testing.T) {
	for name, options := range map[string]Options{"graph": {}, "serial": {Serial: true}} {
		t.Run(name, func(t *testing.T) {
			d := onEmulator(t, options)
			exec := load(t, d, scaleProgram("scale", 2))
			x, y := alloc(t, d, 128), alloc(t, d, 128)
			between, err := d.AllocScratch(t.Context(), 128)
			check(t, err)
			t.Cleanup(between.Free)
			vars := map[string]int64{"n": 3}
			writes := record(t, d, launch(callOf(exec[0], x, between)), launch(callOf(exec[0], between, y)))
			check(t, writes.Run(t.Context(), vars))
			check(t, writes.Run(t.Context(), vars))
			reads := record(t, d, launch(callOf(exec[0], between, y)))
			if err := reads.Run(t.Context(), vars); err == nil || !strings.Contains(err.Error(), "not defined") {
				t.Errorf("%v, want an error: nothing of the step wrote what it reads", err)
			}
		})
	}
}
