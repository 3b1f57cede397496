package template

import (
	"strings"
	"testing"
)

// marked shows outside text in brackets.
func marked(pieces []Piece) string {
	var b strings.Builder
	for _, p := range pieces {
		if p.Outside {
			b.WriteString("[" + p.Text + "]")
		} else {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// Whatever a template does to a text from outside, its characters stay from outside,
// and the template's own beside them do not become so.
func TestOrigins(t *testing.T) {
	for source, want := range map[string]string{
		"<a>{{ m }}</a>":                                       "<a>[Hi, You]</a>",
		"{{ '<' + m + '>' }}":                                  "<[Hi, You]>",
		"{{ '<' ~ m ~ '>' }}":                                  "<[Hi, You]>",
		"{{ m|trim('H')|upper }}":                              "[I, YOU]",
		"{{ m|lower }}{{ m|title }}":                           "[hi, youHi, You]",
		"{{ m.split(', ')[1] }}":                               "[You]",
		"{{ m.split(', ')|join('--') }}":                       "[Hi]--[You]",
		"{{ m.replace(', ', '|') }}":                           "[Hi]|[You]",
		"{{ 'a-b'.replace('-', m) }}":                          "a[Hi, You]b",
		"{{ m[0] }}.{{ m[1:3] }}.{{ m[::-1] }}":                "[H].[i,].[uoY ,iH]",
		"{% for c in m[:2] %}{{ c }}-{% endfor %}":             "[H]-[i]-",
		"{{ [m, 'x'] }}":                                       "['[Hi, You]', 'x']",
		"{{ {'k': m}|tojson }}":                                `{"k": "[Hi, You]"}`,
		"{{ d|tojson }}":                                       `{"[key]": "[value]"}`,
		"{% for k, v in d|items %}{{ k }}={{ v }}{% endfor %}": "[key]=[value]",
		"{% set x %}<{{ m }}>{% endset %}{{ x|trim('<') }}":    "[Hi, You]>",
		"{% macro f(a) %}({{ a }}){% endmacro %}{{ f(m) }}":    "([Hi, You])",
		"{% filter upper %}x{{ m }}{% endfilter %}":            "X[HI, YOU]",
		"{{ '%s!' % m }}{{ '{}!'.format(m) }}":                 "[Hi, You]![Hi, You]!",
		"{{ '%9s|' % m }}":                                     "[  Hi, You]|",
		"{{ m|e }}{{ m|indent(2, true) }}":                     "[Hi, You]  [Hi, You]",
		"{{ m|truncate(5, true, '...', 0) }}":                  "[Hi]...",
		"{{ m if m is string else 'none' }}":                   "[Hi, You]",
		"{% set ns = namespace(x='') %}{% for i in range(2) %}{% set ns.x = ns.x + m[0] + 'a' %}{% endfor %}{{ ns.x }}": "[H]a[H]a",
		"{{ m.center(11, '*') }}":                        "**[Hi, You]**",
		"{{ m.partition(',')|join('') }}":                "[Hi, You]",
		"{{ m.removeprefix('Hi') }}{{ m.capitalize() }}": "[, YouHi, you]",
		"{{ [m]|map('replace', 'You', 'Me')|first }}":    "[Hi, ]Me",
		"{{ empty }}{{ 'x' }}":                           "x",
		"{{ m|list|sort|join }}":                         "[ ,HiouY]",
		"{{ m|string|safe }}":                            "[Hi, You]",
	} {
		vars := NewDict()
		vars.Set("m", Outside("Hi, You"))
		vars.Set("empty", Outside(""))
		vars.Set("d", mustJSON(t, []byte(`{"key": "value"}`)))
		tmpl, err := Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		pieces, err := tmpl.Render(t.Context(), vars, Options{})
		if err != nil {
			t.Errorf("%s: %v", source, err)
		} else if got := marked(pieces); got != want {
			t.Errorf("%s: got %s, want %s", source, got, want)
		}
	}
}

// FuzzRender gives any template any text: it ends, keeps to its limits, is the same
// twice, and no letter that only the text has is taken for the template's.
func FuzzRender(f *testing.F) {
	for _, c := range hostile {
		if len(c.source) < 1000 {
			f.Add(c.source, "text")
		}
	}
	f.Add("{% for m in messages %}{{ '<|' + m.role|upper + '|>' }}{{ m['content'].split('\n')[0][1:]|trim }}{% endfor %}", "ӝa\nӝb")
	f.Add("{{ messages|tojson(indent=2) }}{{ messages|map(attribute='content')|join(', ') }}", "ӝ")
	f.Add("{%- set ns = namespace(a=1) -%}{% macro m(x, y=2) %}{{ x ~ y }}{% endmacro %}{{ m(messages[0].content, y=3) }}", "ӝ\"\\")
	f.Fuzz(func(t *testing.T, source, text string) {
		const mark = "ӝ" // a letter of Udmurt that no template and no operation here makes
		if strings.ContainsAny(source, mark+"Ӝ\\%") {
			return // also spelled by an escape or a format
		}
		tmpl, err := Parse(source)
		if err != nil {
			return
		}
		message := NewDict()
		message.Set("role", Outside("user"))
		message.Set("content", Outside(text))
		vars := NewDict()
		vars.Set("messages", NewList(message))
		opt := Options{Limits: Limits{Steps: 1 << 14, Output: 1 << 14}}
		pieces, err := tmpl.Render(t.Context(), vars, opt)
		again, err2 := tmpl.Render(t.Context(), vars, opt)
		if (err == nil) != (err2 == nil) || Join(pieces) != Join(again) {
			t.Fatalf("twice the same template: %q (%v) and %q (%v)", Join(pieces), err, Join(again), err2)
		}
		if len(Join(pieces)) > opt.Limits.Output {
			t.Fatalf("%d bytes of output", len(Join(pieces)))
		}
		for _, p := range pieces {
			if !p.Outside && strings.ContainsAny(p.Text, mark+"Ӝ") {
				t.Fatalf("%q is taken for the template's own", p.Text)
			}
		}
	})
}
