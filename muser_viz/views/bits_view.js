import { stage, make, number, unpack, viridis } from "./stage.js";
import { pairText, pairTable, power, floatOf } from "./words.js";

const NEAR = 33; // the words of the strip near the picked one, at most
const CELL = 11; // pixels that a word needs to have a bar of its own

function render({ model, el }) {
  const width = model.get("width"), names = model.get("names");
  const Words = width === 16 ? Uint16Array : Uint32Array; // the words of the arrays as they lie
  const a = unpack(model.get("a"), Words), b = unpack(model.get("b"), Words), size = a.length;
  const pair = pairTable();
  const before = new Uint32Array(size + 1); // how many words differ before one
  for (let i = 0; i < size; i++) before[i + 1] = before[i] + (a[i] === b[i] ? 0 : 1);
  const differ = before[size];
  let widest = 1; // the largest ULP distance
  for (let i = 0; i < size; i++) if (a[i] !== b[i]) widest = Math.max(widest, pair.ulpOf(a[i], b[i], width) ?? 0);

  const at = () => Math.max(0, Math.min(size - 1, model.get("index")));
  const to = (wanted) => {
    const found = Math.max(0, Math.min(size - 1, wanted));
    if (found === at()) return false;
    v.set("index", found);
    return true;
  };
  /** The first word that differs from a word on, or -1. */
  const nextFrom = (from) => {
    if (from >= size || before[from] === differ) return -1;
    let low = from, high = size - 1;
    while (low < high) { const mid = (low + high) >> 1; if (before[mid + 1] > before[from]) high = mid; else low = mid + 1; }
    return low;
  };
  /** The last word that differs before a word, or -1. */
  const lastBefore = (to_) => {
    if (!before[to_]) return -1;
    let low = 0, high = to_ - 1;
    while (low < high) { const mid = (low + high) >> 1; if (before[mid + 1] === before[to_]) high = mid; else low = mid + 1; }
    return low;
  };
  const onward = (found) => found >= 0 && to(found);
  const furthest = () => {
    let best = -1, far = -1;
    for (let i = nextFrom(0); i >= 0; i = nextFrom(i + 1)) {
      const ulp = pair.ulpOf(a[i], b[i], width);
      if (ulp !== null && ulp > far) [best, far] = [i, ulp];
    }
    if (best < 0) throw new Error(differ ? "every word that differs has a NaN: there is no distance to it" : "no word differs");
    return to(best);
  };

  const v = stage({ model, el }, {
    name: "bits",
    label: `The bits of ${names[0]} and ${names[1]}, ${number(size)} words`,
    state: ["index"],
    actions: [
      { name: "back", keys: ["ArrowLeft"], does: "one word back", act: () => to(at() - 1) },
      { name: "on", keys: ["ArrowRight"], does: "one word on", act: () => to(at() + 1) },
      { name: "less", keys: ["ArrowUp"], does: "32 words back", act: () => to(at() - 32) },
      { name: "more", keys: ["ArrowDown"], does: "32 words on", act: () => to(at() + 32) },
      { name: "previous-one", keys: ["PageUp"], does: "the word before that differs", act: () => onward(lastBefore(at())), button: "Previous" },
      { name: "next-one", keys: ["PageDown"], does: "the next word that differs", act: () => onward(nextFrom(at() + 1)), button: "Next that differs" },
      { name: "furthest", keys: ["m"], does: "the word that is most ULP apart", act: furthest, button: "Furthest apart" },
      { name: "first", keys: ["Home"], does: "to the first word", act: () => to(0) },
      { name: "last", keys: ["End"], does: "to the last word", act: () => to(size - 1) },
    ],
    draw,
  });
  v.buttons.furthest.after(v.jump("word", size - 1, to));

  const strip = (className, attributes) => {
    const canvas = make("canvas", attributes), head = make("div", { class: "mv-bits-head" }), ticks = make("div", { class: "mv-bits-ticks", "aria-hidden": "true" });
    return { canvas, head, ticks, element: make("div", { class: `mv-bits-strip ${className}` }, head, canvas, ticks) };
  };
  const whole = strip("mv-bits-whole", { role: "slider", tabindex: 0, "aria-label": "word", "aria-valuemin": 0, "aria-valuemax": size - 1 });
  const near = strip("mv-bits-near", { role: "img" });
  v.picture.append(whole.element, near.element, pair.element);

  const tick = (ticks, marks) => ticks.replaceChildren(...marks.map(([share, text, strong]) =>
    make("span", { style: `left:${100 * share}%;transform:translateX(-${100 * share}%)`, class: strong ? "mv-bits-strong" : undefined }, text)));

  const paper = (canvas) => {
    const scale = devicePixelRatio, wide = canvas.clientWidth, high = canvas.clientHeight, ctx = canvas.getContext("2d");
    canvas.width = Math.max(1, Math.round(wide * scale));
    canvas.height = Math.max(1, Math.round(high * scale));
    ctx.setTransform(canvas.width / Math.max(1, wide), 0, 0, canvas.height / Math.max(1, high), 0, 0);
    return { ctx, wide, high };
  };

  const unit = () => parseFloat(getComputedStyle(v.root).fontSize) / 14;
  // A bar for each word of a span: as high as its words are far apart, on a log scale; a NaN's is an outline.
  function bars(shown, first, count) {
    const { ctx, wide, high } = paper(shown.canvas), step = wide / count, gap = step > 5 ? Math.min(3, step / 5) : 0;
    for (let i = 0; i < count; i++) {
      const index = first + i, x = i * step + gap / 2, w = step - gap;
      if (a[index] === b[index]) {
        ctx.fillStyle = v.colours.edge;
        ctx.fillRect(x, high - 3, w, 2);
      } else {
        const ulp = pair.ulpOf(a[index], b[index], width);
        const tall = ulp === null ? high - 10 : Math.max(5, ((high - 10) * Math.log2(1 + ulp)) / Math.log2(1 + widest));
        ctx.fillStyle = ctx.strokeStyle = v.colours.write;
        ctx.lineWidth = 1.5;
        if (ulp === null) ctx.strokeRect(x + 1, high - tall, w - 2, tall - 1);
        else ctx.fillRect(x, high - tall, w, tall);
      }
      if (index === at()) {
        ctx.strokeStyle = v.colours.ink;
        ctx.lineWidth = 2;
        ctx.strokeRect(x - gap / 2 + 1, 1, step - 2, high - 2);
      }
    }
  }

  // A bar for each bin of words: as high as the share of its words that differ.
  let bins = 1, zoomed = [0, size];
  function histogram() {
    const { ctx, wide, high } = paper(whole.canvas), top = 9 * unit(), dots = whole.canvas.width / wide;
    for (let i = 0; i < bins; i++) {
      const [x0, x1] = [i, i + 1].map((k) => Math.round((k * wide * dots) / bins) / dots);
      const from = Math.floor((i * size) / bins), end = Math.floor(((i + 1) * size) / bins), lit = before[end] - before[from];
      if (lit) {
        const tall = Math.max(6, ((high - top) * lit) / (end - from));
        ctx.fillStyle = v.colours.write;
        ctx.fillRect(x0, high - tall, x1 - x0, tall);
      } else {
        ctx.fillStyle = v.colours.edge;
        ctx.fillRect(x0, high - 2, x1 - x0, 2);
      }
    }
    const x = ((at() + 0.5) / size) * wide, half = 5 * unit();
    ctx.strokeStyle = ctx.fillStyle = v.colours.ink;
    const [left, right] = zoomed.map((index) => (index / size) * wide);
    ctx.globalAlpha = 0.16;
    ctx.fillRect(left, top, right - left, high - top);
    ctx.globalAlpha = 1;
    ctx.lineWidth = 2;
    ctx.beginPath();
    ctx.moveTo(x, top - 2);
    ctx.lineTo(x, high);
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(x - half, 0);
    ctx.lineTo(x + half, 0);
    ctx.lineTo(x, top);
    ctx.fill();
  }

  const picks = (canvas, wordAt) => {
    let down = null;
    const pick = (event) => {
      const box = canvas.getBoundingClientRect();
      to(down(Math.max(0, Math.min(0.999999, (event.clientX - box.left) / box.width))));
    };
    v.listen(canvas, "pointerdown", (event) => {
      if (event.button) return;
      v.warn("");
      canvas.setPointerCapture(event.pointerId);
      down = wordAt(); // the span stays as it was while the pointer is down
      pick(event);
    });
    v.listen(canvas, "pointermove", (event) => { if (down && event.buttons) pick(event); });
    for (const end of ["pointerup", "pointercancel"]) v.listen(canvas, end, () => { down = null; });
  };
  picks(whole.canvas, () => (share) => {
    if (bins === size) return Math.floor(share * size);
    const bin = Math.floor(share * bins), from = Math.floor((bin * size) / bins), end = Math.floor(((bin + 1) * size) / bins);
    const found = nextFrom(from);
    return found >= 0 && found < end ? found : from;
  });
  picks(near.canvas, () => { const [from, end] = zoomed; return (share) => from + Math.floor(share * (end - from)); });

  function draw() {
    const index = at(), wide = whole.canvas.clientWidth, cell = CELL * unit();
    const each = size <= wide / cell; // every word has a bar of its own: one strip is enough
    bins = each ? size : Math.min(size, Math.max(1, Math.floor(wide / (2 * unit()))));
    near.element.hidden = each;
    const span = Math.min(size, NEAR, Math.max(9, Math.floor(wide / cell)));
    const first = Math.max(0, Math.min(size - span, index - (span >> 1)));
    zoomed = each ? [0, size] : [first, first + span];
    const heights = "height: ULP distance, log scale; outline: a NaN, no distance";
    const told = `${number(differ)} of ${number(size)} words differ`;
    whole.head.textContent = each ? `all words · ${heights}`
      : bins === size ? "all words · a bar: it differs"
        : `all words, in bins of ${number(Math.ceil(size / bins))} or fewer · height: share that differs`;
    if (each) bars(whole, 0, size);
    else {
      histogram();
      bars(near, first, span);
      near.head.textContent = `near the picked word · ${heights}`;
      tick(near.ticks, [[0, number(first)], [(index - first + 0.5) / span, number(index), true], [1, number(first + span - 1)]]
        .filter(([share], i) => i === 1 || Math.abs(share - (index - first + 0.5) / span) > 0.12));
      near.canvas.setAttribute("aria-label", `words ${number(first)} to ${number(first + span - 1)}, ${number(before[first + span] - before[first])} of them differ`);
    }
    const share = size > 1 ? index / (size - 1) : 0;
    const marks = [...new Set([0, Math.floor((size - 1) / 2), size - 1])].map((mark) => [size > 1 ? mark / (size - 1) : 0, number(mark)]);
    tick(whole.ticks, [...marks.filter(([mark]) => Math.abs(mark - share) > 0.12), [share, number(index), true]]);
    const said = pairText(names, index, a[index], b[index], width);
    whole.canvas.setAttribute("aria-valuenow", index);
    whole.canvas.setAttribute("aria-valuetext", said);
    pair.show(names, index, a[index], b[index], width);
    v.able("previous-one", lastBefore(index) >= 0);
    v.able("next-one", nextFrom(index + 1) >= 0);
    v.able("furthest", differ > 0);
    v.root.dataset.index = index;
    v.say(`${told}\n${said}`);
  }

  v.start();
  return v.end;
}

export default { render };
