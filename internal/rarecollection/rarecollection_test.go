package rarecollection_test

import (
	"os"
	"runtime/debug"
	"testing"

	"tgc/internal/rarecollection"
)

func TestPercent(t *testing.T) {
	if os.Getenv("GOGC") != "" {
		t.Skip("GOGC decides")
	}
	got := debug.SetGCPercent(100)
	debug.SetGCPercent(got)
	if got != rarecollection.Percent {
		t.Errorf("the heap grows by %d %%, want %d", got, rarecollection.Percent)
	}
}
