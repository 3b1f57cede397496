package viz

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"context"

	"tgc/engine"
	"tgc/ir"
	"tgc/ir/program"
	"tgc/llm"
	"tgc/llm/synth"
	"tgc/pass"
	"tgc/render"
	"tgc/target"
)

// layer is one layer of LLaMA 1B.
const layer = "llama:d=2048,layers=1,heads=32,kv=8,ff=8192,vocab=128256,quant=q6_k"

// built is a page and what it was made of.
type built struct {
	page     *Page
	compiled *engine.Compiled
	html     string
}

// build compiles a decode step of a model, without machine code, which takes long.
func build(t *testing.T, model, to string, opt Options) *built {
	t.Helper()
	shape, err := synth.Lookup(model)
	if err != nil {
		t.Fatal(err)
	}
	file, err := synth.Outline(t.Context(), shape)
	if err != nil {
		t.Fatal(err)
	}
	m, err := llm.NewModel(file)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	desc, err := target.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	renderer, err := render.For(desc)
	if err != nil {
		t.Fatal(err)
	}
	w := NewWatch()
	config := engine.Config{Control: new(pass.Control), Explain: true}
	w.Control(config.Control)
	v := llm.Variant{Batch: 1, Tokens: 1, Context: 512}
	step, err := llm.CompileStep(t.Context(), m, v, 128, desc, config)
	if err != nil {
		t.Fatal(err)
	}
	if opt.Machine == nil {
		opt.Machine = func(context.Context, *program.Program) ([]render.Line, error) { return nil, nil }
	}
	var manifest engine.Manifest
	manifest.Describe(step.Compiled, step.Binding)
	page, err := Build(t.Context(), w, step.Compiled, &manifest, renderer, opt)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := llm.CompileStep(t.Context(), m, v, 128, desc, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range plain.Compiled.Programs() {
		if got := program.Print(step.Compiled.Kernels[i].Program); got != program.Print(p) {
			t.Errorf("%s: kernel %s is another one when somebody looks", to, p.Name)
		}
	}
	var out bytes.Buffer
	if err := page.Write(&out); err != nil {
		t.Fatal(err)
	}
	return &built{page, step.Compiled, out.String()}
}

var dataElement = regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`)

// dataOf is the JSON of a page.
func dataOf(t *testing.T, html string) []byte {
	t.Helper()
	m := dataElement.FindStringSubmatch(html)
	if m == nil {
		t.Fatal("the page has no data")
	}
	return []byte(m[1])
}

// The page of a layer of LLaMA stays small, needs nothing from elsewhere, and all its
// numbers name something.
func TestPage(t *testing.T) {
	for _, to := range []string{"ptx:sm_90", "llvm:x86-64-v4"} {
		b := build(t, layer, to, Options{Title: "layer"})
		if n := len(b.html); n > 8<<20 {
			t.Errorf("%s: the page has %d bytes", to, n)
		}
		if found := regexp.MustCompile(`(?i)https?:|\bsrc=|url\(|@import|\bimport\(|fetch\(|XMLHttpRequest|href="[^"]`).FindString(b.html); found != "" {
			t.Errorf("%s: the page refers to elsewhere: %s", to, found)
		}
		data := dataOf(t, b.html)
		if i := bytes.Index(data, []byte("null")); i >= 0 {
			t.Errorf("%s: a null in the data: %s", to, data[max(0, i-60):i+10])
		}
		var plain struct {
			Lines []any `json:"lines"`
		}
		if err := json.Unmarshal(data, &plain); err != nil || len(plain.Lines) != len(b.page.Lines) {
			t.Errorf("%s: data with %d lines (%v), want %d", to, len(plain.Lines), err, len(b.page.Lines))
		}
		checkLinks(t, b.page)
		checkForms(t, b)
		checkOrigins(t, b)
	}
}

// checkLinks finds numbers that name nothing.
func checkLinks(t *testing.T, p *Page) {
	t.Helper()
	in := func(what string, n, length, least int) {
		if n < least || n >= length {
			t.Errorf("%s: %d of %d", what, n, length)
		}
	}
	for i, text := range p.Texts {
		in("base", text.Base, i, none)
		for _, e := range text.Edits {
			for _, id := range e[2:] {
				in("line of an edit", id, len(p.Lines), 0)
			}
		}
	}
	in("graph", p.Graph, len(p.Texts), 0)
	for _, s := range p.Steps {
		in("pass", s.Pass, len(p.Passes), 0)
		in("kernel", s.Kernel, len(p.Kernels), none)
		in("before", s.Before, len(p.Texts), none)
		in("after", s.After, len(p.Texts), 0)
		for _, r := range s.Rewrites {
			in("rule", r.Rule, len(p.Rules), 0)
		}
	}
	for _, r := range p.Rules {
		if r.Doc == "" {
			t.Errorf("rule %s has no text", r.Name)
		}
	}
	for _, k := range p.Kernels {
		for _, part := range append(k.Parts, k.Program) {
			in("part or program", part, len(p.Texts), 0)
		}
		lines := len(p.texts.of[k.Program])
		for _, code := range []Code{k.Source, k.Machine} {
			in("code", code.Text, len(p.Texts), none)
			for _, of := range code.Of {
				in("line of a program", of, lines, none)
			}
		}
		if k.In == none && len(k.Source.Of) != len(p.texts.of[k.Source.Text]) {
			t.Errorf("%s: source of %d lines, links of %d", k.Name, len(p.texts.of[k.Source.Text]), len(k.Source.Of))
		}
	}
}

// checkForms compares programs with what the page has of them, and finds each form.
func checkForms(t *testing.T, b *built) {
	t.Helper()
	forms := make(map[string]bool)
	for _, s := range b.page.Steps {
		forms[b.page.Passes[s.Pass].To] = true
	}
	for _, form := range []pass.Form{pass.Values, pass.Kernel, pass.Shaped, pass.Program} {
		if !forms[string(form)] {
			t.Errorf("no step leads to the form %s", form)
		}
	}
	if rules := b.page.Rules; !slices.ContainsFunc(rules, func(r Rule) bool { return r.From != "" && r.To != "" }) || len(b.page.Decisions) == 0 {
		t.Errorf("rules %v and %d decisions", rules, len(b.page.Decisions))
	}
	for i, k := range b.compiled.Kernels {
		if ns, _ := k.Price(); ns > 0 != slices.ContainsFunc(b.page.Kernels[i].Candidates, func(c Candidate) bool { return c.Chosen && c.Price > 0 }) {
			t.Errorf("kernel %s is priced at %v, candidates %v", k.Name, ns, b.page.Kernels[i].Candidates)
		}
		got := strings.Join(b.page.texts.expanded(b.page.Kernels[i].Program), "\n") + "\n"
		if want := program.Print(k.Program); got != want {
			t.Errorf("kernel %s: the page has another program", k.Name)
		}
		if len(k.Parts) == 0 && b.page.Kernels[i].Form == none {
			t.Errorf("kernel %s has no form", k.Name)
		}
	}
}

var definition = regexp.MustCompile(`^%(\d+) = (\w+)`)

// checkOrigins follows lines back to the graph: weights are loaded for the node that decodes
// them, and most instructions of a kernel have a node.
func checkOrigins(t *testing.T, b *built) {
	t.Helper()
	ops := make(map[int]string)
	for _, line := range b.page.texts.expanded(b.page.Graph) {
		if m := definition.FindStringSubmatch(line); m != nil {
			ops[number(m[1])] = m[2]
		}
	}
	computed := make(map[int]bool)
	for _, k := range b.page.Kernels {
		for _, node := range k.Origins {
			computed[node] = true
			if ops[node] == "" {
				t.Errorf("kernel %s computes %%%d, which the graph has not", k.Name, node)
			}
		}
		known, all, streams := 0, 0, 0
		for _, id := range b.page.texts.of[k.Program] {
			line := b.page.Lines[id]
			if !strings.Contains(line.Text, " = ") || strings.Contains(line.Text, " = const") {
				continue
			}
			all++
			if line.Origin != 0 {
				known++
			}
			if strings.Contains(line.Text, "cache stream") {
				if streams++; ops[line.Origin] != "decode" {
					t.Errorf("kernel %s: %q is for a %q", k.Name, line.Text, ops[line.Origin])
				}
			}
		}
		if 10*known < 7*all {
			t.Errorf("kernel %s: of %d instructions %d are for a node of the graph", k.Name, all, known)
		}
	}
	for node, op := range ops {
		if computedOps[op] && !computed[node] {
			t.Errorf("no kernel computes %%%d, a %s", node, op)
		}
	}
}

// computedOps are the ops of which every node of the graph is followed to a kernel: weights
// and other buffers, norms, and activations. Not so products, which become part of a sum.
var computedOps = map[string]bool{"buffer": true, "decode": true, "rsqrt": true, "sin": true, "recip": true}

func number(digits string) (n int) {
	for _, d := range digits {
		n = 10*n + int(d-'0')
	}
	return n
}

// A page of one kernel has its forms and those of all kernels only.
func TestOneKernel(t *testing.T) {
	all := build(t, "tiny", "llvm:x86-64-v3", Options{})
	name := all.page.Kernels[1].Name
	one := build(t, "tiny", "llvm:x86-64-v3", Options{Kernel: name})
	if len(one.page.Kernels) != 1 || one.page.Kernels[0].Name != name || len(one.html) >= len(all.html) {
		t.Errorf("%d kernels in %d bytes, all in %d", len(one.page.Kernels), len(one.html), len(all.html))
	}
	checkLinks(t, one.page)
}

// Whatever a name holds, it is data: no markup, and read back as it was.
func TestHostileNames(t *testing.T) {
	const hostile = "</script><script>alert(1)</script><!-- {{data}} \u2028 \" ' & <img src=x onerror=alert(1)> \x00"
	p := &Page{Title: hostile, About: [][2]string{{hostile, hostile}}, Lines: []Line{{hostile, 1}},
		Kernels: []Kernel{{Name: hostile, Args: []Arg{{Name: hostile}}}}}
	var out bytes.Buffer
	if err := p.Write(&out); err != nil {
		t.Fatal(err)
	}
	html := out.String()
	for text, want := range map[string]int{"<script": 2, "</script": 2, "<img": 0, "<!--": 0, "\u2028": 1} {
		if got := strings.Count(html, text); got != want {
			t.Errorf("%q is there %d times, want %d", text, got, want)
		}
	}
	var back struct {
		Title   string   `json:"title"`
		Kernels []Kernel `json:"kernels"`
	}
	if err := json.Unmarshal(dataOf(t, html), &back); err != nil || back.Title != hostile || back.Kernels[0].Args[0].Name != hostile {
		t.Errorf("read back as %q (%v)", back.Title, err)
	}
	for _, way := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "setTimeout(\"", ".srcdoc"} {
		if strings.Contains(dataJS+pageJS, way) {
			t.Errorf("the script makes markup or code of text: %s", way)
		}
	}
}

// The page's policy lets its own script and style run and nothing else.
func TestPolicy(t *testing.T) {
	var out bytes.Buffer
	if err := (&Page{}).Write(&out); err != nil {
		t.Fatal(err)
	}
	html := out.String()
	if !strings.Contains(html, "default-src 'none'") || strings.Contains(html, "unsafe") || strings.Contains(html, "{{") {
		t.Errorf("policy: %.600s", html)
	}
	for _, element := range []string{"style", "script"} {
		body := regexp.MustCompile(`(?s)<` + element + `>(.*?)</` + element + `>`).FindStringSubmatch(html)
		if body == nil || !strings.Contains(html, element+"-src 'sha256-"+hashOf(body[1])+"'") {
			t.Errorf("the policy does not name the hash of the %s", element)
		}
	}
}

// The page's own reading of its data gives the same texts, and each step's hunks lead from
// the form before to the form after.
func TestScript(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node")
	}
	b := build(t, "tiny", "ptx:sm_90", Options{})
	dir := t.TempDir()
	want := make([][]string, len(b.page.Texts))
	for i := range want {
		want[i] = b.page.texts.expanded(i)
	}
	texts, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"page.js": []byte(dataJS + pageJS), "data.js": []byte(dataJS), "page.json": dataOf(t, b.html), "texts.json": texts} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check, err := filepath.Abs("testdata/check.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--check", "page.js"}, {check}} {
		run := exec.CommandContext(t.Context(), node, args...)
		run.Dir = dir
		if out, err := run.CombinedOutput(); err != nil {
			t.Errorf("node %v: %v\n%s", args, err, out)
		}
	}
}

// A browser draws the page without a fault, if there is one.
func TestBrowser(t *testing.T) {
	browser := ""
	for _, name := range []string{"chromium-headless-shell", "chromium", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && browser == "" {
			browser = path
		}
	}
	if browser == "" {
		t.Skip("no Chromium")
	}
	b := build(t, layer, "ptx:sm_90", Options{Title: "layer"})
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(b.html), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, want := range map[string]string{
		"":                        b.page.Kernels[0].Name,
		"kernel-1/program-900":    "in loops",
		"step-2":                  "Rules that fired",
		"node-" + anyNode(b.page): "made for",
	} {
		run := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
			"--virtual-time-budget=10000", "--user-data-dir="+t.TempDir(), "--dump-dom", "file://"+file+"#"+link)
		var faults bytes.Buffer
		run.Stderr = &faults
		dom, err := run.Output()
		if err != nil || !strings.Contains(string(dom), want) {
			t.Errorf("#%s: %v, and no %q in %d bytes", link, err, want, len(dom))
		}
		if i := strings.Index(faults.String(), "CONSOLE"); i >= 0 {
			t.Errorf("#%s: %s", link, faults.String()[i:])
		}
	}
}

// anyNode is a node of the graph that a kernel computes.
func anyNode(p *Page) string {
	for _, id := range p.texts.of[p.Graph] {
		m := definition.FindStringSubmatch(p.Lines[id].Text)
		if m != nil && slices.Contains(p.Kernels[1].Origins, number(m[1])) {
			return m[1]
		}
	}
	return "0"
}

// Machine code and source are linked by their instructions; equal ones are taken in turn.
func TestCodeOf(t *testing.T) {
	b := &builder{Page: &Page{texts: newTexts()}}
	text := b.texts.add("%1:f32 = load %0"+ir.OriginMark+"7\nbarrier\nstore %0 %1\nbarrier\n", none)
	c := b.codeOf([]render.Line{{Text: "start:"}, {Text: "ld", Of: "%1:f32 = load %0"}, {Text: "bar", Of: "barrier"}, {Text: "st", Of: "store %0 %1"}, {Text: "bar", Of: "barrier"}}, b.linesOf(text))
	if want := []int{none, 0, 1, 2, 3}; !slices.Equal(c.Of, want) {
		t.Errorf("links %v, want %v", c.Of, want)
	}
	if l := b.texts.lines[b.texts.of[c.Text][1]]; l != (Line{"ld", 7}) {
		t.Errorf("line %v, want one for node 7", l)
	}
	if got, want := withOrigins("%1:f32 = load %0"+ir.OriginMark+"7\n%2:f32 = add %1 %1\nstore %0 %2\n", []int{7}), 3; strings.Count(got, ir.OriginMark+"7") != want {
		t.Errorf("origins of operands are not taken over:\n%s", got)
	}
	if got := withOrigins("%1:f32 = load %0"+ir.OriginMark+"7\nstore %0 %1\n", []int{8}); strings.Contains(got, ir.OriginMark) {
		t.Errorf("the node of another kernel is kept:\n%s", got)
	}
}

// A kernel that several layers share is found from the nodes of each, and its lines from
// those that have the place of the first.
func TestSharedKernels(t *testing.T) {
	b := build(t, "tiny", "llvm:x86-64-v3", Options{})
	checkOrigins(t, b)
	found := 0
	for _, line := range b.page.texts.expanded(b.page.Graph) {
		m := definition.FindStringSubmatch(line)
		if m == nil || m[2] != "rsqrt" {
			continue
		}
		node := number(m[1])
		for _, k := range b.page.Kernels {
			if !slices.Contains(k.Origins, node) {
				continue
			}
			if !slices.ContainsFunc(b.page.texts.of[k.Program], func(id int32) bool {
				l := b.page.Lines[id]
				return strings.Contains(l.Text, "= rsqrt") && (l.Origin == node || l.Origin == b.page.As[node])
			}) && strings.Contains(strings.Join(b.page.texts.expanded(k.Program), "\n"), "= rsqrt") {
				t.Errorf("kernel %s computes %s, but none of its lines is for it", k.Name, line)
			}
			found++
		}
	}
	if layers := 2; found < 2*layers {
		t.Errorf("%d norms are found in kernels", found)
	}
}
