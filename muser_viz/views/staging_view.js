import { stage, make, number, unpack, viridis } from "./stage.js";

const SMALL = 16; // a ring and a chunk of so few show every token
const TRAITS = ["position", "chunk", "window", "query", "staged"];
const mod = (a, n) => ((a % n) + n) % n;

/**
 * What a chunk's query sees and has lost. The ring took the tokens from 0 on; spans are [first, end).
 * A token's row is the token modulo the window.
 */
function staging({ position, chunk, window, query }) {
  const end = position + chunk, at = position + Math.min(query, chunk - 1);
  const firstSeen = (q) => Math.max(0, q - window + 1), firstHeld = Math.max(0, end - window);
  const lostBy = (q) => Math.max(0, Math.min(firstHeld - firstSeen(q), q - firstSeen(q) + 1));
  let total = 0, most = 0;
  for (let q = position; q < end; q++) { total += lostBy(q); most = Math.max(most, lostBy(q)); }
  return {
    end, at, total, most, lostBy, lost: lostBy(at),
    before: [Math.max(0, position - window), position],
    chunk: [position, end],
    after: [firstHeld, end],
    sees: [firstSeen(at), at + 1],
    staged: [firstSeen(position), end],
    overwritten: Math.max(0, firstHeld - Math.max(0, position - window)) - Math.max(0, firstHeld - position), // tokens that lay in the ring before
    unstored: Math.max(0, firstHeld - position), // tokens of the chunk that the rest of it overwrote
  };
}

/** A token span as words. */
const tokens = ([first, end]) => (end === first + 1 ? `token ${number(first)}` : end > first ? `tokens ${number(first)} to ${number(end - 1)}` : "empty");
const count = (n) => `${number(n)} ${n === 1 ? "row" : "rows"}`;
const rowsOf = ([first, end]) => count(end - first);

function sentence(s, chunk, staged) {
  const [first] = s.sees, seen = `query ${number(s.at)} sees ${tokens(s.sees)}, ${rowsOf(s.sees)}`;
  const rows = `${rowsOf(s.staged)}, ${tokens(s.staged)}`;
  if (staged) return `staged (${rows}): ${seen}, and finds them all in staged rows ${number(first - s.staged[0])} to ${number(s.at - s.staged[0])}; nothing is lost`;
  const which = s.lost ? ` (${tokens([first, first + s.lost])})` : "";
  return `stored first: ${seen}, and ${number(s.lost)} of them ${s.lost === 1 ? "is" : "are"} lost${which}; ${number(s.total)} over all ${number(chunk)} queries; to lose none, stage ${rows}`;
}

/** The rows of a token span in a ring: at most two pieces, [row, count]. */
function pieces([first, end], window) {
  const count = Math.min(window, end - first), row = mod(end - count, window), head = Math.min(count, window - row);
  return [[row, head], [0, count - head]].filter(([, n]) => n > 0);
}

function render({ model, el }) {
  const limits = model.get("limits"), began = model.get("began");
  const now = () => Object.fromEntries(TRAITS.map((name) => [name, model.get(name)]));
  const query = () => Math.min(model.get("query"), model.get("chunk") - 1);
  const to = (wanted) => {
    const found = Math.max(0, Math.min(model.get("chunk") - 1, wanted));
    if (found === query()) return false;
    v.set("query", found);
    return true;
  };
  const stride = () => Math.max(1, Math.round(model.get("chunk") / 4));
  /** A clicker's way: through the queries as stored first, then through them as staged. */
  const onward = (by) => {
    const last = model.get("chunk") - 1;
    if (to(query() + by * stride())) return true;
    if ((by > 0) === model.get("staged")) return false;
    v.set("query", by > 0 ? 0 : last);
    v.set("staged", by > 0);
    return true;
  };
  const way = (staged) => v.set("staged", staged);

  const v = stage({ model, el }, {
    name: "staging",
    label: "A chunk over a ring: what its queries have lost, and what is staged",
    state: TRAITS,
    actions: [
      { name: "back", keys: ["ArrowLeft"], does: "the query before", act: () => to(query() - 1), button: "Back" },
      { name: "step", keys: ["ArrowRight"], does: "the next query", act: () => to(query() + 1), button: "Next query" },
      { name: "on", keys: ["PageDown"], does: "a quarter of the chunk on; after its end, the same staged", act: () => onward(1) },
      { name: "off", keys: ["PageUp"], does: "a quarter of the chunk back; before its start, stored first", act: () => onward(-1) },
      { name: "first", keys: ["Home"], does: "the chunk's first query", act: () => to(0) },
      { name: "last", keys: ["End"], does: "the chunk's last query", act: () => to(Infinity) },
      { name: "way", keys: ["s", " "], does: "stored first, or staged", act: () => way(!model.get("staged")) },
    ],
    draw,
  });

  // ---- controls
  const ways = [["Stored first", false], ["Staged", true]].map(([name, staged]) => {
    const button = make("button", { type: "button" }, name);
    v.listen(button, "click", () => { v.warn(""); way(staged); });
    return [button, staged];
  });
  const walk = make("input", { type: "range", min: 0, step: 1, "aria-label": "query" });
  v.listen(walk, "input", () => to(Number(walk.value)));
  v.buttons.step.after(walk, make("div", { class: "mv-staging-ways", role: "group", "aria-label": "order" }, ...ways.map(([button]) => button)));
  const bounds = { // lowest; highest of the slider, and of the field
    position: () => [0, Math.max(4 * model.get("window"), began.position), limits.positions - model.get("chunk")],
    chunk: () => [1, Math.max(2 * began.window, began.chunk), Math.min(limits.longest, limits.positions - model.get("position"))],
    window: () => [1, Math.max(2 * began.window, 16), limits.longest],
  };
  const settings = make("div", { class: "mv-staging-settings" });
  const controls = Object.entries(bounds).map(([name, bound]) => {
    const slider = make("input", { type: "range", step: 1, "aria-label": name, "data-arrows": true });
    const field = make("input", { type: "number", step: 1, "aria-label": name });
    const change = (given) => {
      const value = Number(given), [low, , high] = bound();
      v.redraw();
      if (given === "" || !Number.isInteger(value) || value < low || value > high) {
        throw new Error(`${name} is ${given || "no number"}; give a whole number from ${number(low)} to ${number(high)}`);
      }
      v.warn("");
      v.set(name, value);
    };
    v.listen(slider, "input", () => change(slider.value));
    v.listen(field, "change", () => change(field.value));
    settings.append(make("div", { class: "mv-staging-setting" }, make("span", {}, name), slider, field));
    return { name, bound, slider, field };
  });
  v.bar.before(settings);

  // ---- the picture: a line of words and a bar each; the counts and the curve beside them
  const lines = make("div", { class: "mv-staging-lines" });
  const counts = make("div", { class: "mv-staging-counts" });
  const curve = make("svg:svg", { class: "mv-staging-curve", role: "img" });
  const under = make("div", { class: "mv-staging-under", "aria-hidden": "true" }, make("span", { class: "mv-staging-red" }, "— stored first"), make("span", { class: "mv-staging-none" }, "- - staged"), make("span", {}, "◆ this query"));
  // hatches: what the chunk overwrote, and what a query has lost
  const own = `mv-staging-${Math.random().toString(36).slice(2)}`; // names of patterns are the page's
  const hatch = (kind) => make("svg:pattern", { id: `${own}-${kind}`, width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, make("svg:rect", { width: 7, height: 7, class: `mv-staging-ground-${kind}` }), make("svg:rect", { width: 1.6, height: 7, class: `mv-staging-ink-${kind}` }));
  v.picture.append(make("svg:svg", { class: "mv-staging-hatches", "aria-hidden": "true" }, make("svg:defs", {}, hatch("lost"), hatch("over"))),
    lines, make("div", { class: "mv-staging-beside" }, counts, curve, under));

  const unit = () => 14 / parseFloat(getComputedStyle(v.root).fontSize);
  const text = (x, y, said, attributes = {}) => make("svg:text", { x, y, "font-size": 11.5, ...attributes }, said);
  const line = (kind, name, words, bar, off = false) => make("div", { class: `mv-staging-line ${off ? "mv-staging-off" : ""}`, "data-line": kind },
    make("p", {}, make("b", {}, name), " ", words), bar);

  /** A bar over `wide` units; parts: [from, count, kind, label], of `span` places; cells: [place, token, kind]. */
  function bar(wide, span, parts, cells) {
    const high = cells || v.full ? 24 : 17, x = (place) => (wide * place) / span;
    const drawn = parts.filter(([, n]) => n > 0).map(([from, n, kind]) => make("svg:rect", { x: x(from), y: 1, width: Math.max(1, x(n)), height: high - 2, class: `mv-staging-part mv-staging-${kind}`, fill: kind === "lost" || kind === "over" ? `url(#${own}-${kind})` : undefined }));
    const named = cells ? [] : parts.filter(([, n, , label]) => label && x(n) > 7 * label.length).map(([from, n, , label]) => text(x(from + n / 2), high / 2, label, { "text-anchor": "middle", "dominant-baseline": "central", class: "mv-staging-token" }));
    const size = Math.min(12, wide / span / 1.9);
    const letters = (cells ?? []).map(([place, token, kind]) => text(x(place + 0.5), high / 2, token, { "text-anchor": "middle", "dominant-baseline": "central", "font-size": String(token).length > 2 ? size * 0.8 : size, class: `mv-staging-token ${kind ? `mv-staging-token-${kind}` : ""}` }));
    return make("svg:svg", { viewBox: `0 0 ${wide} ${high}`, "aria-hidden": "true" }, ...drawn, ...named, ...letters);
  }
  function drawLines(f, s) {
    const small = f.window <= SMALL && f.chunk <= SMALL, wide = Math.max(200, lines.clientWidth * unit());
    const first = Math.min(s.before[0], s.staged[0]), span = s.end - first;
    const over = ([from, end], kind, label) => [from - first, end - from, kind, label];
    const cells = ([from, end], kindOf = () => "") => (small ? Array.from({ length: Math.max(0, end - from) }, (_, i) => [from + i - first, from + i, kindOf(from + i)]) : undefined);
    const gone = [s.sees[0], s.sees[0] + s.lost], staged = f.staged;

    // the ring, row by row
    const inRing = staged ? s.before : s.after;
    const ringParts = [[0, f.window, "outline"], ...pieces(inRing, f.window).map(([row, n]) => [row, n, "held"])];
    if (!staged) {
      const written = pieces(s.chunk, f.window);
      ringParts.push(...written.map(([row, n]) => [row, n, "chunk", s.overwritten ? "" : "chunk"]));
      const replaced = s.overwritten ? pieces([s.before[0], s.before[0] + s.overwritten], f.window) : [];
      ringParts.push(...replaced.map(([row, n]) => [row, n, "over", "overwritten"]));
    }
    const ringCells = small ? Array.from({ length: f.window }, (_, row) => {
      const [from, end] = inRing, token = end - 1 - mod(end - 1 - row, f.window);
      return [row, token >= from && end > from ? token : "·", ""];
    }) : undefined;
    const overwrote = `${number(s.overwritten)} ${s.overwritten === 1 ? "token" : "tokens"} of the ring overwritten${s.unstored ? `, and ${number(s.unstored)} of the chunk itself` : ""}`;
    const words = staged ? `${tokens(s.before)}, ${number(s.before[1] - s.before[0])} of ${count(f.window)}: the chunk is not yet in it` : `${tokens(s.after)}: ${overwrote}`;
    const ring = line("ring", `The ring's rows 0 to ${number(f.window - 1)}, ${staged ? "before" : "after"} the chunk:`, words, bar(wide, f.window, ringParts, ringCells));

    const kept = [gone[1], s.sees[1]];
    const seesWords = `${tokens(s.sees)}, ${rowsOf(s.sees)}; ${staged ? "none lost" : s.lost ? `✕\u00a0${number(s.lost)}\u00a0lost` : "none lost"}`;
    lines.replaceChildren(
      ring,
      make("p", { class: "mv-staging-axis" }, `Over the tokens, ${number(first)} to ${number(s.end - 1)}:`),
      line("before", "Ring before:", `${tokens(s.before)}${s.before[1] > s.before[0] ? `, ${rowsOf(s.before)}` : ""}`, bar(wide, span, [over(s.before, "held")], cells(s.before))),
      line("chunk", "Chunk:", `${tokens(s.chunk)}, ${rowsOf(s.chunk)}`, bar(wide, span, [over(s.chunk, "chunk", "chunk")], cells(s.chunk))),
      line("after", "Ring after:", `${tokens(s.after)}, ${rowsOf(s.after)}`, bar(wide, span, [over(s.after, "held"), over([Math.max(f.position, s.after[0]), s.end], "chunk", "chunk")], cells(s.after)), staged),
      line("staged", "Staged:", `${tokens(s.staged)}, ${rowsOf(s.staged)}${staged ? "" : " (what it would take)"}`, bar(wide, span, [over(s.staged, staged ? "staged" : "outline")], cells(s.staged)), !staged),
      line("sees", `Query ${number(s.at)} sees:`, seesWords, bar(wide, span, staged ? [over(s.sees, "seen")] : [over(kept, "seen"), over(gone, "lost", "lost")], cells(s.sees, (t) => (!staged && t < gone[1] ? "gone" : "")))),
    );
  }

  let plot = null;
  function drawCurve(f, s) {
    const wide = Math.max(180, curve.parentElement.clientWidth * unit()), left = 46, right = wide - 62, top = 24, foot = v.full ? 150 : 100;
    const high = Math.max(1, s.most), last = s.end - 1;
    const x = (q) => (f.chunk === 1 ? (left + right) / 2 : left + ((right - left) * (q - f.position)) / (f.chunk - 1)), y = (n) => foot - ((foot - top) * n) / high;
    plot = { left, right, wide };
    // the corners of the curve; it is straight between them
    const corners = [...new Set([f.position, f.window - 1, s.after[0] - 1, last])].filter((q) => q >= f.position && q <= last).sort((a, b) => a - b);
    const here = f.staged ? 0 : s.lost;
    const label = text(x(s.at) + 9, y(here) - 7, `${number(here)} lost`, { "font-weight": 700, class: "mv-staging-halo" });
    curve.setAttribute("viewBox", `0 0 ${wide} ${foot + 34}`);
    curve.replaceChildren(
      make("svg:path", { d: `M${left} ${top}V${foot}H${right}`, class: "mv-staging-axes" }),
      ...[[0, foot], [s.most, top]].filter(([n], i) => i === 0 || n > 0).map(([n, at]) => text(left - 6, at, number(n), { "text-anchor": "end", "dominant-baseline": "central" })),
      make("svg:path", { d: `M${left} ${foot}H${right}`, class: "mv-staging-zero" }),
      make("svg:path", { d: `M${corners.map((q) => `${x(q)} ${y(s.lostBy(q))}`).join("L")}${corners.length === 1 ? "h1" : ""}`, class: "mv-staging-lost-line" }),
      make("svg:path", { d: `M${x(s.at)} ${y(here) - 7}l7 7l-7 7l-7 -7Z`, class: "mv-staging-here" }),
      label,
      ...(f.chunk === 1 ? [text(x(f.position), foot + 15, number(f.position), { "text-anchor": "middle" })] : [text(left, foot + 15, number(f.position)), text(right, foot + 15, number(last), { "text-anchor": "end" })]),
      text((left + right) / 2, foot + 29, "query", { "text-anchor": "middle", class: "mv-staging-faint" }));
    curve.setAttribute("aria-label", `Rows lost by query: ${number(s.lostBy(f.position))} by query ${number(f.position)}, ${number(s.lostBy(last))} by query ${number(last)}, 0 by each once staged`);
  }
  const point = (event) => {
    const box = curve.getBoundingClientRect(), at = ((event.clientX - box.left) / box.width) * plot.wide;
    to(Math.round(((at - plot.left) / (plot.right - plot.left)) * (model.get("chunk") - 1)));
  };
  v.listen(curve, "pointerdown", (event) => { curve.setPointerCapture(event.pointerId); point(event); });
  v.listen(curve, "pointermove", (event) => { if (event.buttons) point(event); });

  const told = (value, words, kind = "") => make("p", { class: kind }, make("b", {}, value), ` ${words}`);

  function draw() {
    const f = now(), s = staging(f), { staged } = f;
    for (const { name, bound, slider, field } of controls) {
      const [low, top, high] = bound();
      slider.min = field.min = low;
      slider.max = Math.max(top, f[name]);
      slider.value = field.value = f[name];
      field.max = high;
    }
    walk.max = f.chunk - 1;
    walk.value = query();
    walk.setAttribute("aria-valuetext", `query ${number(s.at)}`);
    for (const [button, on] of ways) button.setAttribute("aria-pressed", String(on === staged));
    v.able("back", query() > 0);
    v.able("step", query() < f.chunk - 1);
    drawLines(f, s);
    const lost = staged ? 0 : s.lost;
    counts.replaceChildren(
      told(number(lost), `of the ${rowsOf(s.sees)} that query ${number(s.at)} sees ${lost === 1 ? "is" : "are"} lost`, `mv-staging-main ${lost ? "mv-staging-red" : ""}`),
      told(number(staged ? 0 : s.total), `lost over all ${number(f.chunk)} queries`),
      told(number(s.staged[1] - s.staged[0]), staged ? "rows are staged" : "rows would be staged"));
    drawCurve(f, s);
    v.root.dataset.query = query();
    v.root.dataset.lost = lost;
    v.root.dataset.staged = staged ? "yes" : "no";
    v.say(sentence(s, f.chunk, staged));
  }

  v.start();
  return v.end;
}

export default { render };
