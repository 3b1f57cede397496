package schedule_test

import (
	"testing"

	"tgc/runtime/interp"
	"tgc/schedule"
)

func TestFusedLayer(t *testing.T) {
	m := llamaTiny()
	r := modelRig(t, m, 3)
	s := r.plan(schedule.DefaultOptions())
	t.Log(s)
	for _, rec := range s.Records {
		t.Log(rec)
	}
	r.check(s, interp.KernelOptions{}, 1e-5)
}
