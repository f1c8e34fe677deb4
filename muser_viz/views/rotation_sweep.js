import { stage, make, number, unpack, viridis } from "./stage.js";
import { pairText, pairTable, power, floatOf } from "./words.js";

const FOLDS = [8, 16, 32, 64, 128];
const MEASURES = { words: "words that differ", size: "largest difference", ulp: "largest ULP distance" };
const NEAR = 49; // rotations of the plots near the picked one

function render({ model, el }) {
  // five numbers a rotation: words that differ, largest ULP distance, and of the word with the
  // largest difference its index, its bits in the own rotation and in this one
  const packed = unpack(model.get("rotations"), Uint32Array), count = packed.length / 5, own = model.get("own");
  const column = (k) => Float64Array.from({ length: count }, (_, i) => packed[5 * i + k]);
  const values = {
    words: column(0),
    ulp: column(1),
    size: Float64Array.from({ length: count }, (_, i) => Math.abs(floatOf(packed[5 * i + 3], 32) - floatOf(packed[5 * i + 4], 32))),
  };
  const others = Array.from({ length: count }, (_, i) => i).filter((i) => i !== own);
  const kept = new Map(); // what was computed of the sweep, which stays as it is
  const once = (fn) => (...given) => {
    const key = `${fn.name} ${given.join()}`;
    if (!kept.has(key)) kept.set(key, fn(...given));
    return kept.get(key);
  };
  const within = (measure, of) => of.reduce(([low, high], i) => [Math.min(low, values[measure][i]), Math.max(high, values[measure][i])], [Infinity, -Infinity]);
  const range = once(function ranged(measure) { return within(measure, others); });
  /** The range that the map's colours span: all but the lowest and highest 2 of 100. */
  const spanned = once(function spans(measure) {
    const sorted = others.map((i) => values[measure][i]).sort((p, q) => p - q), cut = Math.floor(sorted.length / 50);
    return [sorted[cut], sorted[sorted.length - 1 - cut]];
  });
  const shown = (measure, value) => (measure === "size" ? (value ? power(value) : "0.0e+00") : number(value));
  const same = values.words.reduce((sum, words) => sum + (words === 0 ? 1 : 0), 0);
  const furthest = values.size.indexOf(range("size")[1]);
  const folds = FOLDS.filter((fold) => 2 * fold <= count);

  const at = () => Math.max(0, Math.min(count - 1, model.get("picked")));
  const to = (wanted) => {
    const found = Math.max(0, Math.min(count - 1, wanted));
    if (found === at()) return false;
    v.set("picked", found);
    return true;
  };
  const seek = (by) => {
    for (let i = at() + by; i >= 0 && i < count; i += by) if (values.words[i]) return i;
    return -1;
  };
  const onward = (found) => found >= 0 && to(found);

  // ---- what is said: the package's own lines
  const summary = () => {
    const [least, most] = range("words");
    return `${number(count)} rotations, ${number(model.get("width"))} words each\n`
      + `own rotation ${number(own)}: ${number(values.words[own])} words differ\n`
      + `others: ${number(least)} to ${number(most)} words differ, at most ${shown("size", range("size")[1])}, ${number(range("ulp")[1])} ULP\n`
      + `rotations with no word different, the own one among them: ${number(same)}`;
  };
  const said = (picked) => {
    if (picked === own) return `picked rotation ${number(picked)}: the own one`;
    const words = values.words[picked];
    if (!words) return `picked rotation ${number(picked)}: no word differs`;
    const [index, one, two] = packed.subarray(5 * picked + 2, 5 * picked + 5);
    return `picked rotation ${number(picked)}: ${words === 1 ? "1 word differs" : `${number(words)} words differ`}, `
      + `at most ${shown("size", values.size[picked])}, ${number(values.ulp[picked])} ULP\n`
      + `its largest difference, ${pairText(["own", `rotation ${number(picked)}`], index, one, two, 32)}`;
  };
  const folded = once(function folds(measure, fold) {
    const of = values[measure], mean = others.reduce((sum, i) => sum + of[i], 0) / others.length;
    const spread = others.reduce((sum, i) => sum + (of[i] - mean) ** 2, 0);
    const columns = means(measure, fold).filter(([, members]) => members);
    if (!spread || others.length < 2) return `folded by ${fold}: all other rotations alike in their ${MEASURES[measure]}`;
    const between = columns.reduce((sum, [value, members]) => sum + members * (value - mean) ** 2, 0);
    const percent = (share) => `${(100 * share).toFixed(1)} %`;
    return `folded by ${fold}: columns explain ${percent(between / spread)} of the spread of the ${MEASURES[measure]}; `
      + `after a shuffle it would be ${percent((columns.length - 1) / (others.length - 1))}`;
  });
  const means = once(function mean(measure, fold) {
    const sums = Array.from({ length: fold }, () => [0, 0]);
    for (const i of others) { sums[i % fold][0] += values[measure][i]; sums[i % fold][1] += 1; }
    return sums.map(([sum, members]) => [members ? sum / members : 0, members]);
  });

  const v = stage({ model, el }, {
    name: "sweep",
    label: `${number(count)} rotations of a ring against its own, ${number(own)}`,
    state: ["picked", "fold", "measure"],
    actions: [
      { name: "back", keys: ["ArrowLeft"], does: "one rotation back", act: () => to(at() - 1) },
      { name: "on", keys: ["ArrowRight"], does: "one rotation on", act: () => to(at() + 1) },
      { name: "less", keys: ["ArrowUp"], does: "a line of the map back", act: () => to(at() - (model.get("fold") || 8)) },
      { name: "more", keys: ["ArrowDown"], does: "a line of the map on", act: () => to(at() + (model.get("fold") || 8)) },
      { name: "previous-one", keys: ["PageUp"], does: "the rotation before that differs", act: () => onward(seek(-1)), button: "Previous" },
      { name: "next-one", keys: ["PageDown"], does: "the next rotation that differs", act: () => onward(seek(1)), button: "Next that differs" },
      { name: "own", keys: ["o"], does: "the own rotation", act: () => to(own), button: "Own" },
      { name: "furthest", keys: ["m"], does: "the rotation with the largest difference", act: () => to(furthest), button: "Furthest" },
      { name: "first", keys: ["Home"], does: "to rotation 0", act: () => to(0) },
      { name: "last", keys: ["End"], does: "to the last rotation", act: () => to(count - 1) },
    ],
    draw,
  });

  // ---- controls beside the buttons
  v.buttons.furthest.after(v.jump("rotation", count - 1, to));
  const choice = (label, name, options) => {
    const select = make("select", { "aria-label": label }, ...options.map(([value, text]) => make("option", { value }, text)));
    v.listen(select, "change", () => v.set(name, name === "fold" ? Number(select.value) : select.value));
    return select;
  };
  const measured = choice("what the map shows", "measure", Object.entries(MEASURES));
  const by = choice("rotations a line", "fold", folds.map((fold) => [fold, `${fold} a line`]));

  // ---- the picture: two plots of all rotations, the same near the picked one, the map, the picked one's bits
  const facts = make("p", { class: "mv-sweep-facts" });
  const plot = (measure, kind) => {
    const canvas = make("canvas", kind === "all"
      ? { role: "slider", tabindex: measure === "words" ? 0 : -1, "aria-label": `rotation, by ${MEASURES[measure]}`, "aria-valuemin": 0, "aria-valuemax": count - 1 }
      : { role: "img" });
    const high = make("span"), low = make("span"), head = make("div", { class: "mv-sweep-head" });
    // over the upper plots: where the own rotation is; under the lower ones: the axis and the picked one
    const at_ = make("div", { class: "mv-sweep-marks", "aria-hidden": "true" });
    const drawn = [make("div", { class: "mv-sweep-y", "aria-hidden": "true" }, high, low), canvas];
    const element = make("div", { class: `mv-sweep-plot mv-sweep-${kind}` }, head, ...(measure === "words" ? [at_, ...drawn] : [...drawn, at_]));
    return { measure, kind, canvas, high, low, head, marks: at_, element };
  };
  const plots = ["words", "size"].flatMap((measure) => ["all", "near"].map((kind) => plot(measure, kind)));
  const wide = make("div", { class: "mv-sweep-plots" }, ...plots.map((each) => each.element));
  const map = make("canvas", { role: "img" });
  const low = make("span"), high = make("span"), period = make("p", { class: "mv-sweep-period" });
  const ends = make("div", { class: "mv-sweep-marks", "aria-hidden": "true" });
  const mapped = make("div", { class: "mv-sweep-map" },
    make("div", { class: "mv-sweep-asked" }, measured, by, make("span", {}, "bars: means of the columns")),
    map, ends,
    make("div", { class: "mv-sweep-scale", "aria-hidden": "true" }, make("span", {}, low, make("i"), high),
      make("span", {}, make("b", { class: "mv-sweep-own" }), "own"), make("span", {}, make("b"), "picked")),
    period);
  const pair = pairTable();
  const none = make("p", { class: "mv-sweep-none" });
  const title = make("div", { class: "mv-sweep-head" });
  v.picture.append(facts, wide, mapped, make("div", { class: "mv-sweep-word" }, title, none, pair.element));

  // read once a drawing, before anything is written: the sizes on the page, and a length that grows with the font
  let sizes = new Map(), scale = 1;
  const measurePage = () => {
    scale = parseFloat(getComputedStyle(v.root).fontSize) / 14;
    sizes = new Map([map, ...plots.map((each) => each.canvas)].map((canvas) => [canvas, [canvas.clientWidth, canvas.clientHeight]]));
  };
  const unit = () => scale;
  const paper = (canvas) => {
    const dots = devicePixelRatio, [w, h] = sizes.get(canvas), ctx = canvas.getContext("2d");
    canvas.width = Math.max(1, Math.round(w * dots));
    canvas.height = Math.max(1, Math.round(h * dots));
    ctx.setTransform(canvas.width / Math.max(1, w), 0, 0, canvas.height / Math.max(1, h), 0, 0);
    return { ctx, w, h };
  };
  const marks = (element, given) => element.replaceChildren(...given.map(([share, text, kind]) =>
    make("span", { class: kind, style: `left:${100 * share}%;transform:translateX(-${100 * share}%)` }, text)));
  const line = (ctx, x, h, colour, dashes) => {
    ctx.strokeStyle = colour;
    ctx.lineWidth = 2;
    ctx.setLineDash(dashes);
    ctx.beginPath();
    ctx.moveTo(x, 0);
    ctx.lineTo(x, h);
    ctx.stroke();
    ctx.setLineDash([]);
  };

  let near = [0, count];
  function drawPlot(each) {
    const { measure, kind } = each, of = values[measure], all = kind === "all";
    const [first, end] = all ? [0, count] : near, picked = at();
    const span = Array.from({ length: end - first }, (_, i) => first + i);
    const scaled = all ? [0, range(measure)[1]] : within(measure, span.filter((i) => i !== own));
    const flat = scaled[0] === scaled[1], [least, most] = flat ? [Math.min(0, scaled[0]), scaled[1] || 1] : scaled;
    const { ctx, w, h } = paper(each.canvas), pad = 4 * unit();
    const x = (i) => pad + ((i - first + 0.5) / (end - first)) * (w - 2 * pad);
    const y = (value) => h - pad - ((value - least) / (most - least)) * (h - 2 * pad);
    ctx.strokeStyle = v.colours.edge;
    ctx.lineWidth = 1;
    ctx.strokeRect(0.5, 0.5, w - 1, h - 1);
    if (own >= first && own < end) line(ctx, x(own), h, v.colours.front, [6, 4]);
    line(ctx, x(picked), h, v.colours.ink, []);
    const unit_ = unit(), radius = unit_ * (all ? Math.max(1.1, Math.min(3, w / count / 2)) : 2.4);
    ctx.fillStyle = v.colours.mark;
    for (const i of span) {
      if (i === own && !all) continue;
      if (radius < 2 * unit_) { ctx.fillRect(x(i) - radius, y(of[i]) - radius, 2 * radius, 2 * radius); continue; }
      ctx.beginPath();
      ctx.arc(x(i), y(of[i]), radius, 0, 7);
      ctx.fill();
    }
    // the two that matter: the own one as a square, the picked one as a ring
    if (all) {
      ctx.fillStyle = v.colours.front;
      ctx.fillRect(x(own) - 2 * radius, y(of[own]) - 2 * radius, 4 * radius, 4 * radius);
    }
    if (all || picked !== own) {
      ctx.strokeStyle = v.colours.ink;
      ctx.lineWidth = 2;
      ctx.beginPath();
      ctx.arc(x(picked), y(of[picked]), radius + 3 * unit(), 0, 7);
      ctx.stroke();
    }
    each.high.textContent = shown(measure, most);
    each.low.textContent = least ? shown(measure, least) : "0";
    each.head.textContent = all ? `${MEASURES[measure]}, by rotation` : "near the picked one";
    const share = (i) => x(i) / w;
    const apart = (i, j, em) => Math.abs(x(i) - x(j)) > em * 14 * unit();
    const inside = own >= first && own < end;
    if (measure === "words") marks(each.marks, inside ? [[share(own), all ? `own ${number(own)}` : "own", "mv-sweep-front"]] : []);
    else {
      const ticks = all && w > 26 * 14 * unit() ? [0, 0.25, 0.5, 0.75, 1].map((part) => Math.round(part * (count - 1))) : [first, end - 1];
      marks(each.marks, [...[...new Set(ticks)].filter((i) => apart(i, picked, all ? 6.5 : 3.5)).map((i) => [share(i), number(i)]),
        [share(picked), all ? `picked ${number(picked)}` : number(picked), "mv-sweep-strong"]]);
    }
    if (all) {
      each.canvas.setAttribute("aria-valuenow", picked);
      each.canvas.setAttribute("aria-valuetext", said(picked));
    } else each.canvas.setAttribute("aria-label", `${MEASURES[measure]}, rotations ${number(first)} to ${number(end - 1)}: ${shown(measure, scaled[0])} to ${shown(measure, scaled[1])}`);
    each.where = (sharing) => first + Math.floor(Math.max(0, Math.min(0.999999, (sharing * w - pad) / (w - 2 * pad))) * (end - first));
  }

  let cells = null;
  function drawMap(fold, measure) {
    const { ctx, w, h } = paper(map), lines = Math.ceil(count / fold), [least, most] = spanned(measure);
    const bars = 2.2 * 14 * unit(), cw = w / fold, ch = (h - bars) / lines;
    const share = (value) => (most > least ? Math.max(0, Math.min(1, (value - least) / (most - least))) : 0.5);
    means(measure, fold).forEach(([value, members], k) => {
      if (!members) return;
      const tall = Math.max(1, share(value) * (bars - 6 * unit()));
      ctx.fillStyle = v.colours.mark;
      ctx.fillRect(k * cw + cw * 0.1, bars - 4 * unit() - tall, cw * 0.8, tall);
    });
    for (let i = 0; i < count; i++) {
      const x = (i % fold) * cw, y = bars + Math.floor(i / fold) * ch;
      ctx.fillStyle = i === own ? v.colours.empty : `rgb(${viridis(share(values[measure][i])).join()})`;
      ctx.fillRect(x, y, cw + 0.4, ch + 0.4);
    }
    const box = (i, colour, dashes) => {
      const grow = Math.max(0, 7 * unit() - ch) / 2; // an outline that can be seen, however thin the lines are
      const wider = Math.max(0, 7 * unit() - cw) / 2;
      const [x, y] = [(i % fold) * cw - wider, bars + Math.floor(i / fold) * ch - grow];
      for (const [stroke, thick] of [[v.colours.paper, 5], [colour, 2.5]]) {
        ctx.strokeStyle = stroke;
        ctx.lineWidth = thick;
        ctx.setLineDash(thick === 5 ? [] : dashes);
        ctx.strokeRect(x, y, cw + 2 * wider, ch + 2 * grow);
      }
      ctx.setLineDash([]);
    };
    box(own, v.colours.front, [4, 2]);
    box(at(), v.colours.ink, []);
    cells = (across, down) => {
      const row = Math.floor((down * h - bars) / ch);
      if (row < 0) return -1;
      return Math.min(count - 1, Math.min(lines - 1, row) * fold + Math.min(fold - 1, Math.floor(across * fold)));
    };
    const [lowest, highest] = range(measure);
    low.textContent = `${lowest < least ? "≤ " : ""}${shown(measure, least)}`;
    high.textContent = `${highest > most ? "≥ " : ""}${shown(measure, most)}`;
    marks(ends, [[0, "0"], [0.5, `rotation modulo ${fold}`], [1, number(fold - 1)]]);
    period.textContent = folded(measure, fold).replaceAll(" %", "\u00a0%");
    map.setAttribute("aria-label", `${MEASURES[measure]} of all rotations, ${fold} a line. ${folded(measure, fold)}`);
  }

  const picks = (canvas, begin) => {
    let where = null;
    const pick = (event) => {
      const box = canvas.getBoundingClientRect();
      const found = where((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
      if (found >= 0) to(found);
    };
    v.listen(canvas, "pointerdown", (event) => {
      if (event.button) return;
      v.warn("");
      canvas.setPointerCapture(event.pointerId);
      where = begin(); // the span stays as it was while the pointer is down
      pick(event);
    });
    v.listen(canvas, "pointermove", (event) => { if (where && event.buttons) pick(event); });
    for (const end of ["pointerup", "pointercancel"]) v.listen(canvas, end, () => { where = null; });
  };
  for (const each of plots) picks(each.canvas, () => each.where);
  picks(map, () => cells);

  function draw() {
    const picked = at(), fold = model.get("fold"), measure = model.get("measure");
    const span = Math.min(count, NEAR), first = Math.max(0, Math.min(count - span, picked - (span >> 1)));
    near = [first, first + span];
    wide.dataset.near = count > 2 * NEAR ? "yes" : "no";
    mapped.hidden = !fold;
    measurePage();
    for (const each of plots) if (each.kind === "all" || count > 2 * NEAR) drawPlot(each);
    if (fold) drawMap(fold, measure);
    measured.value = measure;
    by.value = fold;
    const differs = values.words[picked] > 0, [index, one, two] = packed.subarray(5 * picked + 2, 5 * picked + 5);
    pair.element.hidden = !differs;
    none.hidden = differs;
    title.textContent = differs ? `word ${number(index)}: the largest difference at rotation ${number(picked)}` : "";
    none.textContent = picked === own ? "This is the ring's own rotation: every word is compared with the word here." : "No word differs at this rotation.";
    if (differs) pair.show(["own", "picked"], index, one, two, 32);
    v.able("previous-one", seek(-1) >= 0);
    v.able("next-one", seek(1) >= 0);
    v.able("own", picked !== own);
    v.able("furthest", picked !== furthest);
    v.root.dataset.picked = picked;
    v.say(said(picked));
  }

  facts.append(...summary().split("\n").map((line_) => make("span", {}, line_)));
  v.start();
  return v.end;
}

export default { render };
