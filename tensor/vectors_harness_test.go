package tensor_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// The harness sees what is wrong with a case, and tells missing from failed.
func TestVectorHarness(t *testing.T) {
	const (
		one     = `{"dtype":"float32","shape":[1],"data":"AACAPw=="}` // 1
		two     = `{"dtype":"float32","shape":[1],"data":"AAAAQA=="}`
		zero    = `{"dtype":"float32","shape":[1],"data":"AAAAAA=="}`
		minus   = `{"dtype":"float32","shape":[1],"data":"AAAAgA=="}` // -0
		nan     = `{"dtype":"float32","shape":[1],"data":"AADAfw=="}`
		integer = `{"dtype":"int32","shape":[1],"data":"AQAAAA=="}`
		matrix  = `{"dtype":"float32","shape":[1,1],"data":"AACAPw=="}`
		strange = `{"dtype":"complex64","shape":[1],"data":"AACAPwAAAAA="}`
	)
	dev := openDevice(t)
	for name, c := range map[string]struct {
		text    string
		want    string // of the outcome, empty for passed
		missing bool
	}{
		"passed":          {`"op":"abs","inputs":[` + one + `],"outputs":[` + one + `]`, "", false},
		"wrong":           {`"op":"abs","inputs":[` + one + `],"outputs":[` + two + `],"rtol":0.4`, "got 1, want 2", false},
		"within rtol":     {`"op":"abs","inputs":[` + one + `],"outputs":[` + two + `],"rtol":0.5`, "", false},
		"within atol":     {`"op":"abs","inputs":[` + one + `],"outputs":[` + two + `],"atol":1`, "", false},
		"nan":             {`"op":"abs","inputs":[` + nan + `],"outputs":[` + nan + `]`, "", false},
		"nan for 1":       {`"op":"abs","inputs":[` + nan + `],"outputs":[` + one + `],"atol":"inf"`, "got NaN", false},
		"1 for nan":       {`"op":"abs","inputs":[` + one + `],"outputs":[` + nan + `]`, "want NaN", false},
		"-0 for 0":        {`"op":"neg","inputs":[` + zero + `],"outputs":[` + zero + `]`, "", false},
		"-0 for 0, bits":  {`"op":"neg","inputs":[` + zero + `],"outputs":[` + zero + `],"bitwise":true`, "got -0, want 0", false},
		"-0, bits":        {`"op":"neg","inputs":[` + zero + `],"outputs":[` + minus + `],"bitwise":true`, "", false},
		"shape":           {`"op":"abs","inputs":[` + one + `],"outputs":[` + matrix + `]`, "output 0 is f32[1], want f32[1 1]", false},
		"dtype":           {`"op":"abs","inputs":[` + one + `],"outputs":[` + integer + `]`, "output 0 is f32[1], want i32[1]", false},
		"count":           {`"op":"abs","inputs":[` + one + `],"outputs":[]`, "1 outputs, want 0", false},
		"unknown op":      {`"op":"frobnicate","inputs":[` + one + `],"outputs":[` + one + `]`, "op frobnicate", true},
		"unknown dtype":   {`"op":"abs","inputs":[` + strange + `],"outputs":[` + one + `]`, "dtype complex64", true},
		"unknown value":   {`"op":"gelu","attrs":{"approx":"cubic"},"inputs":[` + one + `],"outputs":[` + one + `]`, "approx = cubic", true},
		"unknown attr":    {`"op":"abs","attrs":{"axis":1},"inputs":[` + one + `],"outputs":[` + one + `]`, `unknown attributes ["axis"]`, false},
		"absent attr":     {`"op":"elu","attrs":{},"inputs":[` + one + `],"outputs":[` + one + `]`, `attribute "alpha" is absent`, false},
		"attr type":       {`"op":"elu","attrs":{"alpha":[1]},"inputs":[` + one + `],"outputs":[` + one + `]`, `attribute "alpha"`, false},
		"library error":   {`"op":"softmax","attrs":{"axis":4},"inputs":[` + one + `],"outputs":[` + one + `]`, "axes [4] of f32[1]", false},
		"gradient":        {`"op":"square","inputs":[` + one + `],"outputs":[` + one + `],"grads":[` + two + `],"grad_output":` + one, "", false},
		"wrong gradient":  {`"op":"square","inputs":[` + one + `],"outputs":[` + one + `],"grads":[` + one + `],"grad_output":` + one, "got 2, want 1", false},
		"program":         {`"op":"program","steps":[{"out":"t","op":"add","in":["x","x"]},{"out":["y"],"op":"abs","in":["t"]}],"inputs":[` + named("x", one) + `],"outputs":[` + named("y", two) + `]`, "", false},
		"program, wrong":  {`"op":"program","steps":[{"out":"y","op":"add","in":["x","x"]}],"inputs":[` + named("x", one) + `],"outputs":[` + named("y", one) + `]`, "got 2, want 1", false},
		"program, unread": {`"op":"program","steps":[{"out":"y","op":"abs","in":["z"]}],"inputs":[` + named("x", one) + `],"outputs":[` + named("y", one) + `]`, `reads "z"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			var v vectorCase
			if err := json.Unmarshal([]byte("{"+c.text+"}"), &v); err != nil {
				t.Fatal(err)
			}
			err := v.runForward(t.Context(), dev)
			if err == nil && v.hasGradient() {
				err = v.runBackward(t.Context(), dev)
			}
			if errors.Is(err, errMissing) != c.missing || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("outcome %v, want %q", err, c.want)
			}
		})
	}
}

// named gives a tensor of a program its name.
func named(name, tensor string) string { return `{"name":"` + name + `",` + tensor[1:] }
