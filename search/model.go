package search

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"tgc/engine/traffic"
	"tgc/ir/program"
	"tgc/target"
)

// Features are what the model of cost knows of a program that was lowered: logarithms, so that a
// factor in one of them is a factor of the time.
const (
	featureMemory = iota
	featureFloat
	featureInteger
	featureMatrix
	featureMove
	featureControl
	featureAll     // instructions
	featureBlocks  // work units
	featureThreads // of a block
	featureIdle    // workers that wait for the last units
	featureFew     // workers without units
	featureSource  // size of the program's text
	featureFlight  // bytes that a thread asks for in a row
	featureLoads   // loads of them
	featureWide    // bytes of a load
	featureLive    // registers that are held at the fullest place
	featureBarriers
	featureFixed    // instructions, as they stand in the program
	featureShared   // bytes of a block
	featureResident // threads of a multiprocessor at once, by registers and shared bytes
	featureWaves    // rounds of blocks that do not run at once
	featureTail     // part of them that is empty in the last
	featureAsked    // bytes that a multiprocessor asks for in a row
	featureThread   // instructions of a thread
	featurePath     // cycles that a thread waits for what it computes from, at least
	featureSectors  // of 32 bytes that warps ask memory for
	featureLines    // of 128 bytes
	featureBanks    // times that shared memory is busy
	featureBytes    // of its buffers
	featureEstimate // of its time, where nothing was learned
	numFeatures
)

var featureNames = [numFeatures]string{
	"memory", "float", "integer", "matrix", "move", "control", "instructions", "blocks", "threads", "idle", "few", "source",
	"flight", "loads", "wide", "live", "barriers", "fixed", "shared", "resident", "waves", "tail", "asked", "thread", "path", "sectors", "lines", "banks", "bytes", "estimate",
}

// Features describe a candidate.
type Features [numFeatures]float64

// FeaturesOf describes a program and the size of its source in bytes.
func FeaturesOf(p *program.Program, source int, desc *target.Desc, vars map[string]int64) (f Features) {
	width := instructionBytes(desc)
	all := 0.0
	for i, n := range traffic.Pipes(p, vars, width) {
		f[i] = math.Log1p(n)
		all += n
	}
	units, workers := float64(max(p.Units(), 1)), float64(max(desc.Cost.Workers, 1))
	f[featureAll], f[featureBlocks], f[featureThreads] = math.Log1p(all), math.Log(units), math.Log(float64(max(p.Threads(), 1)))
	f[featureIdle] = math.Log(math.Ceil(units/workers) * workers / units)
	f[featureFew] = math.Log(workers / min(units, workers))
	f[featureSource] = math.Log1p(float64(source))
	f.shape(p, desc, units, workers)
	f[featureThread] = f[featureAll] - f[featureThreads] - f[featureBlocks]
	f.memory(p, vars)
	f[featureEstimate] = math.Log(f.estimate(desc))
	return f
}

// shape adds what threads hold, and how many run at once.
func (f *Features) shape(p *program.Program, desc *target.Desc, units, workers float64) {
	s, shared, threads := shapeOf(p), program.SharedBytes(p), max(p.Threads(), 1)
	blocks := resident(s.live, shared, threads, desc)
	running := math.Ceil(min(blocks, max(units/workers, 1))) * float64(threads)
	waves := max(units/(blocks*workers), 1)
	for i, v := range map[int]float64{
		featureFlight: s.flight, featureLoads: s.loads, featureWide: s.wide, featureLive: s.live, featureBarriers: s.barriers, featureFixed: s.fixed,
		featureShared: float64(shared), featureResident: running, featureAsked: s.flight * running,
	} {
		f[i] = math.Log1p(v)
	}
	f[featureWaves], f[featureTail] = math.Log(waves), math.Log(math.Ceil(waves)/waves)
}

// memory adds what accesses ask for, and how long a thread waits for them.
func (f *Features) memory(p *program.Program, vars map[string]int64) {
	f[featurePath] = math.Log1p(traffic.Path(p, vars))
	bytes := 0.0
	for _, param := range p.Params {
		if param.Kind == program.ParamBuffer {
			bytes += float64(param.Bytes)
		}
	}
	f[featureBytes] = math.Log1p(bytes)
	r := traffic.RequestsOf(p, vars)
	f[featureSectors], f[featureLines], f[featureBanks] = math.Log1p(r.Sectors), math.Log1p(r.Lines), math.Log1p(r.Banks)
}

// Instructions is by how many instructions a candidate is scored, where nothing was learned.
func (f Features) Instructions() float64 { return f[featureAll] }

// Timed is a candidate that was measured.
type Timed struct {
	Features Features
	Time     float64 // us
}

// Model orders candidates of a kernel by what it expects of their times: a sum of features with
// weights, and of what trees say of them. It says nothing of times of other kernels, and changes
// nothing but an order.
type Model struct {
	Features []string  `json:"features"`
	Weights  []float64 `json:"weights"`
	Trees    []Tree    `json:"trees,omitempty"`
}

// ridge keeps weights of features small that say little: its part of what the features vary by.
const ridge = 1e-2

// forFast is by which power of its speed a candidate counts more for trees: which of the slow ones is slowest is of no use.
const forFast = 2

// FitModel fits weights to the times of kernels, each about its own mean: how long kernels take
// beside one another does not count. Trees are fitted to what is left.
func FitModel(kernels [][]Timed) *Model {
	var rows []Features
	var targets, weights []float64
	weigh := fitWeights(kernels)
	for _, list := range kernels {
		fastest := math.Inf(1)
		for _, c := range list {
			fastest = min(fastest, c.Time)
		}
		mean := 0.0
		for _, c := range list {
			mean += (math.Log(c.Time) - weigh.Score(c.Features)) / float64(len(list))
		}
		for _, c := range list {
			rows = append(rows, c.Features)
			targets = append(targets, math.Log(c.Time)-weigh.Score(c.Features)-mean)
			weights = append(weights, math.Pow(fastest/c.Time, forFast)/float64(len(list))) // every kernel counts as much
		}
	}
	weigh.Trees = growTrees(rows, targets, weights)
	return weigh
}

// fitWeights is the sum alone.
func fitWeights(kernels [][]Timed) *Model {
	var a [numFeatures][numFeatures]float64
	var b Features
	for _, list := range kernels {
		var mean Features
		meanTime := 0.0
		for _, c := range list {
			for i, v := range c.Features {
				mean[i] += v / float64(len(list))
			}
			meanTime += math.Log(c.Time) / float64(len(list))
		}
		for _, c := range list {
			y := (math.Log(c.Time) - meanTime) / float64(len(list)) // every kernel counts as much
			for i := range numFeatures {
				x := c.Features[i] - mean[i]
				b[i] += x * y
				for k := range numFeatures {
					a[i][k] += x * (c.Features[k] - mean[k]) / float64(len(list))
				}
			}
		}
	}
	for i := range numFeatures {
		a[i][i] += ridge*a[i][i] + 1e-9
	}
	weights := solve(a, b)
	return &Model{Features: featureNames[:], Weights: weights[:]}
}

// solve is the solution of a x = b of a matrix that is positive definite.
func solve(a [numFeatures][numFeatures]float64, b Features) (x Features) {
	for i := range numFeatures {
		for k := i + 1; k < numFeatures; k++ {
			factor := a[k][i] / a[i][i]
			for j := i; j < numFeatures; j++ {
				a[k][j] -= factor * a[i][j]
			}
			b[k] -= factor * b[i]
		}
	}
	for i := numFeatures - 1; i >= 0; i-- {
		x[i] = b[i]
		for k := i + 1; k < numFeatures; k++ {
			x[i] -= a[i][k] * x[k]
		}
		x[i] /= a[i][i]
	}
	return x
}

// ReadModel reads a model, as planbench -learn prints it.
func ReadModel(r io.Reader) (*Model, error) {
	m := &Model{}
	if err := json.NewDecoder(io.LimitReader(r, 1<<20)).Decode(m); err != nil {
		return nil, fmt.Errorf("no model of cost: %w", err)
	}
	return m, m.Check()
}

// Check refuses a model of other features.
func (m *Model) Check() error {
	if !slices.Equal(m.Features, featureNames[:]) || len(m.Weights) != numFeatures {
		return fmt.Errorf("a model of the features %.200q with %d weights, want %q", m.Features, len(m.Weights), featureNames)
	}
	if len(m.Trees) > mostTrees {
		return fmt.Errorf("a model of %d trees, want at most %d", len(m.Trees), mostTrees)
	}
	for i, t := range m.Trees {
		if err := t.check(); err != nil {
			return fmt.Errorf("tree %d: %w", i, err)
		}
	}
	return nil
}

// Score is less for candidates that are expected to be faster.
func (m *Model) Score(f Features) (score float64) {
	for i, w := range m.Weights {
		score += w * f[i]
	}
	for _, t := range m.Trees {
		score += t.answer(&f)
	}
	return score
}

// Ranking says how well scores order candidates of one kernel.
type Ranking struct {
	Tau   float64 // Kendall's, over pairs whose times are apart by more than noise
	Loss  float64 // the best of the first few by score over the fastest of all
	Pairs int
}

// Ranks compares scores with times: pairs count whose times are apart by more than a part of them.
func Ranks(list []Timed, score func(Features) float64, noise float64, few int) (r Ranking) {
	scores := make([]float64, len(list))
	order := make([]int, len(list))
	fastest := math.Inf(1)
	for i, c := range list {
		scores[i], order[i], fastest = score(c.Features), i, min(fastest, c.Time)
	}
	agree := 0.0
	for i, x := range list {
		for k, y := range list[:i] {
			if max(x.Time, y.Time) < (1+noise)*min(x.Time, y.Time) {
				continue
			}
			r.Pairs++
			switch d := (x.Time - y.Time) * (scores[i] - scores[k]); {
			case d > 0:
				agree++
			case d < 0:
				agree--
			}
		}
	}
	r.Tau = agree / float64(max(r.Pairs, 1))
	slices.SortStableFunc(order, func(i, k int) int { return cmp.Compare(scores[i], scores[k]) })
	best := math.Inf(1)
	for _, i := range order[:min(few, len(order))] {
		best = min(best, list[i].Time)
	}
	r.Loss = best/fastest - 1
	return r
}
