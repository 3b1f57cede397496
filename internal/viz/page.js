// Drawing. All text goes through textContent: nothing of the data becomes markup.
const page = JSON.parse(document.getElementById("data").textContent);
const data = new Data(page);
const byId = (id) => document.getElementById(id);

// make makes an element with attributes and children, which are elements or text.
function make(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== undefined && value !== false) e.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) e.append(child);
  }
  return e;
}

const link = (to, ...children) => make("a", { href: "#" + to }, ...children);
const numberOf = (v, digits = 4) => Number(Number(v).toPrecision(digits)).toLocaleString("en");

function bytes(n) {
  let unit = 0;
  for (; n >= 1024 && unit < 4; unit++) n /= 1024;
  return numberOf(n) + " " + ["B", "KiB", "MiB", "GiB", "TiB"][unit];
}

// What is shown: a kernel's forms, or a step; and what is chosen in them.
const state = { kernel: 0, step: -1, node: 0, program: -1, column: 0, chosen: null };
let columns = []; // of the kernel that is drawn
let drawn = -1;

// formsOf lists the columns of a kernel, each with the texts that it can show.
function formsOf(kernel) {
  const k = page.kernels[kernel];
  const steps = (form) => data.stepsTo(form, kernel).map((i) => {
    const s = page.steps[i];
    const part = s.kernel >= 0 && s.kernel !== kernel ? ` (${page.kernels[s.kernel].name})` : "";
    return { name: `${i}. ${page.passes[s.pass].name}${part}`, text: s.after };
  });
  const kernelForms = data.family(kernel).filter((i) => page.kernels[i].form >= 0)
    .map((i) => ({ name: page.kernels[i].name, text: page.kernels[i].form }));
  const code = (c, name) => (c.text < 0 ? [] : [{ name, text: c.text, of: c.of }]);
  return [
    { name: "Graph", whole: true, forms: [{ name: "as given", text: page.graph }, ...steps("tensor")], first: true },
    { name: "Values", whole: true, forms: steps("values") },
    { name: "Kernel", forms: kernelForms, first: true },
    { name: "Shaped", forms: steps("shaped") },
    { name: "Program", forms: [...steps("program"), { name: "as rendered", text: k.program, program: true }] },
    { name: "Source", forms: code(k.source, "source") },
    { name: "Machine", forms: code(k.machine, "machine code") },
  ].filter((c) => c.forms.length > 0);
}

// Column draws one form and knows the lines that it shows.
class Column {
  constructor(form, number) {
    this.form = form;
    this.number = number;
    this.shown = form.forms[form.first ? 0 : form.forms.length - 1];
    this.list = make("div", { class: "lines", tabindex: "0", role: "listbox", "aria-label": form.name });
    const choice = make("select", { "aria-label": form.name + " after" }, form.forms.map((f, i) => make("option", { value: i, selected: f === this.shown }, f.name)));
    choice.addEventListener("change", () => {
      this.shown = form.forms[Number(choice.value)];
      this.draw();
      this.mark();
    });
    this.element = make("section", { class: "column" }, make("h2", {}, form.name, choice), this.list);
    this.list.addEventListener("click", (event) => {
      const row = event.target.closest("[data-at]");
      if (row) choose(this, Number(row.dataset.at));
    });
    this.list.addEventListener("focus", () => { state.column = number; });
    this.draw();
  }

  draw() {
    this.lines = data.lines(this.shown.text);
    this.list.replaceChildren(...this.lines.map((id, at) => make("div", { "data-at": at }, data.text(id) || " ")));
  }

  // originAt is the node of the graph for which a line was made.
  originAt(at) {
    return data.origin(this.lines[at], this.form.whole ? -1 : state.kernel);
  }

  // programLine is the line of the program, as rendered, of which a line was made.
  programLine(at) {
    if (this.shown.program) return at;
    return this.shown.of ? this.shown.of[at] : -1;
  }

  // mark shows the lines that belong to what is chosen, and brings the first into sight.
  mark(keepPlace) {
    let best = null;
    let bestRank = 0;
    Array.from(this.list.children).forEach((row, at) => {
      const exact = state.program >= 0 && this.programLine(at) === state.program;
      const same = state.node > 0 && (data.sameNode(this.originAt(at), state.node) || (this.form.name === "Graph" && data.graphLine(state.node) === at && this.shown.text === page.graph));
      const chosen = state.chosen && state.chosen.column === this.number && state.chosen.at === at;
      row.className = (exact ? "exact" : same ? "same" : "") + (chosen ? " chosen" : "");
      const rank = chosen ? 3 : exact ? 2 : same ? 1 : 0;
      if (rank > bestRank) [best, bestRank] = [row, rank];
    });
    if (best && !keepPlace) {
      this.list.scrollTop = best.offsetTop - this.list.offsetTop - this.list.clientHeight / 3;
    }
  }
}

// choose follows a line through all forms.
function choose(column, at, inPlace = true) {
  const id = column.lines[at];
  const defined = column.form.name === "Graph" && /^%(\d+) = /.exec(data.text(id));
  state.node = defined ? Number(defined[1]) : column.originAt(at);
  state.program = column.programLine(at);
  state.chosen = { column: column.number, at };
  const kernels = data.kernelsOf(state.node).map((k) => data.whole(k));
  if (column.form.name === "Graph" && kernels.length > 0 && !kernels.includes(state.kernel)) {
    location.hash = `kernel-${kernels[0]}/node-${state.node}`;
    return;
  }
  history.replaceState(null, "", `#kernel-${state.kernel}` + (state.node ? `/node-${state.node}` : ""));
  for (const c of columns) c.mark(inPlace && c === column);
  drawDetails(column, at);
}

function drawKernel() {
  if (drawn !== state.kernel) {
    columns = formsOf(state.kernel).map((f, i) => new Column(f, i));
    byId("main").replaceChildren(...columns.map((c) => c.element));
    drawn = state.kernel;
  }
  for (const c of columns) c.mark();
  drawDetails(null, -1);
}

const table = (rows) => make("table", {}, rows.map((cells) => make("tr", {}, cells.map((c, i) => make(i === 0 ? "th" : "td", {}, c)))));

// drawDetails says what is known of the line that is chosen, and of the kernel.
function drawDetails(column, at) {
  const parts = [];
  if (state.node > 0 || column) parts.push(selection(column, at));
  for (const i of data.family(state.kernel)) parts.push(...kernelDetails(page.kernels[i]));
  byId("details").replaceChildren(...parts);
}

function selection(column, at) {
  const out = make("section", {}, make("h2", {}, "Selected"));
  if (column) out.append(make("pre", {}, data.text(column.lines[at]).trim()));
  const rows = [];
  const place = data.graphLine(state.node);
  if (place >= 0) {
    rows.push(["made for", link("node-" + state.node, data.text(data.lines(page.graph)[place]))]);
    const kernels = [...new Set(data.kernelsOf(state.node).map((k) => data.whole(k)))];
    rows.push(["in kernels", kernels.flatMap((k) => [link(`kernel-${k}/node-${state.node}`, page.kernels[k].name), " "])]);
  }
  if (state.program >= 0) {
    const lines = data.lines(page.kernels[state.kernel].program);
    rows.push(["instruction", data.text(lines[state.program]).trim()]);
    const loops = data.loopsAround(lines, state.program);
    if (loops.length > 0) rows.push(["in loops", make("pre", {}, loops.map((l, i) => "  ".repeat(i) + l).join("\n"))]);
    for (const name of ["source", "machine"]) {
      const n = page.kernels[state.kernel][name].of.filter((of) => of === state.program).length;
      if (page.kernels[state.kernel][name].text >= 0) rows.push([name, `${n} lines`]);
    }
  }
  out.append(table(rows));
  return out;
}

function kernelDetails(k) {
  const rows = [["kernel", k.name], ["plan", k.plan.join("; ") || (k.parts.length > 0 ? "of its parts" : "empty")], ["from", k.plan_from], ["why", k.why]];
  if (k.launches > 0) {
    rows.push(["launches a step", numberOf(k.launches)], ["grid x block", `${k.grid.join(" ")} x ${k.block.join(" ") || 1}` + (k.shared_bytes > 0 ? `, ${bytes(k.shared_bytes)} shared` : "")]);
    rows.push(["reads, writes", `${bytes(k.bytes_read)}, ${bytes(k.bytes_written)}`], ["operations", numberOf(k.flops)]);
  }
  if (k.price_ns > 0) rows.push(["expected", numberOf(k.price_ns / 1000) + " us"]);
  if (k.time) {
    rows.push(["measured", `${numberOf(k.time.time_us / k.time.count)} us a call, ${numberOf(100 * k.time.share)} % of the step, ${numberOf(k.time.gb_s)} GB/s, ${numberOf(k.time.gflops)} GFLOP/s`]);
  }
  const out = [make("section", {}, make("h2", {}, "Kernel"), table(rows))];
  if (k.formula.length > 0) out.push(make("section", {}, make("h2", {}, "Formula"), make("pre", {}, k.formula.join("\n"))));
  if (k.candidates.length > 0) {
    out.push(make("section", {}, make("h2", {}, "Candidates: the cheapest of each block size"), table([["threads", "expected us", ""],
      ...k.candidates.map((c) => [String(c.threads), numberOf(c.ns / 1000), c.chosen ? "chosen" : ""])])));
  }
  if (k.records.length > 0) out.push(make("section", {}, make("h2", {}, "Heuristics"), make("pre", {}, k.records.join("\n"))));
  if (k.args.length > 0) {
    out.push(make("section", {}, make("h2", {}, "Arguments"), table(k.args.map((a) => [a.name, a.role, a.type, bytes(a.bytes), a.access]))));
  }
  return out;
}

// drawStep shows what one pass changed, and the rules that fired in it.
function drawStep() {
  const s = page.steps[state.step];
  const p = page.passes[s.pass];
  drawn = -1;
  const parts = [make("h2", {}, `Rewrite ${state.step + 1} of ${page.steps.length}: ${p.name}${p.key ? ` (${p.key})` : ""}`, s.kernel >= 0 ? " of " : "", s.kernel >= 0 ? link("kernel-" + data.whole(s.kernel), page.kernels[s.kernel].name) : ""),
    table([["form", p.from === p.to ? p.to : `${p.from} to ${p.to}`], ["does", p.doc], ["why", p.why], ...(p.group ? [["group", p.group]] : [])]),
    make("p", {}, state.step > 0 ? link("step-" + (state.step - 1), "previous (p)") : "", " ", state.step + 1 < page.steps.length ? link("step-" + (state.step + 1), "next (n)") : "")];
  parts.push(difference(state.step));
  if (s.rewrites.length > 0) {
    parts.push(make("h2", {}, `Rules that fired (${s.rewrites.length} different rewrites)`));
    for (const r of s.rewrites) parts.push(rewriteOf(r));
  }
  const decided = page.decisions.filter((d) => d.pass === p.name);
  if (decided.length > 0) {
    parts.push(make("h2", {}, "What the pass decided, in all steps"), table(decided.map((d) => [d.value, d.applied ? "applied" : "declined", d.reason, d.numbers])));
  }
  byId("main").replaceChildren(make("section", { class: "step" }, parts));
  byId("details").replaceChildren();
}

function rewriteOf(r) {
  const rule = page.rules[r.rule];
  const rows = [["rule", rule.name + (r.times > 1 ? ` (${r.times} times)` : "")], ["text", rule.from ? `${rule.from} -> ${rule.to}${rule.when.length > 0 ? " if " + rule.when.join(", ") : ""}` : "Go code"],
    ["why", rule.doc], ["before", make("pre", {}, r.before)], ["after", make("pre", {}, r.after)]];
  return make("section", {}, table(rows), make("hr", {}));
}

// difference shows the lines around those that a step changed, or all of a new form.
function difference(step) {
  const s = page.steps[step];
  const left = make("div", { class: "lines", tabindex: "0", "aria-label": "before" });
  const right = make("div", { class: "lines", tabindex: "0", "aria-label": "after" });
  const hunks = data.hunks(step);
  const row = (id, kind) => make("div", { class: kind, title: data.origin(id) ? "made for %" + data.origin(id) : undefined }, data.text(id) || " ");
  if (hunks === null) {
    right.append(...data.lines(s.after).map((id) => row(id, "")));
    return make("div", { class: "sides" }, right);
  }
  const before = data.lines(s.before);
  const context = 3;
  let at = 0;
  hunks.forEach((h, i) => {
    const from = Math.max(at, h.at - context);
    if (from > at) for (const side of [left, right]) side.append(make("div", { class: "faint" }, `.. ${from - at} lines`));
    const end = h.at + h.gone.length;
    const next = i + 1 < hunks.length ? hunks[i + 1].at : before.length;
    for (const side of [left, right]) side.append(...before.slice(from, h.at).map((id) => row(id, "")));
    left.append(...h.gone.map((id) => row(id, "gone")));
    right.append(...h.made.map((id) => row(id, "made")));
    const shorter = h.gone.length < h.made.length ? left : right;
    for (let n = Math.abs(h.gone.length - h.made.length); n > 0; n--) shorter.append(make("div", {}, " "));
    at = Math.min(next, end + context);
    for (const side of [left, right]) side.append(...before.slice(end, at).map((id) => row(id, "")));
  });
  if (at < before.length) for (const side of [left, right]) side.append(make("div", { class: "faint" }, `.. ${before.length - at} lines`));
  left.addEventListener("scroll", () => { right.scrollTop = left.scrollTop; });
  right.addEventListener("scroll", () => { left.scrollTop = right.scrollTop; });
  return make("div", { class: "sides" }, left, right);
}

// drawSide lists kernels, then the rewrites that concern the one that is shown.
function drawSide() {
  const most = Math.max(...page.kernels.map((k) => (k.time ? k.time.share : k.price_ns * k.launches)), 0);
  const kernels = page.kernels.map((k, i) => {
    if (k.in >= 0) return null;
    const weight = k.time ? k.time.share : k.price_ns * k.launches;
    const bar = make("span", { class: "bar" });
    bar.style.width = most > 0 ? `${(100 * weight) / most}%` : "0";
    const a = link("kernel-" + i, k.name, make("small", {}, ` x ${k.launches}`), bar);
    if (state.step < 0 && i === state.kernel) a.setAttribute("aria-current", "true");
    return make("li", {}, a);
  });
  const family = data.family(state.kernel);
  const steps = page.steps.map((s, i) => {
    if (s.kernel >= 0 && !family.includes(s.kernel) && i !== state.step) return null;
    const p = page.passes[s.pass];
    const hunks = data.hunks(i);
    const counts = hunks === null ? p.to : hunks.reduce(([g, m], h) => [g + h.gone.length, m + h.made.length], [0, 0]).map((n, j) => (j ? " +" : "-") + n).join("");
    const a = link("step-" + i, `${i + 1} ${p.name}`, make("small", {}, ` ${counts}${s.rewrites.length > 0 ? `, ${s.rewrites.length} rules` : ""}`));
    if (i === state.step) a.setAttribute("aria-current", "true");
    return make("li", {}, a);
  });
  byId("side").replaceChildren(make("h2", {}, "Kernels"), make("ul", {}, kernels), make("h2", {}, "Rewrites"), make("ol", {}, steps));
  const current = byId("side").querySelector("[aria-current]");
  if (current) current.scrollIntoView({ block: "nearest" });
}

// follow shows what the address names.
function follow() {
  const to = readLink(location.hash);
  const last = page.kernels.length - 1;
  if (to.step !== undefined && to.step < page.steps.length) {
    state.step = to.step;
    if (page.steps[to.step].kernel >= 0) state.kernel = data.whole(page.steps[to.step].kernel);
    drawSide();
    drawStep();
    return;
  }
  state.step = -1;
  state.node = to.node || 0;
  state.program = -1;
  state.chosen = null;
  if (to.kernel !== undefined && to.kernel <= last) state.kernel = data.whole(to.kernel);
  else if (to.node !== undefined && data.kernelsOf(to.node).length > 0 && !data.kernelsOf(to.node).map((k) => data.whole(k)).includes(state.kernel)) state.kernel = data.whole(data.kernelsOf(to.node)[0]);
  drawSide();
  drawKernel();
  for (const name of ["program", "source", "machine"]) {
    const column = columns.find((c) => c.form.name.toLowerCase() === name);
    if (to[name] !== undefined && column && to[name] < column.lines.length) choose(column, to[name], false);
  }
}

// find lists what the search box asks for, in place of the lists at the side.
function find() {
  const words = byId("search").value;
  if (words.trim() === "") {
    drawSide();
    return;
  }
  const limit = 200;
  const found = data.search(words, limit);
  byId("side").replaceChildren(make("h2", {}, found.length < limit ? `${found.length} found` : `the first ${limit}`),
    make("ul", {}, found.map((f) => make("li", {}, link(f.link, make("small", {}, f.kind), make("br", {}), f.text.slice(0, 200))))));
}

const keys = [
  ["/", "search"], ["j, k", "next and previous kernel"], ["n, p", "next and previous rewrite"], ["left, right", "another form"],
  ["up, down", "another line, followed through all forms"], ["t", "dark or light"], ["Esc", "back to the kernel"], ["?", "this list"],
];

function help() {
  byId("help").replaceChildren(table(keys.map(([key, does]) => [make("kbd", {}, key), does])), make("form", { method: "dialog" }, make("button", {}, "Close")));
  byId("help").showModal();
}

function otherTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
}

function moveKernel(by) {
  const whole = page.kernels.map((k, i) => i).filter((i) => page.kernels[i].in < 0);
  const at = whole.indexOf(state.kernel) + by;
  if (at >= 0 && at < whole.length) location.hash = "kernel-" + whole[at];
}

function moveStep(by) {
  const family = data.family(state.kernel);
  for (let i = state.step + by; i >= 0 && i < page.steps.length; i += by) {
    if (page.steps[i].kernel < 0 || family.includes(page.steps[i].kernel)) {
      location.hash = "step-" + i;
      return;
    }
  }
}

function moveLine(by) {
  const column = columns[state.column];
  if (!column) return;
  const at = state.chosen && state.chosen.column === state.column ? state.chosen.at + by : 0;
  if (at < 0 || at >= column.lines.length) return;
  choose(column, at);
  const fresh = columns[state.column];
  const row = fresh && fresh.list.children[at];
  if (row) row.scrollIntoView({ block: "nearest" });
}

function moveColumn(by) {
  state.column = Math.min(Math.max(state.column + by, 0), columns.length - 1);
  if (columns[state.column]) columns[state.column].list.focus();
}

const actions = {
  "/": () => byId("search").focus(), "?": help, t: otherTheme,
  j: () => moveKernel(1), k: () => moveKernel(-1), n: () => moveStep(1), p: () => moveStep(-1),
  ArrowDown: () => moveLine(1), ArrowUp: () => moveLine(-1), ArrowRight: () => moveColumn(1), ArrowLeft: () => moveColumn(-1),
  Escape: () => { location.hash = "kernel-" + state.kernel; },
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, select");
  if (typing && event.key === "Escape") event.target.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  const inForms = event.key.startsWith("Arrow") && (state.step >= 0 || byId("side").contains(event.target) || byId("details").contains(event.target));
  const action = actions[event.key];
  if (!action || inForms) return;
  event.preventDefault();
  action();
});
byId("search").addEventListener("input", find);
byId("theme").addEventListener("click", otherTheme);
byId("keys").addEventListener("click", help);
window.addEventListener("hashchange", follow);

byId("title").textContent = page.title;
byId("about").textContent = page.about.map(([name, value]) => `${name} ${value}`).join(" · ");
follow();
