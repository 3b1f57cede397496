package llm_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"tgc/engine"
	"tgc/llm"
	"tgc/nn"
	"tgc/packed"
	"tgc/runtime"
	"tgc/target"
)

// formatsOf are the formats in which a step reads the weights of a type.
func formatsOf(t *testing.T, quant string, width int, desc *target.Desc, config engine.Config) string {
	t.Helper()
	m := openOutline(t, fmt.Sprintf("llama:d=%d,layers=1,heads=4,kv=1,head=64,ff=256,vocab=320,tied=0,quant=%s", width, quant))
	step, err := llm.CompileStep(t.Context(), m, llm.Variant{Batch: 1, Tokens: 1, Context: 8, Numeric: nn.Int8}, 1, desc, config)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]bool)
	for _, b := range step.Compiled.Schedule.Buffers {
		if strings.HasPrefix(b.Format, strings.ToUpper(quant)) {
			found[b.Format] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), " ")
}

// TestWeightCodes: weights have another code where they lie in records, if the target has few workers or the code is hardly
// larger, of shorter blocks where rows are no whole longer ones; not on other targets.
func TestWeightCodes(t *testing.T) {
	few, many := target.ForCPU("znver4", nil, 2), target.ForCPU("znver4", nil, 64)
	for _, c := range []struct {
		quant  string
		width  int
		desc   *target.Desc
		config engine.Config
		want   string
	}{
		{"iq2_xxs", 256, few, engine.Config{}, "IQ2_XXS_codes"},
		{"iq2_xxs", 256, many, engine.Config{}, "IQ2_XXS"},
		{"iq3_s", 256, many, engine.Config{}, "IQ3_S_codes"}, // 1.25 times as large
		{"iq2_xxs", 256, few, engine.Config{Records: engine.RecordsNever}, "IQ2_XXS"},
		{"iq2_xxs", 256, few, engine.Config{Records: 2}, "IQ2_XXS"}, // the codes have 4.3 bits
		{"iq2_xxs", 256, mustTarget(t, "ptx:sm_90a"), engine.Config{}, "IQ2_XXS"},
		{"q5_0", 256, many, engine.Config{}, "Q5_0_words"},
		{"q5_0", 96, many, engine.Config{}, "Q5_0_words Q5_0_words_32"}, // of down the rows are whole longer blocks
		{"q5_1", 576, few, engine.Config{}, "Q5_1_words Q5_1_words_32"},
		{"q4_0", 256, few, engine.Config{}, "Q4_0"},
	} {
		if got := formatsOf(t, c.quant, c.width, c.desc, c.config); got != c.want {
			t.Errorf("%s, rows of %d, %s, %d workers, %v: read as %s, want %s", c.quant, c.width, c.desc.Name, c.desc.Cost.Workers, c.config.Records, got, c.want)
		}
	}
}

// recodedTypes are the types with another code that synth makes.
func recodedTypes() (list []string) {
	for _, f := range packed.All() {
		if _, ok := packed.Recoded(f, 256); ok && f.Random != nil {
			list = append(list, strings.ToLower(f.Name))
		}
	}
	return list
}

// TestRecodedLogits: of weights with another code a model gives the logits of those of the file's code. In int8 what was rounded
// otherwise by a bit may be another integer.
func TestRecodedLogits(t *testing.T) {
	dev := openDevice(t, "cpu")
	if !dev.Target().CanInterleave() {
		t.Skip("this processor has no weights in records")
	}
	shapes := []string{"qwen3moe:d=256,layers=1,heads=4,kv=1,head=64,ff=256,vocab=304,experts=5,used=2,tied=0,quant=iq2_xs"}
	for _, quant := range recodedTypes() {
		shapes = append(shapes, "llama:d=256,layers=1,heads=4,kv=2,head=64,ff=768,vocab=304,quant="+quant)
	}
	for _, quant := range []string{"q5_0", "q5_1"} { // rows of no whole longer blocks
		shapes = append(shapes, "llama:d=288,layers=1,heads=4,kv=2,head=64,ff=608,vocab=304,quant="+quant)
	}
	for _, shape := range shapes {
		m := syntheticModel(t, shape)
		for mode, limit := range map[nn.Numeric]float64{nn.Exact: maxNMSE, nn.Int8: 1e-4} {
			t.Run(fmt.Sprint(shape, " ", mode), func(t *testing.T) {
				want := fedLogits(t, m, dev, mode, engine.RecordsNever)
				got := fedLogits(t, m, dev, mode, packed.MostRecordBits)
				var sum nmse
				for i := range want {
					sum.point(float64(got[i]), float64(want[i]))
				}
				if v := sum.value(); !(v <= limit) {
					t.Errorf("NMSE %.3g between the codes, want at most %g", v, limit)
				}
			})
		}
	}
}

// fedLogits are those of a few tokens together and one alone.
func fedLogits(t *testing.T, m *llm.Model, dev runtime.Device, mode nn.Numeric, records engine.Records) (logits []float32) {
	t.Helper()
	s, err := llm.NewSession(t.Context(), m, dev, llm.SessionOptions{Context: 16, All: true, Mode: mode, Config: engine.Config{Records: records}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, tokens := range [][]int32{{3, 1, 4, 1, 5}, {9}} {
		if err := s.Feed(t.Context(), tokens, func(rows []float32) error { logits = append(logits, rows...); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	return logits
}
