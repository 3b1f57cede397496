package engine

import (
	"strings"
	"testing"
)

// Options have one prefix; names from before that still count, unless the new one is set.
func TestOptionNames(t *testing.T) {
	for _, o := range Options {
		if !strings.HasPrefix(o.Name, prefix) {
			t.Errorf("%s does not begin with %s", o.Name, prefix)
		}
	}
	t.Setenv("MV_BLOCKSIZE", "8")
	t.Setenv("MV", "0")
	t.Setenv("TGC_MV", "1")
	config, err := ReadConfig()
	if err != nil || config.Knobs.BlockSize != 8 || config.Knobs.NoMatvec {
		t.Errorf("%+v, %v", config.Knobs, err)
	}
	t.Setenv("MMA", "perhaps")
	if _, err := ReadConfig(); err == nil || !strings.HasPrefix(err.Error(), `MMA="perhaps"`) {
		t.Errorf("%v, want the name that was set", err)
	}
}
