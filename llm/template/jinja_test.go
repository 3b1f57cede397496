package template

import (
	"encoding/json"
	"os"
	"testing"
)

// refused are templates that fail here on purpose, and why.
var refused = map[string]string{
	"{{ list.append(4) }}": "variables belong to the caller, who may render several times at once",
}

// What Jinja2 made of a few hundred small templates (testdata/jinja.py) is made here.
func TestJinja(t *testing.T) {
	data, err := os.ReadFile("testdata/jinja.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Variables json.RawMessage
		Templates []struct{ Template, Rendered, Fails string }
	}
	if err := json.Unmarshal(data, &recorded); err != nil {
		t.Fatal(err)
	}
	for _, c := range recorded.Templates {
		vars := mustJSON(t, recorded.Variables).(*Dict)
		got, err := renderText(t, c.Template, vars)
		if refused[c.Template] != "" {
			c.Fails = refused[c.Template]
		}
		switch {
		case c.Fails != "" && err == nil:
			t.Errorf("%q: got %q, want an error such as %s", c.Template, got, c.Fails)
		case c.Fails == "" && err != nil:
			t.Errorf("%q: %v, want %q", c.Template, err, c.Rendered)
		case c.Fails == "" && got != c.Rendered:
			t.Errorf("%q:\n got %q\nwant %q", c.Template, got, c.Rendered)
		}
	}
}

func renderText(t testing.TB, source string, vars *Dict) (string, error) {
	tmpl, err := Parse(source)
	if err != nil {
		return "", err
	}
	pieces, err := tmpl.Render(t.Context(), vars, Options{})
	return Join(pieces), err
}
