package template

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tgc/internal/oracle"
)

// vectorFile is a file of oracle/chat.
type vectorFile struct {
	Template string `json:"template"`
	BOS      string `json:"bos_token"`
	EOS      string `json:"eos_token"`
	Date     string `json:"date_string"`
	Clock    string `json:"strftime_now"`
	Vectors  []struct {
		Title    string                     `json:"title"`
		Messages json.RawMessage            `json:"messages"`
		Add      bool                       `json:"add_generation_prompt"`
		Extra    map[string]json.RawMessage `json:"extra"`
		Rendered string                     `json:"rendered"`
		Error    string                     `json:"error"`
	} `json:"vectors"`
}

// Every vector renders to the byte as in Jinja2, or fails with the template's own word.
func TestOracle(t *testing.T) {
	for _, path := range oracle.Files(t, "chat", "*.json") {
		t.Run(filepath.Base(path), func(t *testing.T) { checkVectors(t, path) })
	}
}

func readVectors(t *testing.T, path string) (f vectorFile) {
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// variables are those that all vectors of a file share.
func (f *vectorFile) variables() *Dict {
	vars := NewDict()
	vars.Set("bos_token", Inside(f.BOS))
	vars.Set("eos_token", Inside(f.EOS))
	vars.Set("date_string", Inside(f.Date))
	return vars
}

func checkVectors(t *testing.T, path string) {
	f := readVectors(t, path)
	tmpl, err := Parse(f.Template)
	if err != nil {
		t.Fatal(err)
	}
	opt := Options{}
	if f.Clock != "" {
		day, err := time.Parse("2006-01-02", f.Clock)
		if err != nil {
			t.Fatal(err)
		}
		opt.Clock = func() time.Time { return day }
	}
	for _, v := range f.Vectors {
		vars := f.variables()
		vars.Set("messages", mustJSON(t, v.Messages))
		vars.Set("add_generation_prompt", v.Add)
		for name, raw := range v.Extra {
			vars.Set(name, mustJSON(t, raw))
		}
		pieces, err := tmpl.Render(t.Context(), vars, opt)
		var fault *Error
		switch {
		case v.Error != "":
			if !errors.As(err, &fault) || !fault.Raised || fault.Text != v.Error {
				t.Errorf("%s: got %q and the error %v, want the error %q", v.Title, Join(pieces), err, v.Error)
			}
		case err != nil:
			t.Errorf("%s: %v", v.Title, err)
		case Join(pieces) != v.Rendered:
			t.Errorf("%s:\n got %q\nwant %q", v.Title, Join(pieces), v.Rendered)
		}
		for _, p := range pieces {
			if !p.Outside && strings.Contains(p.Text, "Tell me a joke") {
				t.Errorf("%s: a message's text is taken for the template's own: %q", v.Title, p.Text)
			}
		}
	}
}

func mustJSON(t *testing.T, data []byte) Value {
	t.Helper()
	v, err := FromJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
