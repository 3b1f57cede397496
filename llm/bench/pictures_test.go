package bench

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/target"
)

// pictured is a result with kernels at the roof, below it, without operations, and of a
// hostile name.
func pictured() *Result {
	const hostile = "</title></svg><script>alert(1)</script>&\x00"
	r := &Result{Model: hostile, Device: "cpu", Mode: "exact", ReadRate: 50, Floors: Floors{Rate: 40, Peak: 400}}
	r.Decode.Rates.Median = 100
	r.Kernels = []KernelResult{
		{Name: "roof", Count: 2, Time: 100, Share: 0.5, Rate: 50, GFLOPS: 100, Role: "ffn_up", Plan: []string{"FMA"}},
		{Name: "copy", Count: 1, Time: 100, Share: 0.4, Rate: 25, Role: hostile},
		{Name: hostile, Count: 1, Time: 20, Share: 0.1, Rate: 0.001, GFLOPS: 300, Role: "positions"},
	}
	r.Calls = []CallResult{{Kernel: "roof", Time: 50, Alone: 52}, {Kernel: "copy", Launch: 1, Time: 100, Alone: 110}, {Kernel: "roof", Launch: 2, Time: 50, Alone: 53}, {Kernel: hostile, Launch: 2, Time: 20, Alone: 21}}
	r.PromptKernels = []KernelResult{{Name: "roof", Count: 1, Time: 1e6, Share: 1, Rate: 1, GFLOPS: 390, Role: "ffn_up"}}
	r.PromptCalls = []CallResult{{Kernel: "roof", Time: 1e6}}
	return r
}

// A dot stands for each kernel, one at the roof on the line of the bandwidth, and one without
// operations as far below it as its bytes are slow.
func TestRoofline(t *testing.T) {
	r := pictured()
	text := Roofline(r)
	dots, titles := [][2]float64{}, []string{}
	for d := xml.NewDecoder(bytes.NewReader(text)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch start.Name.Local {
		case "script":
			t.Error("a name has become markup")
		case "title":
			var title string
			if err := d.DecodeElement(&title, &start); err != nil {
				t.Fatal(err)
			}
			titles = append(titles, title)
		case "circle":
			at := map[string]float64{}
			for _, a := range start.Attr {
				at[a.Name.Local], _ = strconv.ParseFloat(a.Value, 64)
			}
			dots = append(dots, [2]float64{at["cx"], at["cy"]})
		}
	}
	if len(dots) != 4 || len(titles) != 4 || !strings.Contains(titles[0], "plan: FMA") {
		t.Fatalf("dots %v with titles %q", dots, titles)
	}
	f := &roofline{}
	f.scale(r)
	near := func(got, want float64) bool { return math.Abs(got-want) < 0.1 }
	if x := dots[0][0]; !near(x, f.x(2)) || !near(dots[0][1], f.y(2*r.ReadRate)) {
		t.Errorf("a kernel at the roof stands at %v", dots[0])
	}
	if !near(dots[1][0], f.x(f.least[0])) || !near(dots[1][1], f.y(f.least[0]*25)) {
		t.Errorf("a copy at half the bandwidth stands at %v", dots[1])
	}
	for _, at := range dots {
		if at[0] < roofLeft-0.1 || at[0] > roofWidth-roofRight+0.1 || at[1] < roofTop-0.1 || at[1] > roofHeight-roofBottom+0.1 {
			t.Errorf("a dot outside of the frame: %v", at)
		}
	}
	if bytes.Contains(text, []byte("NaN")) || bytes.Contains(text, []byte("Inf")) || bytes.Contains(Roofline(&Result{}), []byte("NaN")) {
		t.Error("a number that is none")
	}
}

// The numbers of targets: a core reads and computes its part.
func TestFloors(t *testing.T) {
	cpu, err := target.Parse("llvm:x86-64-v4")
	if err != nil {
		t.Fatal(err)
	}
	one, two := floorsOf(cpu, 1), floorsOf(cpu, 2)
	if one.Rate != 1e3/float64(cpu.Cost.ByteDRAM) || two.Rate != 2*one.Rate || two.Peak != 2*one.Peak {
		t.Errorf("one core %v, two %v", one, two)
	}
	gpu, err := target.Parse("ptx:sm_90")
	if err != nil {
		t.Fatal(err)
	}
	if f := floorsOf(gpu, 1); f.Rate < 1000 || f.Rate > 10000 || f != floorsOf(gpu, 8) {
		t.Errorf("an H200 reads %v", f)
	}
	if f := floorsOf(&target.Desc{}, 1); f != (Floors{}) {
		t.Errorf("a target without numbers has %v", f)
	}
}

// The timeline keeps the rules of the trace event format: every event has its phase, process
// and track, spans have a time and a duration that are not negative, those of a track do not
// cross, and names are given by metadata with an argument name.
func TestTrace(t *testing.T) {
	var out bytes.Buffer
	if err := pictured().WriteTrace(&out); err != nil {
		t.Fatal(err)
	}
	var file struct {
		TraceEvents []struct {
			Name     *string
			Ph       string
			Ts, Dur  *float64
			Pid, Tid *int
			Args     map[string]any
		}
		DisplayTimeUnit string
	}
	if err := json.Unmarshal(out.Bytes(), &file); err != nil {
		t.Fatal(err)
	}
	if file.DisplayTimeUnit != "ns" && file.DisplayTimeUnit != "ms" {
		t.Errorf("unit %q", file.DisplayTimeUnit)
	}
	type track struct{ pid, tid int }
	ends, named, spans := map[track]float64{}, map[track]bool{}, map[track]int{}
	for i, e := range file.TraceEvents {
		if e.Name == nil || e.Pid == nil || e.Tid == nil {
			t.Fatalf("event %d has no name, process or track", i)
		}
		at := track{*e.Pid, *e.Tid}
		switch e.Ph {
		case "M":
			if name, ok := e.Args["name"].(string); !ok || name == "" || *e.Name != "process_name" && *e.Name != "thread_name" {
				t.Errorf("metadata %s with %v", *e.Name, e.Args)
			}
			named[at] = true
		case "X":
			if e.Ts == nil || e.Dur == nil || *e.Ts < 0 || *e.Dur < 0 || *e.Ts < ends[at]-1e-9 {
				t.Errorf("span %d, %s, crosses the one before it or has no time", i, *e.Name)
			}
			ends[at] = *e.Ts + *e.Dur
			spans[at]++
			if !named[at] || !named[track{at.pid, 0}] {
				t.Errorf("track %v has no name", at)
			}
		default:
			t.Errorf("phase %q", e.Ph)
		}
	}
	want := map[track]int{{1, wholeTrack}: 1, {1, kernelTrack}: 4, {1, aloneTrack}: 4, {2, kernelTrack}: 1}
	for at, n := range want {
		if spans[at] != n {
			t.Errorf("track %v has %d spans, want %d", at, spans[at], n)
		}
	}
	if len(spans) != len(want) || ends[track{1, wholeTrack}] != 1e4 || ends[track{1, kernelTrack}] != 220 {
		t.Errorf("tracks %v end at %v", spans, ends)
	}
}

// Calls of a chain have its time, others their own.
func TestCallsOf(t *testing.T) {
	x, y := &engine.Kernel{Name: "x"}, &engine.Kernel{Name: "y"}
	c := &engine.Compiled{Launches: [][]engine.Call{{{Kernel: x}, {Kernel: y}}, {{Kernel: x}}}}
	got := callsOf(c, map[*engine.Kernel]*timing{x: {calls: []int{0, 2}, chain: 4e-6}, y: {calls: []int{1}}}, []float64{3e-6, 7e-6, 5e-6})
	want := []CallResult{{"x", 0, 2, 3}, {"y", 0, 7, 0}, {"x", 1, 2, 5}}
	for i := range want {
		if got[i].Kernel != want[i].Kernel || got[i].Launch != want[i].Launch || math.Abs(got[i].Time-want[i].Time) > 1e-9 || math.Abs(got[i].Alone-want[i].Alone) > 1e-9 {
			t.Errorf("call %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}
