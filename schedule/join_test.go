package schedule_test

import (
	"regexp"
	"strings"
	"testing"

	"tgc/ir"
	"tgc/schedule"
	"tgc/tensor"
)

// joinText is two values of one level, each of which divides rows by the sum of one
// softmax: value 0 is stored into half of the rows of buffer 2, value 1 into buffer 4.
const joinText = `values 2 ranges 4104
%0 = buffer f32 [0] 4 64
%1 = param f32 [0] 4 64
%2 = buffer f32 [1] 4 8
%3 = param f32 [1] 4 8
%4 = buffer f32 [2] 8 8
%5 = param f32 [2] 8 8
%6 = buffer f32 [3] 4 8
%7 = param f32 [3] 4 8
%8 = buffer f32 [4] 4 8
%9 = param f32 [4] 4 8
%10 = param f32 [5] 8 8
%11 = param f32 [6] 4 8
%12 = buffer f32 [5] 8 8
%13 = param f32 [7] 8 8
%14 = range idx [4097] 4
%15 = range idx [4098] 8
%16 = range idx [4099] 4
%17 = range idx [4100] 8
%18 = range idx [1] 64
%19 = arg f32 [0]
%20 = arg f32 [1]
%21 = arg f32 [2]
%22 = arg f32 [3]
%23 = max f32 %19 %21
%24 = sub f32 %19 %23
%25 = exp2 f32 %24
%26 = mul f32 %20 %25
%27 = sub f32 %21 %23
%28 = exp2 f32 %27
%29 = mul f32 %22 %28
%30 = add f32 %26 %29
%31 = load f32 %1 %14 %18
%32 = reduce f32 [tuple 2] %31 1:f32 %18 -3.4028235e+38:f32 0:f32 %23 %30
%33 = proj f32 [1] %32
%34 = recip f32 %33
%35 = load f32 %3 %14 %15
%36 = mul f32 %34 %35
%37 = value f32 [0] 4 8
%38 = load f32 %1 %16 %18
%39 = reduce f32 [tuple 2] %38 1:f32 %18 -3.4028235e+38:f32 0:f32 %23 %30
%40 = proj f32 [1] %39
%41 = recip f32 %40
%42 = load f32 %7 %16 %17
%43 = add idx %16 4
%44 = load f32 %13 %43 %17
%45 = mul f32 %41 %42
%46 = add f32 %44 %45
%47 = value f32 [1] 4 8
version 0 buffer %0 param %1
version 1 buffer %2 param %3
version 2 buffer %4 param %5
version 3 buffer %6 param %7
version 4 buffer %8 param %9
version 5 buffer %4 param %10 number 1 previous 2 writer 0
version 6 buffer %8 param %11 number 1 previous 4 writer 1
version 7 buffer %12 param %13
value 0 node %37 ranges %14 %15 body %36 index %14 %15 target 5
value 1 node %47 ranges %16 %17 body %46 index %16 %17 target 6
launch
kernel 0
kernel 1
`

// headText is two values of heads, which share a stage of their token. Value 0 has a tile of its head besides, of which it reads pairs.
const headText = `values 2 ranges 4110
%0 = buffer f32 [0] 4 8
%1 = param f32 [0] 4 8
%2 = buffer f32 [1] 4 2 8
%3 = param f32 [1] 4 2 8
%4 = buffer f32 [2] 4 2 8
%5 = param f32 [2] 4 2 8
%6 = buffer f32 [3] 4 2 8
%7 = param f32 [3] 4 2 8
%8 = param f32 [4] 4 2 8
%9 = param f32 [5] 4 2 8
%10 = range idx [4097] 4
%11 = range idx [4098] 2
%12 = range idx [4099] 8
%13 = range idx [4100] 4
%14 = range idx [4101] 2
%15 = range idx [4102] 8
%16 = range idx [1] 8
%17 = load f32 %1 %10 %16
%18 = stage f32 [auto] %17 %16
%19 = load f32 %3 %10 %11 %16
%20 = stage f32 [auto] %19 %16
%21 = floormod idx %12 4
%22 = load f32 %20 %21
%23 = load f32 %18 %12
%24 = mul f32 %23 %22
%25 = value f32 [0] 4 2 8
%26 = load f32 %1 %13 %16
%27 = stage f32 [auto] %26 %16
%28 = load f32 %27 %15
%29 = load f32 %3 %13 %14 %15
%30 = mul f32 %28 %29
%31 = value f32 [1] 4 2 8
version 0 buffer %0 param %1
version 1 buffer %2 param %3
version 2 buffer %4 param %5
version 3 buffer %6 param %7
version 4 buffer %4 param %8 number 1 previous 2 writer 0
version 5 buffer %6 param %9 number 1 previous 3 writer 1
value 0 node %25 ranges %10 %11 %12 body %24 index %10 %11 %12 target 4
value 1 node %31 ranges %13 %14 %15 body %30 index %13 %14 %15 target 5
launch
kernel 0
kernel 1
`

// withText replaces parts of a text, each of which must be there.
func withText(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		before := text
		if text = strings.ReplaceAll(text, pairs[i], pairs[i+1]); text == before {
			t.Fatalf("%q: nothing replaced", pairs[i])
		}
	}
	return text
}

// Values of one level that hold the same softmax are stored by one kernel if their
// loops are the same, or one has the first loops of the other; but not where one reads
// around what the other one stores, nor where one has a tile of rows that are rows apart of the other.
func TestJoinStores(t *testing.T) {
	with := func(pairs ...string) string { return withText(t, joinText, pairs...) }
	for _, c := range []struct {
		name, text string
		joined     bool
	}{
		{"same loops", joinText, true},
		{"another softmax", with("%38 = load f32 %1 %16 %18", "%38 = load f32 %9 %16 %17"), false},
		{"first loops", with("%46 = add f32 %44 %45", "%46 = mul f32 %40 %41", "value f32 [1] 4 8", "value f32 [1] 4", "ranges %16 %17 body %46 index %16 %17", "ranges %16 body %46 index %16",
			"buffer f32 [4] 4 8", "buffer f32 [4] 4", "param f32 [4] 4 8", "param f32 [4] 4", "param f32 [6] 4 8", "param f32 [6] 4"), true},
		{"loops of another extent", with("range idx [4100] 8", "range idx [4100] 5", "value f32 [1] 4 8", "value f32 [1] 4 5",
			"buffer f32 [4] 4 8", "buffer f32 [4] 4 5", "param f32 [4] 4 8", "param f32 [4] 4 5", "param f32 [6] 4 8", "param f32 [6] 4 5"), false},
		{"rows around the stored ones", with("version 7 buffer %12 param %13", "version 7 buffer %4 param %13 under 5"), false},
		{"a head's tile of one", headText, false},
		{"tiles of both", withText(t, headText, "%29 = load f32 %3 %13 %14 %15", "%29 = load f32 %3 %13 %14 %16\n%32 = stage f32 [auto] %29 %16\n%33 = load f32 %32 %15", "%30 = mul f32 %28 %29", "%30 = mul f32 %28 %33"), true},
		{"no tile", withText(t, headText, "%22 = load f32 %20 %21", "%22 = load f32 %3 %10 %11 %12"), true},
	} {
		got, err := schedule.RunPass(t.Context(), ir.NewArena(), "join-stores", c.text, schedule.DefaultOptions())
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if joined := regexp.MustCompile(`(?m)^kernel 0 1$`).MatchString(got); joined != c.joined {
			t.Errorf("%s: joined %v, want %v\n%s", c.name, joined, c.joined, got)
		}
		if err := schedule.VerifyText(ir.NewArena(), got, schedule.DefaultOptions()); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// What is made of a softmax goes into a reader that holds the same one, not into one
// that only has a softmax of as many points.
func TestJoinProjections(t *testing.T) {
	reads := withText(t, joinText, "%42 = load f32 %7 %16 %17", "%42 = load f32 %37 %16 %17",
		"version 5 buffer %4 param %10 number 1 previous 2 writer 0\n", "version 5 buffer %4 param %10\n",
		"value 0 node %37 ranges %14 %15 body %36 index %14 %15 target 5", "value 0 node %37 ranges %14 %15 body %36",
		"launch\nkernel 0\nkernel 1\n", "")
	for _, c := range []struct {
		name, text string
		joined     bool
	}{
		{"same scores", reads, true},
		{"other scores", withText(t, reads, "%38 = load f32 %1 %16 %18", "%38 = load f32 %13 %16 %17"), false},
	} {
		got, err := schedule.RunPass(t.Context(), ir.NewArena(), "join-projections", c.text, schedule.DefaultOptions())
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if joined := !strings.Contains(got, "value 0"); joined != c.joined {
			t.Errorf("%s: joined %v, want %v\n%s", c.name, joined, c.joined, got)
		}
	}
}

// A product of matrices that another sum weighs is a kernel of its own: in the sum it has no tiles.
func TestWeighedProductsStandAlone(t *testing.T) {
	g := tensor.NewGraph()
	g.Output("y", tensor.Einsum("bi,oij,bj->bo", g.Input("x", ir.F32, 64, 128), g.Input("w", ir.F32, 64, 128, 128), g.Input("y", ir.F32, 64, 128)))
	for name, opt := range map[string]schedule.Options{"CPU": schedule.CPUOptions(), "GPU": schedule.DefaultOptions()} {
		r := newRig(t, g, nil, nil)
		if s := r.plan(opt); kernelCount(s) != 2 {
			t.Errorf("%s: %d kernels, want 2\n%s", name, kernelCount(s), s)
		}
	}
}
