import { stage, make, number, unpack, viridis } from "./stage.js";

const MOST = 2 ** 32; // of a factor; bytes are BigInt, exact at any size
const FACTORS = ["context", "tokens", "slots", "window", "layers", "heads", "precision"];
const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"], DECIMAL = ["B", "kB", "MB", "GB", "TB", "PB"];
const exact = (bytes) => bytes.toLocaleString("en-US");

/** part / whole to so many places, half away from zero; BigInt. */
function fixed(part, whole, places) {
  const digits = String((2n * part * 10n ** BigInt(places) + whole) / (2n * whole)).padStart(places + 1, "0");
  return `${exact(BigInt(digits.slice(0, -places)))}.${digits.slice(-places)}`;
}

/** Bytes in the binary and in the decimal unit. */
function sized(bytes) {
  if (bytes < 1000n) return `${bytes} B`;
  return [[1024n, BINARY], [1000n, DECIMAL]].map(([base, names]) => {
    let power = 0;
    while (power < names.length - 1 && bytes >= base ** BigInt(power + 1)) power++;
    return `${fixed(bytes, base ** BigInt(power), 3).replace(/\.?0+$/, "")} ${names[power]}`;
  }).join(" = ");
}

/** Layers of each class, and whether a row is a whole number of the precision's blocks. */
function checked(f, shape) {
  const full = Math.floor(f.layers / shape.full_every), [block] = shape.precisions[f.precision];
  const elements = BigInt(f.heads) * BigInt(shape.head_dim);
  const wrong = elements % BigInt(block)
    ? `a row has ${elements} elements, which is no whole number of ${f.precision} blocks; give KV heads x head dim as a multiple of ${block}` : "";
  return { full, sliding: f.layers - full, elements, wrong };
}

/**
 * The bill of these factors: bytes as BigInt, and each term as [key, name, multiplication, bytes].
 * Live tokens past the context count as the context.
 */
function bill(f, shape) {
  const tokens = Math.min(f.tokens, f.context), { full, sliding, elements } = checked(f, shape);
  const [block, size] = shape.precisions[f.precision];
  const row = (elements / BigInt(block)) * BigInt(size), pair = 2n * row;
  const paid = (layers, rows) => BigInt(f.slots) * BigInt(layers) * BigInt(rows) * pair;
  const live = (n) => [paid(sliding, Math.min(n, f.window)), paid(full, n)];
  const rows = { live: [Math.min(tokens, f.window), tokens], allocated: [Math.max(shape.least_rows, Math.min(f.context, f.window)), Math.max(shape.least_rows, f.context)] };
  const b = { tokens, sliding, full, row, pair, at: live, live: live(tokens), allocated: [paid(sliding, rows.allocated[0]), paid(full, rows.allocated[1])] };
  const blocks = block > 1 ? ` / ${block}` : "";
  b.terms = [
    ["row", "one K row, or V row", `${number(f.heads)} × ${number(shape.head_dim)}${blocks} × ${size}`, row],
    ["pair", "K and V, a layer and token", `2 × ${exact(row)}`, pair],
    ["token", "one token, all layers", `${number(f.layers)} × ${exact(pair)}`, BigInt(f.layers) * pair],
  ];
  for (const kind of ["live", "allocated"]) {
    ["sliding", "full"].forEach((name, i) => b.terms.push([`${name}-${kind}`, `${name}, ${kind}`,
      `${number(f.slots)} × ${number(i ? full : sliding)} × ${number(rows[kind][i])} × ${exact(pair)}`, b[kind][i]]));
    b.terms.push([`both-${kind}`, `both, ${kind}`, b[kind].map(exact).join(" + "), b[kind][0] + b[kind][1]]);
  }
  b.shares = ["live", "allocated"].map((kind) => `${fixed(100n * b[kind][1], b[kind][0] + b[kind][1], 2)}%`);
  const even = full > 0 && full < sliding ? (BigInt(sliding) * BigInt(f.window) + BigInt(full) - 1n) / BigInt(full) : 0n;
  b.even = even > 0n && even <= BigInt(f.context) ? Number(even) : null;
  const [a, c] = b.live, [d, e] = b.allocated, slots = f.slots === 1 ? "1 slot" : `${number(f.slots)} slots`;
  b.headline = `${slots} of max_context ${number(f.context)}, tokens ${number(tokens)}; ${number(sliding)} sliding layers of window ${number(f.window)} and ${number(full)} full; ${number(f.heads)} KV heads x ${number(shape.head_dim)}, ${f.precision}`;
  b.sentence = `${b.headline}: live ${exact(a + c)} B (sliding ${exact(a)}, full ${exact(c)}), allocated ${exact(d + e)} B (sliding ${exact(d)}, full ${exact(e)}); the full layers hold ${b.shares[0]} of the live bytes, ${b.shares[1]} of the allocated`;
  return b;
}

/** The chapter's settings, in the order in which a speaker tells them: [name, factors, the term meant]. */
function settings(began, shape) {
  const { limit } = shape, rings = Math.min(began.window, limit);
  const given = Object.fromEntries(FACTORS.map((name) => [name, began[name]]));
  const at = (tokens, more = {}) => ({ ...given, context: limit, tokens, slots: 1, ...more });
  const told = [
    ["one layer, one token", at(1, { layers: 1 }), "pair"],
    [`all ${number(began.layers)} layers, one token`, at(1), "token"],
    [`the rings full, at ${number(rings)} tokens`, at(rings), "sliding-live"],
    [`the full planes at ${number(limit)} tokens`, at(limit), "full-live"],
    [`one slot of ${number(limit)}`, at(limit), "both-allocated"],
    [`four slots of ${number(limit)}`, at(limit, { slots: 4 }), "both-allocated"],
  ];
  if (limit > 32768) told.push(["one slot of 32,768", at(32768, { context: 32768 }), "both-allocated"]);
  return told;
}

function render({ model, el }) {
  const shape = model.get("shape"), began = model.get("began"), told = settings(began, shape);
  const now = () => Object.fromEntries(FACTORS.map((name) => [name, model.get(name)]));
  /** The chapter's setting that is shown, if no factor has been changed since. */
  const chosen = () => {
    const at = model.get("chosen");
    return told[at] && FACTORS.every((name) => told[at][1][name] === model.get(name)) ? at : -1;
  };
  let busy = false;
  const setAll = (factors, index) => {
    busy = true;
    for (const [name, value] of Object.entries({ ...factors, chosen: index })) v.set(name, value);
    busy = false;
    v.redraw();
  };
  /** One factor from the reader; what cannot be is said, and nothing changes. */
  const change = (name, value) => {
    const { wrong } = checked({ ...now(), [name]: value }, shape);
    if (wrong) { v.redraw(); throw new Error(wrong); }
    setAll({ [name]: value }, -1);
  };
  const choose = (index) => {
    if (index < 0 || index >= told.length) return false;
    setAll(told[index][1], index);
    return true;
  };
  const v = stage({ model, el }, {
    name: "bill",
    label: "What the planes cost in bytes, factor by factor",
    state: [...FACTORS, "chosen"],
    actions: [
      { name: "back", keys: ["PageUp", "ArrowLeft"], does: "the chapter's setting before", act: () => choose(chosen() - 1), button: "Back" },
      { name: "step", keys: ["PageDown", "ArrowRight"], does: "the chapter's next setting", act: () => choose(chosen() + 1), button: "Next" },
      { name: "first", keys: ["Home"], does: "the first setting", act: () => choose(0) },
      { name: "last", keys: ["End"], does: "the last setting", act: () => choose(told.length - 1) },
    ],
    draw,
  });

  // ---- controls: a slider and a field for each factor
  const most = { // of the slider, and of the field
    context: () => [shape.limit, shape.limit],
    tokens: () => [model.get("context"), model.get("context")],
    slots: () => [16, MOST],
    window: () => [Math.max(shape.limit, began.window), MOST],
    layers: () => [104, MOST],
    heads: () => [16, MOST],
  };
  const names = { context: "context", tokens: "live tokens", slots: "slots", window: "window", layers: "layers", heads: "KV heads" };
  const powers = new Set(["context", "tokens", "window"]); // these sliders go in powers of two
  const factors = make("div", { class: "mv-bill-factors" });
  const controls = Object.entries(names).map(([name, label]) => {
    const power = powers.has(name);
    const slider = make("input", { type: "range", "aria-label": label, "data-arrows": true, ...(power ? { min: 0, step: "any" } : { min: 1, step: 1 }) });
    const field = make("input", { type: "number", min: 1, step: 1, "aria-label": label });
    const top = () => most[name]()[0], present = () => Math.min(model.get(name), top());
    const round = (at) => (at >= Math.log2(top()) - 0.01 ? top() : Math.min(top(), 2 ** Math.round(at)));
    v.listen(slider, "input", () => change(name, power ? round(Number(slider.value)) : Number(slider.value)));
    v.listen(slider, "keydown", (event) => {
      const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (event.key === "Home" || event.key === "End") event.stopPropagation();
      if (!by || !power) return;
      event.preventDefault(); // to the next power of two, which the browser's own step would miss
      const at = Math.log2(present());
      change(name, round(by > 0 ? Math.floor(at + 1e-9) + 1 : Math.max(0, Math.ceil(at - 1e-9) - 1)));
    });
    v.listen(field, "change", () => {
      const value = Number(field.value), last = most[name]()[1];
      if (field.value === "" || !Number.isInteger(value) || value < 1 || value > last) {
        const typed = field.value;
        v.redraw();
        throw new Error(`${label} is ${typed || "no number"}; give a whole number from 1 to ${number(last)}`);
      }
      change(name, value);
    });
    factors.append(make("div", { class: "mv-bill-factor" }, make("span", {}, label), slider, field));
    return { name, power, slider, field, top };
  });
  const kinds = Object.keys(shape.precisions).map((kind) => {
    const button = make("button", { type: "button" }, kind);
    v.listen(button, "click", () => { v.warn(""); change("precision", kind); });
    return button;
  });
  const pick = make("select", { "aria-label": "the chapter's settings" }, make("option", { value: -1 }, "your own setting"),
    ...told.map(([name], i) => make("option", { value: i }, `${i + 1}. ${name}`)));
  v.listen(pick, "change", () => (pick.value === "-1" ? setAll({}, -1) : choose(Number(pick.value))));
  v.buttons.step.after(pick, make("div", { class: "mv-bill-kinds", role: "group", "aria-label": "precision" }, ...kinds));
  v.bar.before(factors);

  // ---- the picture: bars to scale, the curves over tokens, the terms
  const story = make("p", { class: "mv-bill-story" });
  const bars = make("div", { class: "mv-bill-bars", "aria-hidden": "true" });
  const chart = make("svg:svg", { "aria-hidden": "true" });
  const legend = make("div", { class: "mv-bill-legend", "aria-hidden": "true" });
  const terms = make("table", { class: "mv-bill-terms", "aria-label": "Every term" });
  v.picture.append(story, make("div", { class: "mv-bill-drawn" }, bars, chart, legend), make("div", { class: "mv-bill-said" }, terms));

  const percent = (part, whole) => Number((1000000n * part) / whole) / 10000;
  const bar = (name, [sliding, full], whole) => make("div", { class: "mv-bill-bar" }, make("span", {}, name),
    make("div", {}, make("i", { class: "mv-bill-sliding", style: `width:${percent(sliding, whole)}%` }), make("i", { class: "mv-bill-full", style: `width:${percent(full, whole)}%` })),
    make("b", {}, sized(sliding + full).split(" = ")[0]));

  const text = (x, y, said, attributes = {}) => make("svg:text", { x, y, "font-size": 11.5, ...attributes }, said);
  let plot = null;
  function drawChart(f, b) {
    const size = parseFloat(getComputedStyle(v.root).fontSize), wide = Math.max(240, (14 * chart.parentElement.clientWidth) / size);
    const left = 50, right = wide - 14, top = 22, foot = top + (v.full ? 130 : 190), under = foot + 20, end = under + 56;
    const across = Math.max(1, Math.log2(shape.limit));
    const x = (n) => left + ((right - left) * Math.log2(n)) / across;
    const allocated = Number(b.allocated[0] + b.allocated[1]);
    let low = 8, high = 36; // powers of two
    while (2 ** high < allocated * 1.5) high += 4;
    while (2 ** low > Number(b.sliding || b.full ? b.pair : 1n)) low -= 4;
    const y = (bytes) => foot - ((foot - top) * (Math.log2(bytes) - low)) / (high - low);
    plot = { left, right, across, wide };
    const parts = [];
    for (let power = Math.ceil(low / 4) * 4; power <= high; power += 4) {
      const at = y(2 ** power), unit = Math.floor(power / 10);
      parts.push(make("svg:line", { x1: left, x2: right, y1: at, y2: at, class: "mv-bill-grid" }),
        text(left - 5, at, `${2 ** (power - 10 * unit)} ${BINARY[unit] ?? `2^${10 * unit} B`}`, { "text-anchor": "end", "dominant-baseline": "central", class: "mv-bill-faint" }));
    }
    for (let n = 1, last = -99; n <= shape.limit; n *= 8) {
      if (x(n) - last < 50 || (n < shape.limit && right - x(n) < 66)) continue;
      last = x(n);
      parts.push(text(x(n), end + 14, number(n), { "text-anchor": n === 1 ? "start" : "middle", class: "mv-bill-faint" }));
    }
    parts.push(text(right + 10, end + 14, number(shape.limit), { "text-anchor": "end", class: "mv-bill-faint" }), text((left + right) / 2, end + 29, "tokens in the session", { "text-anchor": "middle", class: "mv-bill-faint" }));
    const ends = new Set([1, Math.min(f.window, f.context), f.context]);
    for (let i = 1; i < 60; i++) ends.add(Math.max(1, Math.round(2 ** ((Math.log2(f.context) * i) / 60))));
    const tokens = [...ends].sort((p, q) => p - q), held = tokens.map((n) => b.at(n).map(Number));
    const line = (values, kind) => {
      const points = tokens.flatMap((n, i) => (values[i] > 0 ? [`${x(n)} ${y(values[i])}`] : []));
      if (points.length) parts.push(make("svg:path", { d: `M${points.join("L")}${points.length === 1 ? "h3" : ""}`, class: `mv-bill-line mv-bill-${kind}` }));
    };
    parts.push(make("svg:line", { x1: left, x2: Math.max(x(f.context), left + 3), y1: y(allocated), y2: y(allocated), class: "mv-bill-line mv-bill-allocated" }));
    line(held.map(([p, q]) => p + q), "both");
    line(held.map(([p]) => p), "sliding");
    line(held.map(([, q]) => q), "full");
    // the share strip: full from the foot up, sliding above it
    const share = held.map(([p, q]) => q / (p + q)), level = (part) => end - (end - under) * part;
    const edge = tokens.map((n, i) => `${x(n)} ${level(share[i])}`), last = Math.max(x(f.context), left + 3);
    const area = (base, kind) => parts.push(make("svg:path", { d: `M${left} ${base}L${edge.join("L")}L${last} ${level(share.at(-1))}L${last} ${base}Z`, class: `mv-bill-area mv-bill-${kind}` }));
    area(under, "sliding");
    parts.push(make("svg:path", { d: `M${left} ${end}L${edge.join("L")}L${last} ${level(share.at(-1))}L${last} ${end}Z`, fill: v.colours.paper }));
    area(end, "full");
    parts.push(make("svg:rect", { x: left, y: under, width: right - left, height: end - under, class: "mv-bill-frame" }));
    for (const part of [0, 0.5, 1]) parts.push(text(left - 5, level(part), `${100 * part}%`, { "text-anchor": "end", "dominant-baseline": "central", class: "mv-bill-faint" }));
    if (b.sliding && last - left > 70) parts.push(text(left + 6, under + 14, "sliding", { class: "mv-bill-halo" }));
    if (b.full && last - left > 70) parts.push(text(last - 6, end - 6, "full", { "text-anchor": "end", class: "mv-bill-halo" }));
    // the marker of the live tokens
    const at = x(b.tokens), side = at > (left + right) / 2 ? "end" : "start";
    parts.push(make("svg:line", { x1: at, x2: at, y1: top - 4, y2: end, class: "mv-bill-marker" }),
      text(at + (side === "end" ? 4 : -4), top - 9, `${number(b.tokens)} ${b.tokens === 1 ? "token" : "tokens"} live`, { "text-anchor": side, "font-weight": 700 }));
    b.live.forEach((bytes, i) => { if (bytes > 0n) parts.push(make(i ? "svg:circle" : "svg:rect", i ? { cx: at, cy: y(Number(bytes)), r: 4, class: "mv-bill-dot-full" } : { x: at - 4, y: y(Number(bytes)) - 4, width: 8, height: 8, class: "mv-bill-dot-sliding" })); });
    chart.setAttribute("viewBox", `0 0 ${wide} ${end + 34}`);
    chart.replaceChildren(...parts);
  }
  v.listen(chart, "pointerdown", (event) => {
    const box = chart.getBoundingClientRect(), at = ((event.clientX - box.left) / box.width) * plot.wide;
    const part = Math.max(0, Math.min(1, (at - plot.left) / (plot.right - plot.left)));
    change("tokens", Math.max(1, Math.min(model.get("context"), Math.round(2 ** (part * plot.across)))));
  });

  const sample = (kind, said) => make("span", {}, make("svg:svg", { viewBox: "0 0 26 10", class: "mv-bill-sample" }, make("svg:line", { x1: 0, x2: 26, y1: 5, y2: 5, class: `mv-bill-line mv-bill-${kind}` })), said);

  function draw() {
    if (busy) return;
    const f = now(), b = bill(f, shape), at = chosen(), [name, , meant] = told[at] ?? [];
    for (const { name: factor, power, slider, field, top } of controls) {
      const value = factor === "tokens" ? b.tokens : f[factor];
      slider.max = power ? Math.log2(top()) : Math.max(top(), value);
      slider.value = power ? Math.log2(value) : value;
      slider.setAttribute("aria-valuetext", number(value));
      field.max = most[factor]()[1];
      field.value = value;
    }
    for (const button of kinds) button.setAttribute("aria-pressed", String(button.textContent === f.precision));
    pick.value = at;
    v.able("back", at > 0);
    v.able("step", at < told.length - 1);

    const term = b.terms.find(([key]) => key === meant);
    story.hidden = !term;
    if (term) story.textContent = `${at + 1} of ${told.length}: ${name}. ${term[2]} = ${exact(term[3])} B${term[3] >= 1000n ? ` = ${sized(term[3])}` : ""}`;
    const whole = b.allocated[0] + b.allocated[1];
    bars.replaceChildren(bar("live", b.live, whole), bar("allocated", b.allocated, whole));
    drawChart(f, b);
    legend.replaceChildren(
      ...(b.sliding ? [sample("sliding", "sliding, live")] : []), ...(b.full ? [sample("full", "full, live")] : []),
      sample("both", "both, live"), sample("allocated", "both, allocated"),
      ...(b.even === null ? [] : [make("span", {}, `full planes hold half or more from ${number(b.even)} tokens on`)]));
    const row = ([key, called, product, bytes]) => make("tr", { class: `${key === meant ? "mv-bill-meant " : ""}${key.startsWith("both") ? "mv-bill-sum" : ""}`, "data-term": key },
      make("th", { scope: "row" }, called, make("small", {}, product)), make("td", {}, `${exact(bytes)} B`, make("small", {}, bytes >= 1000n ? sized(bytes) : "")));
    terms.replaceChildren(make("caption", {}, "slots × layers × rows × bytes of K and V"), make("tbody", {}, ...b.terms.map(row),
      make("tr", { "data-term": "share" }, make("th", { scope: "row" }, "the full layers hold"), make("td", {}, `${b.shares[0]} of live`, make("small", {}, `${b.shares[1]} of allocated`)))));
    v.root.dataset.live = String(b.live[0] + b.live[1]);
    v.root.dataset.allocated = String(whole);
    v.root.dataset.chosen = at;
    v.say(b.sentence);
  }

  v.start();
  return v.end;
}

export default { render };
