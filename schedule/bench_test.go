package schedule_test

import (
	"context"
	"testing"

	"tgc/ir"
	"tgc/schedule"
)

// The budget is 300 ms on one core for a decode step of 16 layers.
func BenchmarkSchedule(b *testing.B) {
	for _, row := range []struct {
		name string
		opt  schedule.Options
	}{{"all", schedule.DefaultOptions()}, {"cpu", schedule.CPUOptions()}, {"none", plainOptions()}} {
		b.Run(row.name, func(b *testing.B) {
			sink, err := llama1B(16).build().Sink()
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			for b.Loop() {
				a := ir.NewArena()
				s, err := schedule.Run(context.Background(), a, a.Import(sink), row.opt)
				if err != nil {
					b.Fatal(err)
				}
				kernels := 0
				for _, l := range s.Launches {
					kernels += len(l.Kernels)
				}
				b.ReportMetric(float64(kernels), "kernels")
				b.ReportMetric(float64(len(s.Launches)), "launches")
				b.ReportMetric(float64(a.Len()), "nodes")
			}
		})
	}
}
