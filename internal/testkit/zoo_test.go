package testkit_test

import (
	"testing"

	"tgc/internal/testkit"
	"tgc/runtime/interp"
	"tgc/schedule"
)

// Every fixed graph gives right values in kernel form, under both cost
// profiles.
func TestZooSchedules(t *testing.T) {
	profiles := map[string]schedule.Options{"default": schedule.DefaultOptions(), "cpu": schedule.CPUOptions()}
	for _, entry := range testkit.Zoo() {
		for name, opt := range profiles {
			t.Run(entry.Name+"/"+name, func(t *testing.T) {
				c, err := entry.Build(1)
				if err != nil {
					t.Fatal(err)
				}
				want, err := c.ExpectedWide()
				if err != nil {
					t.Fatal(err)
				}
				for id, n := range want {
					if share := testkit.Unknown(n); share > 0 {
						t.Errorf("buffer %d: nothing is known about %.0f%% of the elements", id, 100*share)
					}
				}
				s, err := c.Schedule(t.Context(), opt)
				if err != nil {
					t.Fatal(err)
				}
				got, err := c.RunSchedule(t.Context(), s, interp.KernelOptions{Float64: true})
				if err != nil {
					t.Fatal(err)
				}
				if err := testkit.Compare(got, want); err != nil {
					t.Errorf("%v\n%s", err, s)
				}
			})
		}
	}
}
