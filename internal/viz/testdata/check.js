"use strict";
// Reads a page's data as the page does: run in a folder with data.js, page.json (the data)
// and texts.json (the texts as the compiler has them).
const fs = require("fs");
const assert = require("assert");
const { Data, readLink } = require(process.cwd() + "/data.js");

const page = JSON.parse(fs.readFileSync("page.json", "utf8"));
const want = JSON.parse(fs.readFileSync("texts.json", "utf8"));
const data = new Data(page);

want.forEach((text, i) => assert.deepStrictEqual(data.lines(i).map((id) => data.text(id)), text, "text " + i));

page.steps.forEach((s, i) => {
  const hunks = data.hunks(i);
  if (hunks === null) return;
  const before = data.lines(s.before);
  const out = [];
  let at = 0;
  for (const h of hunks) {
    out.push(...before.slice(at, h.at), ...h.made);
    assert.deepStrictEqual(before.slice(h.at, h.at + h.gone.length), h.gone, "step " + i);
    at = h.at + h.gone.length;
  }
  out.push(...before.slice(at));
  assert.deepStrictEqual(out, data.lines(s.after), "step " + i);
  assert(hunks.length > 0, "step " + i + " changes nothing");
});

// Every link that a search gives leads somewhere.
for (const words of ["reduce", "fuse", "mul", "%1", "ld.global"]) {
  const found = data.search(words, 50);
  assert(found.length > 0, words);
  for (const f of found) {
    const to = readLink(f.link);
    assert(Object.keys(to).length > 0, f.link);
    if (to.kernel !== undefined) assert(to.kernel < page.kernels.length, f.link);
    if (to.step !== undefined) assert(to.step < page.steps.length, f.link);
    if (to.node !== undefined) assert(data.graphLine(to.node) >= 0, f.link);
    if (to.program !== undefined) assert(to.program < data.lines(page.kernels[to.kernel].program).length, f.link);
  }
}
assert.deepStrictEqual(readLink("#kernel-3/node-12"), { kernel: 3, node: 12 });
assert.deepStrictEqual(readLink("#frob-1/kernel-x"), {});
assert.deepStrictEqual(data.search("   ", 5), []);

// Loops around an instruction are those whose blocks it is in.
page.kernels.forEach((k) => {
  const lines = data.lines(k.program);
  const deepest = lines.reduce((best, id, at) => (/^ */.exec(data.text(id))[0].length > /^ */.exec(data.text(lines[best]))[0].length ? at : best), 0);
  const depth = /^ */.exec(data.text(lines[deepest]))[0].length / 2;
  assert.strictEqual(data.loopsAround(lines, deepest).length, depth, k.name);
});
