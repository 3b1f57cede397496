package passtable_test

import (
	"testing"

	"tgc/engine"
)

// Every pass says what it does and why it is there.
func TestEveryPassHasAReason(t *testing.T) {
	for _, p := range engine.Passes() {
		if p.Doc == "" || p.Why == "" {
			t.Errorf("%s: does %q, why %q", p.Name, p.Doc, p.Why)
		}
	}
}
