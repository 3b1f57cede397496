package template

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// hostile are templates that ask for more than they may, with what the error names.
var hostile = []struct{ name, source, want string }{
	{"endless loops", "{% for a in range(9000) %}{% for b in range(9000) %}{% endfor %}{% endfor %}", "steps"},
	{"a huge range", "{{ range(1000000000000)|length }}", "steps"},
	{"a range past the end of integers", "{{ range(9223372036854775806, 9223372036854775807, 5)|list + range(0, 9223372036854775807)|list }}", "steps"},
	{"a huge text", "{{ 'a' * 1000000000000 }}", "bytes"},
	{"a text that doubles", "{% set ns = namespace(s='ab') %}{% for i in range(64) %}{% set ns.s = ns.s + ns.s %}{% endfor %}", "bytes"},
	{"a text that doubles by joins", "{% set ns = namespace(s='ab') %}{% for i in range(64) %}{% set ns.s = [ns.s, ns.s]|join %}{% endfor %}", "bytes"},
	{"a text that doubles by replaces", "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(64) %}{% set ns.s = ns.s|replace('a', 'aaaa') %}{% endfor %}", "bytes"},
	{"a list that doubles", "{% set ns = namespace(l=[1]) %}{% for i in range(64) %}{% set ns.l = ns.l + ns.l %}{% endfor %}", "steps"},
	{"a list times a number", "{{ ([1] * 1000000000000)|length }}", "steps"},
	{"a list of itself, printed", "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}", ""},
	{"a list of itself, as JSON", "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l|tojson }}", ""},
	{"a list of itself, compared", "{% set ns = namespace(l=[1], m=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% set ns.m = [ns.m, ns.m] %}{% endfor %}{{ ns.l == ns.m }}", "steps"},
	{"a list that holds itself", "{% set l = [] %}{% do l.append(l) %}{{ l }}", "deeper"},
	{"a namespace that holds itself", "{% set n = namespace() %}{% set n.n = n %}{{ n }}{{ n|tojson }}", ""},
	{"deep lists", "{% set ns = namespace(l=[]) %}{% for i in range(100000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}", "deeper"},
	{"endless calls", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "deeper"},
	{"calls that double", "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(64) }}", "steps"},
	{"endless output", "{% set s = 'x' * 1000000 %}{% for i in range(100) %}{{ s }}{% endfor %}", "bytes"},
	{"a wide format", "{{ '%999999999d' % 1 }}", "width"},
	{"a precise format", "{{ '%.999999999f' % 1.0 }}", "width"},
	{"a wide column", "{{ 'a'.ljust(1000000000000) }}", "bytes"},
	{"a wide column", "{{ 'a'|center(1000000000000) }}", "bytes"},
	{"many zeros", "{{ '1'.zfill(1000000000000) }}", "bytes"},
	{"a deep indent", "{{ 'a\nb'|indent(1000000000000) }}", "bytes"},
	{"a deep indent of JSON", "{{ [1]|tojson(indent=1000000000000) }}", "indent"},
	{"an indent that multiplies", "{{ ([1] * 100000)|tojson(indent='x' * 100000) }}", "bytes"},
	{"an indent of many lines", "{{ ('a\n' * 100000)|indent('x' * 100000) }}", "bytes"},
	{"a filled batch", "{{ [1]|batch(1000000000, 0)|list|length }}", "steps"},
	{"many slices", "{{ [1]|slice(1000000000)|list|length }}", "steps"},
	{"splits of marked text", "{% for i in range(100) %}{% set x = ('ax' * 100000).replace('a', user).split('x') %}{% endfor %}", "steps"},
	{"a power", "{{ 10 ** 1000000000000 }}", "overflow"},
	{"a sum too large", "{{ 9223372036854775807 + 1 }}", "overflow"},
	{"deep brackets", "{{ " + strings.Repeat("(", 100000) + "1" + strings.Repeat(")", 100000) + " }}", "deeper"},
	{"deep lists in the source", "{{ " + strings.Repeat("[", 100000) + strings.Repeat("]", 100000) + " }}", "deeper"},
	{"many nots", "{{ " + strings.Repeat("not ", 100000) + "1 }}", "deeper"},
	{"many signs", "{{ " + strings.Repeat("-", 100000) + "1 }}", "deeper"},
	{"many choices", "{{ " + strings.Repeat("1 if 0 else ", 50000) + "1 }}", "deeper"},
	{"deep ifs", strings.Repeat("{% if 1 %}", 40000) + strings.Repeat("{% endif %}", 40000), "deeper"},
	{"a long chain of attributes", "{{ user" + strings.Repeat(".x", 400000) + " }}", ""},
	{"a long sum", "{{ 1" + strings.Repeat("+1", 400000) + " }}", "deeper"},
	{"a long chain of filters", "{{ 'a'" + strings.Repeat("|trim", 150000) + " }}", "deeper"},
	{"a long source", strings.Repeat("a", sourceLimit+1), "bytes of source"},
	{"no end of a comment", "{#", "comment"},
	{"no end of a string", "{{ '\\", "string"},
	{"a cut escape", "{{ '\\u12", "cut"},
	{"only the start of a tag", "{%", ""},
	{"NUL bytes", "{{ \x00 }}", ""},
	{"bytes that are not UTF-8", "{{ \xff\xfe }}", ""},
	{"integers at their ends", "{{ -9223372036854775807 - 1 }}{{ (-9223372036854775807 - 1) // -1 }}{{ (-9223372036854775807 - 1)|abs }}", ""},
	{"slices at their ends", "{{ user[9223372036854775807:-9223372036854775807:-9223372036854775807] }}{{ user[::0] }}", "zero"},
}

// A template may ask for anything: it gets an error that names the limit, soon.
func TestHostile(t *testing.T) {
	for _, c := range hostile {
		t.Run(c.name, func(t *testing.T) {
			vars := NewDict()
			vars.Set("user", Outside("text"))
			start := time.Now()
			_, err := renderText(t, c.source, vars)
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
			if err == nil {
				t.Fatal("no error")
			}
			var fault *Error
			if !errors.As(err, &fault) || fault.Line == 0 {
				t.Errorf("the error names no line: %v", err)
			}
			if !strings.Contains(err.Error(), c.want) || len(err.Error()) > 300 {
				t.Errorf("got the error %v, want a short one with %q", err, c.want)
			}
		})
	}
}

// The end of the context ends a rendering.
func TestCancelled(t *testing.T) {
	tmpl, err := Parse("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err = tmpl.Render(ctx, NewDict(), Options{Limits: Limits{Steps: 1 << 40}})
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 5*time.Second {
		t.Errorf("after %v: %v, want %v soon", time.Since(start), err, context.DeadlineExceeded)
	}
}

// Errors name the line where the fault is.
func TestErrorLine(t *testing.T) {
	for source, want := range map[string]string{
		"a\nb\n{{ x.y }}":                         "chat template: line 3: 'x' is undefined",
		"{% if a %}\n\n{{ 1 / 0 }}{% endif %}":    "",
		"\n{% for x in 5 %}{% endfor %}":          "chat template: line 2: 'int' object is not iterable",
		"\n\n{{ raise_exception('Only\nthis') }}": "chat template: line 3: Only\nthis",
		"{{ 'a' + 1 }}":                           `chat template: line 1: can only concatenate str (not "int") to str`,
		"{% if 1 %}\n{{ 2 }}\n":                   "chat template: line 2: the template ends, want {% endif %}",
		"x\n{{ (1 ]}}":                            "chat template: line 2: got ']', want ')'",
		"{{ 1\n + }}":                             "chat template: line 2: got the end of the tag, want a value",
		"{% nosuch %}":                            `chat template: line 1: the statement "nosuch" is not known here, or closes nothing`,
		"{{ d.a.b }}":                             "chat template: line 1: 'dict object' has no attribute 'a'",
		"{{ 3|nosuch }}":                          "chat template: line 1: no filter named 'nosuch'",
	} {
		vars := NewDict()
		vars.Set("d", NewDict())
		_, err := renderText(t, source, vars)
		if got := ""; err != nil {
			if got = err.Error(); got != want {
				t.Errorf("%q: got the error %q, want %q", source, got, want)
			}
		} else if want != "" {
			t.Errorf("%q: no error, want %q", source, want)
		}
	}
}
