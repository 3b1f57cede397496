package job

import (
	"strings"
	"testing"
)

func TestParseStep(t *testing.T) {
	for text, want := range map[string]Step{
		"decode":         {Tokens: 1, Depth: -1, Times: 1},
		"prompt":         {Tokens: 128, Depth: -1, Times: 1},
		"prompt:512":     {Tokens: 512, Depth: -1, Times: 1},
		"batch:4":        {Tokens: 1, Batch: 4, Depth: -1, Times: 1},
		"0.5*batch:4@70": {Tokens: 1, Batch: 4, Depth: 70, Times: 0.5},
		"128*decode@0":   {Tokens: 1, Depth: 0, Times: 128},
	} {
		want.Text = text
		if got, err := ParseStep(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "decod", "decode:1", "batch", "batch:0", "batch:257", "batch:+4", "batch:04", "prompt:", "prompt:-1", "prompt:99999999999999999999",
		"0*decode", "-1*decode", "NaN*decode", "Inf*decode", "1e9*decode", "*decode", "decode@", "decode@-1", "decode@1@2", "prompt:1:2", strings.Repeat("x", 1000),
	} {
		if got, err := ParseStep(text); err == nil || len(err.Error()) > 400 || !strings.Contains(err.Error(), "want") {
			t.Errorf("%.50q: %+v, %v, want an error that says what is wanted", text, got, err)
		}
	}
	if got, err := ParseSteps("decode, prompt:8,batch:2"); err != nil || len(got) != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := ParseSteps(strings.Repeat("decode,", 65) + "decode"); err == nil {
		t.Error("66 steps are accepted")
	}
}
