package template

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"tgc/internal/oracle"
)

// Conversations with tools, through every template of the oracle, are what Jinja2 makes
// of them (testdata/tools.py).
func TestTools(t *testing.T) {
	data, err := os.ReadFile("testdata/tools.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Tools         json.RawMessage
		Conversations []json.RawMessage
		Results       []struct {
			Template      string
			Conversation  int
			SHA256, Fails string
		}
	}
	if err := json.Unmarshal(data, &recorded); err != nil {
		t.Fatal(err)
	}
	for _, c := range recorded.Results {
		f := readVectors(t, oracle.Path(t, "chat", c.Template))
		tmpl, err := Parse(f.Template)
		if err != nil {
			t.Fatal(err)
		}
		vars := f.variables()
		vars.Set("messages", mustJSON(t, recorded.Conversations[c.Conversation]))
		vars.Set("tools", mustJSON(t, recorded.Tools))
		vars.Set("add_generation_prompt", true)
		pieces, err := tmpl.Render(t.Context(), vars, Options{Clock: func() time.Time { return toolsDay }})
		got := fmt.Sprintf("%x", sha256.Sum256([]byte(Join(pieces))))
		switch {
		case c.Fails != "" && err == nil:
			t.Errorf("%s, conversation %d: got %q, want an error such as %s", c.Template, c.Conversation, Join(pieces), c.Fails)
		case c.Fails == "" && err != nil:
			t.Errorf("%s, conversation %d: %v", c.Template, c.Conversation, err)
		case c.Fails == "" && got != c.SHA256:
			t.Errorf("%s, conversation %d: got %q, want another text (testdata/tools.py)", c.Template, c.Conversation, Join(pieces))
		}
	}
}

// toolsDay is the date that tools.py gives templates.
var toolsDay = time.Date(2024, 7, 26, 0, 0, 0, 0, time.UTC)
