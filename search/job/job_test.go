package job

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"tgc/nn"
)

var usual = Job{Modes: []nn.Numeric{0}, Devices: []string{""}, Context: 1024, Depth: 128, Beam: 4, Priced: 8, Seed: 1}

const whole = `{
 "models": ["tiny", "graph.uop"],
 "steps": ["256*decode", "prompt:512", "batch:4@100"],
 "modes": ["int8", "exact"],
 "devices": ["cpu", "cuda:1", "interp"],
 "budget": "30m", "db": "plans", "log": "tune.jsonl",
 "ctx": 4096, "depth": 10, "beam": 8, "priced": 0, "seed": 18446744073709551615,
 "fusion": 0.25, "keep_bits": true, "again": true, "scratch": false
}
`

// wholeYAML says the same.
const wholeYAML = `# a night of tuning
models: [tiny, graph.uop]
steps:
  - 256*decode
  - "prompt:512"   # of 512 tokens
  - batch:4@100
modes: [int8, exact]
devices:
- cpu
- cuda:1
- 'interp'
budget: 30m
db: plans
log: tune.jsonl
ctx: 4096
depth: 10
beam: 8
priced: 0
seed: 18446744073709551615
fusion: 0.25
keep_bits: true
again: true
scratch: false
`

func TestParse(t *testing.T) {
	j, err := Parse([]byte(whole), usual)
	if err != nil {
		t.Fatal(err)
	}
	if y, err := Parse([]byte(wholeYAML), usual); err != nil || !reflect.DeepEqual(y, j) {
		t.Errorf("YAML: %+v, %v, want %+v", y, err, j)
	}
	if len(j.Steps) != 3 || j.Steps[2].Depth != 100 || j.Budget != 30*time.Minute || j.DB != "plans" || j.Context != 4096 || j.Seed != 1<<64-1 || !j.KeepBits || j.Scratch || j.Priced != 0 || j.Fusion != 0.25 {
		t.Errorf("%+v", j)
	}
	runs := j.Runs()
	if len(runs) != 9 || runs[1] != (Run{"cpu", "tiny", j.Modes[1]}) || runs[8] != (Run{"interp", "graph.uop", j.Modes[0]}) {
		t.Errorf("runs %+v", runs)
	}
	least, err := Parse([]byte(`{"models":["tiny"],"budget":"1s"}`), usual)
	if err != nil || least.Beam != 4 || least.Depth != 128 || len(least.Runs()) != 1 {
		t.Errorf("%+v, %v: want what is usual", least, err)
	}
}

// What is wrong is told with its place, what was found and what is wanted.
func TestParseRefuses(t *testing.T) {
	deep := strings.Repeat("[", 1000) + strings.Repeat("]", 1000)
	many := `["a"` + strings.Repeat(`,"a"`, 64) + `]`
	for text, want := range map[string]string{
		``:                                       `1:1: no JSON: the file ends`,
		`[]`:                                     `1:1: a list, want an object`,
		`{"models":["tiny"],"budget":"1s"} {}`:   `1:35: more after the object`,
		`{"models":["tiny"],"budget":"1s"}x`:     `1:34: more after the object`,
		"{\n \"models\": [\"tiny\"],\n}":         `3:1: no JSON: invalid character '}'`,
		`{"models":["tiny"`:                      `1:18: no JSON: the file ends`,
		"{\"models\":[\"\xff\"]}":                `no UTF-8`,
		`{"models":["tiny"]}`:                    `1:1: no "budget", want it`,
		`{"budget":"1s"}`:                        `1:1: no "models", want it`,
		"{\n  \"model\": [\"tiny\"]}":            `2:3: model: no member of a job, want one of models, steps`,
		`{"models":[],"models":[]}`:              `1:14: models: is there twice`,
		`{"models":[]}`:                          `1:2: models: 0 items, want 1 to 64`,
		`{"budget":"1s","budget":"2s"}`:          `1:16: budget: is there twice`,
		`{"models":"tiny"}`:                      `1:2: models: "tiny", want a list of strings`,
		"{\"models\":[\"a\",\n\n  5]}":           `3:3: models[1]: 5, want a string: a model`,
		`{"models":[null]}`:                      `models[0]: null, want a string`,
		`{"models":[""]}`:                        `models[0]: a string of 0 bytes`,
		`{"models":["a\u0000b"]}`:                `control characters`,
		`{"models":` + many + `}`:                `models: 65 items`,
		`{"models":` + deep + `}`:                `deep, want at most 8`,
		`{"steps":["decode","nothing"]}`:         `1:20: steps[1]: step "nothing"`,
		`{"modes":["int9"]}`:                     `modes[0]:`,
		`{"devices":["toaster"]}`:                `1:13: devices[0]: unknown device "toaster": want one of`,
		`{"budget":30}`:                          `budget: 30, want a time such as`,
		`{"budget":"-3s"}`:                       `budget: "-3s", want a time`,
		`{"budget":"999999h"}`:                   `want a time`,
		`{"ctx":1e3}`:                            `ctx: 1e3, want a whole number from 1`,
		`{"ctx":99999999999999999999999}`:        `want a whole number`,
		`{"ctx":"5"}`:                            `ctx: "5", want a whole number`,
		`{"seed":-1}`:                            `seed: -1, want a whole number from 0`,
		`{"fusion":1}`:                           `fusion: 1, want a number from 0 on`,
		`{"fusion":"0.5"}`:                       `fusion: "0.5", want a number`,
		"fusion: .nan\n":                         `of YAML, want a plain value`,
		`{"again":1}`:                            `again: 1, want true or false`,
		`{"db":{"a":1}}`:                         `db: an object, want a string: a folder`,
		`{"` + strings.Repeat("x", 500) + `":1}`: `no member of a job`,

		"- a\n- b":         `1:1: a list, want an object`,
		"# nothing\n":      `1:1: a file without anything`,
		"tiny":             `1:1: "tiny", want an object`,
		"models: [tiny]\n": `1:1: no "budget", want it`,
		"models: [tiny]\nbudget: 1s\n---\nmodels: []": `4:1: more after the first document`,
		"models:\n  - tiny\n  - 5\n":                  `3:5: models[1]: 5, want a string: a model`,
		"# ü\nmodels: [ü, 5]\n":                       `2:14: models[1]: 5, want a string`,
		"model: [tiny]\n":                             `1:1: model: no member of a job, want one of models, steps`,
		"budget: 1s\nbudget: 2s\n":                    `2:1: budget: is there twice`,
		"models: [tiny\nbudget: 1s\n":                 `no YAML: `,
		"models: [tiny]\n budget: 1s\n":               `no YAML: `,
		"models: &a [tiny]\ndb: *a\n":                 `1:9: models: anchor of YAML, want a plain value`,
		"models: !x [tiny]\n":                         `tag of YAML`,
		"<<: {models: [tiny]}\n":                      `as a name, want a string`,
		"? [a]\n: b\n":                                `2:1: no YAML`,
		"budget: 30\n":                                `budget: 30, want a time such as`,
		"ctx: 0x10\n":                                 `ctx: 0x10, want a whole number`,
		"again: yes\n":                                `again: "yes", want true or false`,
		"db: {a: 1}\n":                                `db: an object, want a string: a folder`,
		"db: |\n  a\n  b\n":                           `control characters`,
		"models: " + deep:                             `deep, want at most 8`,
		strings.Repeat("a: ", 20000):                  ``,
		"a: 1\n" + strings.Repeat("# more\n", 10000):  `bytes of YAML, want at most`,
	} {
		_, err := Parse([]byte(text), usual)
		var place *Error
		if !errors.As(err, &place) || !strings.Contains(err.Error(), want) || len(err.Error()) > 400 {
			t.Errorf("%.80s:\n%v, want an error with %s", text, err, want)
		}
	}
	names := func(n int) string { return `["tiny"` + strings.Repeat(`,"tiny"`, n-1) + `]` }
	_, err := Parse([]byte(`{"budget":"1s","models":`+names(64)+`,"modes":["exact","int8"],"devices":["cpu"`+strings.Repeat(`,"cpu"`, 63)+`]}`), usual)
	if err == nil || !strings.Contains(err.Error(), "8192 runs") {
		t.Errorf("error %v", err)
	}
	if _, err := Parse(append([]byte(whole), make([]byte, MostBytes)...), usual); err == nil || !strings.Contains(err.Error(), "bytes, want at most") {
		t.Errorf("a large file: %v", err)
	}
}

// Any text is a job within its bounds, or an error of one short line with a place in the text.
func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"models":["tiny"],"budget":"1s"}`))
	f.Add([]byte("{\n \"models\": [\"tiny\"],\n}"))
	f.Add([]byte(wholeYAML))
	f.Add([]byte("models:\n- tiny\nbudget: 1s\r\n"))
	f.Add([]byte("a: &x [1, *x]\nb: !!str |\n  c\n<<: *x\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		j, err := Parse(text, usual)
		if err == nil {
			if len(j.Models) == 0 || len(j.Runs()) == 0 || len(j.Runs()) > mostRuns || j.Budget < leastTime || j.Budget > mostTime || j.Context < 1 || j.Beam < 1 {
				t.Errorf("%q is %+v", text, j)
			}
			return
		}
		var place *Error
		if !errors.As(err, &place) || !utf8.ValidString(err.Error()) || len(err.Error()) > 600 {
			t.Fatalf("%q: error %q", text, err)
		}
		lines := strings.Split(string(text), "\n")
		if place.Line < 1 || place.Line > len(lines) || place.Column < 1 || place.Column > len(lines[place.Line-1])+1 {
			t.Errorf("%q: place %d:%d", text, place.Line, place.Column)
		}
	})
}
