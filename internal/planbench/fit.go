package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"tgc/target"
)

// What a fit makes small.
const (
	fitChoice = 20   // how sharply the cheapest plans are preferred: by prices 5 % apart, one to e
	fitSpread = 0.6  // weight of how prices scatter about times, against the time of what is chosen
	fitLevel  = 0.05 // weight of how much all prices of a kernel are too high or too low
)

// fit changes numbers one or two at a time, by random factors, and keeps what makes the
// loss smaller: of all numbers, or of those whose names begin so, "GroupTiles." say. A number that is 0 stays so.
func fit(kernels []kernelTimes, best target.Desc, steps int, only string) target.Desc {
	random := rand.New(rand.NewPCG(1, 7))
	var names []string
	for name, number := range numbersOf(&best) {
		if *number != 0 && strings.HasPrefix(name, only) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	sizes := slices.Repeat([]float64{0.2}, len(names))
	least := lossOf(kernels, &best)
	for range steps {
		next := best
		numbers := numbersOf(&next)
		first := random.IntN(len(names))
		change := func(i int) { *numbers[names[i]] *= math.Exp(random.NormFloat64() * sizes[i]) }
		change(first)
		if random.Float64() < 0.3 {
			change(random.IntN(len(names)))
		}
		if loss := lossOf(kernels, &next); loss < least {
			best, least, sizes[first] = next, loss, sizes[first]*1.3
		} else {
			sizes[first] = max(sizes[first]*0.93, 0.02)
		}
	}
	return best
}

// lossOf is, on average over kernels, of which the longer ones count for more, by how much a plan is slower than the fastest that
// is chosen by its price, but not sharply so, and how prices scatter about times; both
// as logarithms.
func lossOf(kernels []kernelTimes, desc *target.Desc) float64 {
	total, all := 0.0, 0.0
	for _, k := range kernels {
		prices := make([]float64, len(k.plans))
		cheapest, fastest := math.Inf(1), math.Inf(1)
		for i, p := range k.plans {
			prices[i] = math.Log(p.Reprice(desc) / 1000)
			cheapest, fastest = min(cheapest, prices[i]), min(fastest, p.us)
		}
		var weights, slower, off, square float64
		for i, p := range k.plans {
			w := math.Exp(-fitChoice * (prices[i] - cheapest))
			d := prices[i] - math.Log(p.us)
			weights, slower, off, square = weights+w, slower+w*math.Log(p.us/fastest), off+d, square+d*d
		}
		n := float64(len(k.plans))
		share := math.Sqrt(fastest)
		total += share * (slower/weights + fitSpread*math.Sqrt(max(square/n-off*off/n/n, 0)) + fitLevel*math.Abs(off/n))
		all += share
	}
	return total / all
}
