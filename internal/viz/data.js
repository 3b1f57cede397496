"use strict";

// What the page's data says, without drawing anything. See Page in page.go for the fields.
class Data {
  constructor(page) {
    this.page = page;
    this.expanded = new Map(); // text -> numbers of its lines
  }

  // lines are the numbers of a text's lines.
  lines(text) {
    if (text < 0) return [];
    const known = this.expanded.get(text);
    if (known) return known;
    const { b: base, e: edits } = this.page.texts[text];
    const before = this.lines(base);
    const out = [];
    let at = 0;
    for (const [place, gone, ...runs] of edits) {
      for (; at < place; at++) out.push(before[at]);
      at += gone;
      for (let r = 0; r < runs.length; r += 2) {
        for (let id = runs[r]; id <= runs[r + 1]; id++) out.push(id);
      }
    }
    for (; at < before.length; at++) out.push(before[at]);
    this.expanded.set(text, out);
    return out;
  }

  text(line) {
    const l = this.page.lines[line];
    return typeof l === "string" ? l : l[0];
  }

  // origin is the node of the graph for which a line was made, 0 for none. In a form of a
  // kernel only nodes count that the kernel computes: what is equal in two kernels is one
  // node, made for the first of them.
  origin(line, kernel = -1) {
    const l = this.page.lines[line];
    if (typeof l === "string") return 0;
    return kernel < 0 || this.computes(kernel, l[1]) ? l[1] : 0;
  }

  // computes says whether a kernel computes something for a node of the graph.
  computes(kernel, node) {
    if (!this.sets) this.sets = this.page.kernels.map((k) => new Set(k.origins));
    return this.sets[kernel].has(node);
  }

  // sameNode says whether a line made for one node stands for another, too: kernels that
  // several launches share have the nodes of the first.
  sameNode(origin, node) {
    return origin === node || (origin > 0 && this.page.as[node] === origin);
  }

  // graphLine is where a node of the graph is defined, -1 where it is not.
  graphLine(node) {
    if (!this.graphLines) {
      this.graphLines = new Map();
      this.lines(this.page.graph).forEach((id, at) => {
        const name = /^%(\d+) = /.exec(this.text(id));
        if (name) this.graphLines.set(Number(name[1]), at);
      });
    }
    const at = this.graphLines.get(node);
    return at === undefined ? -1 : at;
  }

  // kernelsOf are the kernels that compute something for a node of the graph.
  kernelsOf(node) {
    const list = [];
    this.page.kernels.forEach((k, i) => {
      if (this.computes(i, node)) list.push(i);
    });
    return list;
  }

  // whole is the kernel itself, or the merged one of which it is a part.
  whole(kernel) {
    const into = this.page.kernels[kernel].in;
    return into < 0 ? kernel : into;
  }

  // family are a kernel and its parts.
  family(kernel) {
    return [kernel, ...this.page.kernels[kernel].parts];
  }

  // stepsTo are the steps that lead to a form of a kernel; for the forms that hold all
  // kernels they have none.
  stepsTo(form, kernel) {
    const family = kernel < 0 ? [] : this.family(kernel);
    const list = [];
    this.page.steps.forEach((s, i) => {
      if (this.page.passes[s.pass].to === form && (s.kernel < 0 ? form === "tensor" || form === "values" : family.includes(s.kernel))) list.push(i);
    });
    return list;
  }

  // hunks are the places where a step changed a form: lines before, gone and made.
  hunks(step) {
    const s = this.page.steps[step];
    if (s.before < 0) return null;
    const after = this.page.texts[s.after];
    const before = this.lines(s.before);
    if (after.b === s.before) {
      return after.e.map(([at, gone, ...runs]) => {
        const made = [];
        for (let r = 0; r < runs.length; r += 2) {
          for (let id = runs[r]; id <= runs[r + 1]; id++) made.push(id);
        }
        return { at, gone: before.slice(at, at + gone), made };
      });
    }
    const made = this.lines(s.after);
    let same = 0;
    while (same < before.length && same < made.length && before[same] === made[same]) same++;
    let end = 0;
    while (end < before.length - same && end < made.length - same && before[before.length - 1 - end] === made[made.length - 1 - end]) end++;
    return [{ at: same, gone: before.slice(same, before.length - end), made: made.slice(same, made.length - end) }];
  }

  // loopsAround are the lines that open the blocks in which a line of a program stands.
  loopsAround(lines, at) {
    const indent = (line) => /^ */.exec(this.text(line))[0].length;
    const list = [];
    let depth = indent(lines[at]);
    for (let i = at - 1; i >= 0 && depth > 0; i--) {
      if (indent(lines[i]) < depth) {
        depth = indent(lines[i]);
        list.unshift(this.text(lines[i]).trim());
      }
    }
    return list;
  }

  // search finds words in names, passes, rules and the lines of the last forms.
  search(words, limit) {
    const want = words.toLowerCase().split(/\s+/).filter((w) => w);
    if (want.length === 0) return [];
    const found = [];
    const look = (kind, text, link) => {
      const low = text.toLowerCase();
      if (found.length < limit && want.every((w) => low.includes(w))) found.push({ kind, text, link });
    };
    const { kernels, passes, rules, steps, graph } = this.page;
    kernels.forEach((k, i) => look("kernel", k.name + " " + k.plan.join("; ") + " " + k.why, "kernel-" + i));
    steps.forEach((s, i) => {
      const p = passes[s.pass];
      look("pass", `${p.name} ${p.key} ${s.kernel < 0 ? "" : kernels[s.kernel].name}`, "step-" + i);
      for (const r of s.rewrites) look("rule", `${rules[r.rule].name}: ${r.before} -> ${r.after}`, "step-" + i);
    });
    const lines = (kind, text, link) => this.lines(text).forEach((id, at) => look(kind, this.text(id).trim(), link + at));
    this.lines(graph).forEach((id) => {
      const name = /^%(\d+) = /.exec(this.text(id));
      if (name) look("graph", this.text(id), "node-" + name[1]);
    });
    kernels.forEach((k, i) => {
      if (k.in >= 0) return;
      lines(k.name + ": program", k.program, `kernel-${i}/program-`);
      lines(k.name + ": source", k.source.text, `kernel-${i}/source-`);
      lines(k.name + ": machine", k.machine.text, `kernel-${i}/machine-`);
    });
    return found;
  }
}

// readLink reads what stands after # in an address.
function readLink(hash) {
  const link = {};
  for (const part of hash.replace(/^#/, "").split("/")) {
    const m = /^(kernel|step|node|program|source|machine)-(\d+)$/.exec(part);
    if (m) link[m[1]] = Number(m[2]);
  }
  return link;
}

if (typeof module !== "undefined") module.exports = { Data, readLink }; // for tests
