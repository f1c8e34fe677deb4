import { stage, make, number, unpack, viridis } from "./stage.js";

const SMALL = 64; // a ring of so many rows or fewer shows the token in each
const SPEEDS = [1, 4, 15, 60, 240]; // steps a second
const AGES = Array.from({ length: 256 }, (_, i) => viridis(1 - 0.92 * (i / 255)));
const mod = (a, n) => ((a % n) + n) % n;

/** The steps of a trace, a value a step; everything else is derived from them and the ring they start from. */
class Steps {
  constructor(start, packed) {
    Object.assign(this, { capacity: start.capacity, position: [], count: [], accepted: [], chunk: [], tokens: [] });
    this.restart(start);
    for (let i = 0; i < packed.length; i += 4) {
      const [position, count, repeat, flags] = packed.subarray(i, i + 4);
      for (let k = 0; k < repeat; k++) this.add(position + k, count, (flags & 1) === 1, (flags & 2) === 2);
    }
  }

  restart(start) {
    this.start = start;
    for (const name of ["position", "count", "accepted", "chunk", "tokens"]) this[name].length = 0;
  }

  add(position, count, accepted, chunk) {
    this.tokens.push((this.tokens.at(-1) ?? 0) + (accepted ? count : 0));
    this.position.push(position);
    this.count.push(count);
    this.accepted.push(accepted);
    this.chunk.push(chunk);
  }

  get last() { return this.position.length - 1; }

  /** The ring after a step (-1: the start), and what the step did. */
  at(step) {
    const { start, capacity } = this;
    const tokens = step < 0 ? 0 : this.tokens[step];
    const next = start.origin_logical + start.len + tokens;
    const len = Math.min(capacity, start.len + tokens);
    const front = next - len;
    const row = mod(start.origin_physical + front - start.origin_logical, capacity);
    const state = { step, capacity, next, len, front, row, written: 0, first: mod(row + len, capacity), dropped: 0 };
    if (step < 0) return state;
    const taken = this.accepted[step] ? this.count[step] : 0;
    state.written = Math.min(taken, len);
    state.dropped = taken - state.written;
    state.first = mod(row + next - state.written - front, capacity);
    Object.assign(state, { position: this.position[step], count: this.count[step], accepted: this.accepted[step], chunk: this.chunk[step] });
    // the chunk came to row 0 from the last row
    state.wrapped = state.written > 0 && (state.first + state.written > capacity || (state.first === 0 && next > state.written));
    return state;
  }

  token(state, row) {
    const age = mod(row - state.row, state.capacity);
    return age < state.len ? state.front + age : -1;
  }
}

/** What a step did and the state after it: the sentence that the package prints. */
function sentence(s) {
  const state = `len ${number(s.len)}, origin_logical ${number(s.front)}, origin_physical ${number(s.row)}`;
  if (s.step < 0) return `start: ${state}`;
  const what = s.chunk ? `chunk of ${number(s.count)} at ${number(s.position)}` : `append ${number(s.position)}`;
  if (!s.accepted) return `${what}: refused, ${number(s.next)} is next; ${state}`;
  let where = "no row";
  if (s.written === 1) where = `row ${number(s.first)}`;
  else if (s.written > 1) {
    const head = Math.min(s.written, s.capacity - s.first);
    const parts = [[s.first, head], [0, s.written - head]].filter(([, n]) => n > 0);
    where = `rows ${parts.map(([first, n]) => `${number(first)} to ${number(first + n - 1)}`).join(" and ")}`;
    if (s.dropped) where += ` (${number(s.dropped)} of its tokens had left the window)`;
  }
  return `${what} -> ${where}; ${state}`;
}

function render({ model, el }) {
  const live = model.get("live");
  const trace = new Steps(model.get("start"), unpack(model.get("steps"), Uint32Array));
  const capacity = trace.capacity, small = capacity <= SMALL;
  const step = () => Math.min(model.get("step"), trace.last);
  const to = (wanted) => {
    const found = Math.max(-1, Math.min(trace.last, wanted));
    if (found === step()) return false;
    v.set("step", found);
    return true;
  };

  // ---- a live plane: one row at a time, and never more than one request under way
  let asked = false, owed = false;
  const store = () => {
    if (!v.alive) throw new Error("The kernel has gone. Run this cell again to go on.");
    if (asked) { owed = true; return; }
    asked = true;
    v.root.dataset.asked = "yes";
    try { model.send({ op: "store" }); } catch (error) { asked = owed = false; throw error; }
  };
  const onward = () => (live && step() === trace.last ? store() : to(step() + 1));

  // ---- playing
  let playing = false, frame = 0, since = 0, due = 0;
  const stop = () => { playing = false; cancelAnimationFrame(frame); shown(); };
  const tick = (now) => {
    if (!playing) return;
    const speed = v.reduced ? Math.min(2, model.get("speed")) : model.get("speed");
    due = Math.min(due + (Math.max(0, now - since) / 1000) * speed, Math.max(1, speed / 10));
    since = now;
    const steps = Math.floor(due + 1e-6);
    due -= steps;
    if (steps && live && step() === trace.last) { if (!asked) store(); }
    else if (steps && !to(step() + steps) && !live) { stop(); v.redraw(); return; }
    frame = requestAnimationFrame(tick);
  };
  const play = () => {
    if (playing) { stop(); v.redraw(); return; }
    if (!live && step() === trace.last) to(-1);
    playing = true;
    since = performance.now();
    due = 0;
    shown();
    frame = requestAnimationFrame(tick);
  };
  const shown = () => {
    v.buttons.play.textContent = playing ? "Pause" : "Play";
    v.root.dataset.playing = playing ? "yes" : "no";
  };

  /** The step before the write next comes to row 0, forward or back. */
  const wrap = (by) => {
    for (let i = step() + (by > 0 ? 2 : -1); i >= 0 && i <= trace.last; i += by) if (trace.at(i).wrapped) return to(i - 1);
    throw new Error(`no ${by > 0 ? "later" : "earlier"} step of this trace writes past the last row`);
  };

  const v = stage({ model, el }, {
    name: "ring",
    label: `${live ? "A live plane's ring" : "A ring"} of ${number(capacity)} rows, step by step`,
    state: ["step", "mode", "speed"],
    actions: [
      { name: "back", keys: ["ArrowLeft", "PageUp"], does: "one step back", act: () => to(step() - 1), button: "Back" },
      { name: "step", keys: ["ArrowRight", "PageDown"], does: live ? "one step on; at the end, store one more row" : "one step on", act: onward, button: "Step" },
      { name: "play", keys: [" "], does: "play, pause", act: play, button: "Play" },
      { name: "first", keys: ["Home"], does: "to the start", act: () => to(-1) },
      { name: "last", keys: ["End"], does: "to the last step", act: () => to(trace.last) },
      { name: "wrap", keys: ["ArrowDown", "w"], does: "to just before the next wrap", act: () => wrap(1) },
      { name: "unwrap", keys: ["ArrowUp"], does: "to just before the wrap before", act: () => wrap(-1) },
      { name: "mode", keys: ["g"], does: "ring or grid", act: () => v.set("mode", model.get("mode") === "ring" ? "grid" : "ring"), button: "Grid" },
      { name: "faster", keys: ["+", "="], does: "play faster", act: () => speed(1) },
      { name: "slower", keys: ["-"], does: "play slower", act: () => speed(-1) },
    ],
    draw,
  });
  v.needsKernel = live;
  v.stop = () => { if (playing) stop(); };
  const speed = (by) => {
    const at = SPEEDS.indexOf(model.get("speed"));
    v.set("speed", SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, at + by))]);
  };

  // ---- controls beside the buttons
  const slider = make("input", { type: "range", min: -1, max: trace.last, step: 1, "aria-label": "step" });
  v.listen(slider, "input", () => to(Number(slider.value)));
  const speeds = make("select", { "aria-label": "speed" }, ...SPEEDS.map((n) => make("option", { value: n }, `${n} a second`)));
  v.listen(speeds, "change", () => v.set("speed", Number(speeds.value)));
  const jump = make("input", { type: "number", min: 0, step: 1, "aria-label": "token" });
  v.listen(jump, "keydown", (event) => event.key === "Enter" && find());
  v.listen(jump, "change", () => find());
  const find = () => {
    const token = Number(jump.value), first = trace.start.origin_logical + trace.start.len, next = trace.at(trace.last).next;
    if (jump.value === "") return;
    if (!Number.isInteger(token) || token < first || token >= next) {
      throw new Error(next > first
        ? `token ${jump.value} was asked for; this trace stores tokens ${number(first)} to ${number(next - 1)}`
        : "this trace stores no token");
    }
    v.warn("");
    to(trace.tokens.findIndex((tokens) => first + tokens > token));
  };
  v.buttons.play.after(slider, speeds, make("label", {}, "to token", jump));

  // ---- the picture: slots on a canvas, marks and labels over it, the numbers beside it
  const canvas = make("canvas", { role: "img" });
  const marks = make("svg:svg", { "aria-hidden": "true" });
  const wheel = make("div", { class: "mv-ring-slots" }, canvas, marks);
  const did = make("p", { class: "mv-ring-did" });
  const wrapped = make("p", { class: "mv-ring-wrapped" }, "↻ past the last row, on to row 0");
  const source = make("div", { class: "mv-ring-source" });
  const numbers = make("div", { class: "mv-ring-numbers" });
  const rows = make("table", { class: "mv-ring-rows", "aria-label": "rows near the write" });
  const bytes = make("div", { class: "mv-ring-bytes" });
  const ages = make("div", { class: "mv-ring-ages", "aria-hidden": "true" },
    make("i", { class: "mv-ring-none" }), "empty", make("i", { class: "mv-ring-scale" }), "oldest to newest");
  v.picture.append(wheel, make("div", { class: "mv-ring-beside" }, did, wrapped, source, numbers, rows, bytes, ages));
  const values = ["next token", "len", "origin_logical", "origin_physical"].map((term) => {
    const value = make("b");
    numbers.append(make("span", {}, term), value);
    return value;
  });
  const near = Math.min(capacity, 9);
  const lines = Array.from({ length: near }, () => {
    const line = ["th", "td", "td"].map((tag) => make(tag, tag === "th" ? { scope: "row" } : {}));
    rows.append(make("tr", {}, ...line));
    return line;
  });

  const colourOf = (state, token) => AGES[Math.min(255, Math.floor((255 * (state.next - 1 - token)) / Math.max(1, capacity - 1)))];
  const ctx = canvas.getContext("2d");
  let map = null; // of each pixel of the ring: its row, or -1

  const rgb = (text) => {
    ctx.fillStyle = text;
    const hex = ctx.fillStyle;
    return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  };

  function ringPixels(size) {
    const of = new Int32Array(size * size).fill(-1), mid = size / 2;
    for (let y = 0, i = 0; y < size; y++) {
      for (let x = 0; x < size; x++, i++) {
        const dx = (x + 0.5 - mid) / mid, dy = (y + 0.5 - mid) / mid, r = Math.hypot(dx, dy);
        if (r < 0.55 || r > 0.8) continue;
        const turn = mod(Math.atan2(dx, -dy) / (2 * Math.PI), 1) * capacity;
        const apart = Math.abs(turn - Math.round(turn)) * ((2 * Math.PI * r * mid) / capacity);
        if (small && apart < size / 400) continue;
        of[i] = Math.min(capacity - 1, Math.floor(turn));
      }
    }
    return of;
  }

  function drawRing(state) {
    const size = Math.max(64, Math.min(1100, Math.round(wheel.clientWidth * devicePixelRatio)));
    if (canvas.width !== size || canvas.height !== size || map?.length !== size * size) {
      canvas.width = canvas.height = size;
      map = ringPixels(size);
    }
    const image = ctx.createImageData(size, size), pixels = new Uint32Array(image.data.buffer);
    const word = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
    const empty = word(rgb(v.colours.empty)), hatch = word(rgb(v.colours.edge));
    const words = new Uint32Array(capacity), held = new Uint8Array(capacity);
    for (let row = 0; row < capacity; row++) {
      const token = trace.token(state, row);
      held[row] = token >= 0 ? 1 : 0;
      words[row] = token >= 0 ? word(colourOf(state, token)) : empty;
    }
    const gap = Math.max(6, size >> 6);
    for (let i = 0; i < map.length; i++) {
      const row = map[i];
      if (row < 0) continue;
      pixels[i] = held[row] ? words[row] : ((i % size) + Math.floor(i / size)) % gap === 0 ? hatch : empty;
    }
    ctx.putImageData(image, 0, 0);
  }

  const grid = { columns: small ? Math.ceil(Math.sqrt(capacity)) : Math.min(64, Math.ceil(Math.sqrt(capacity * 2))) };
  grid.lines = Math.ceil(capacity / grid.columns);
  const cell = small ? 24 : 10, left = small ? 20 : 44, above = small ? 4 : 26;
  grid.width = left + grid.columns * cell + 8;
  grid.height = 2 * above + grid.lines * cell;

  function drawGrid(state) {
    const wide = Math.max(64, Math.min(1600, Math.round(wheel.clientWidth * devicePixelRatio)));
    canvas.width = wide;
    canvas.height = Math.round((wide * grid.height) / grid.width);
    const unit = wide / grid.width, inset = Math.max(1, unit * cell * 0.06);
    for (let row = 0; row < capacity; row++) {
      const x = (left + (row % grid.columns) * cell) * unit, y = (above + Math.floor(row / grid.columns) * cell) * unit;
      const token = trace.token(state, row), side = cell * unit - inset;
      ctx.fillStyle = token < 0 ? v.colours.empty : `rgb(${colourOf(state, token).join()})`;
      ctx.fillRect(x, y, side, side);
      if (token < 0) {
        ctx.strokeStyle = v.colours.edge;
        ctx.lineWidth = Math.max(1, unit * 0.5);
        ctx.beginPath();
        ctx.moveTo(x, y + side);
        ctx.lineTo(x + side, y);
        ctx.stroke();
      }
    }
  }

  // Marks: W at the row written last (inside the ring, above the grid), F at the front (outside, below).
  const turned = (row) => 2 * Math.PI * (row / capacity) - Math.PI / 2;
  const on = (radius, angle) => [radius * Math.cos(angle), radius * Math.sin(angle)];
  const text = (x, y, said, attributes = {}) => make("svg:text", { x, y, "text-anchor": "middle", "dominant-baseline": "central", ...attributes }, said);
  const arc = (radius, from, rowsOf, attributes) => {
    if (rowsOf >= capacity) return make("svg:circle", { r: radius, fill: "none", ...attributes });
    const [x0, y0] = on(radius, turned(from)), [x1, y1] = on(radius, turned(from + rowsOf));
    return make("svg:path", { d: `M${x0} ${y0}A${radius} ${radius} 0 ${rowsOf > capacity / 2 ? 1 : 0} 1 ${x1} ${y1}`, fill: "none", ...attributes });
  };

  function markRing(state) {
    const parts = [];
    const [sx, sy] = on(54, -Math.PI / 2), [tx, ty] = on(86, -Math.PI / 2);
    parts.push(make("svg:line", { x1: sx, y1: sy, x2: tx, y2: ty, class: "mv-ring-seam" }));
    if (small) {
      for (let row = 0; row < capacity; row++) {
        const [x, y] = on(67.5, turned(row + 0.5)), token = trace.token(state, row);
        parts.push(text(x, y, token < 0 ? "·" : token, { class: "mv-ring-token", "font-size": capacity <= 16 ? 9 : capacity <= 32 ? 6 : 3.6 }));
      }
    } else {
      for (let quarter = 0; quarter < 4; quarter++) {
        const row = Math.floor((capacity * quarter) / 4), [x, y] = on(67.5, turned(row));
        parts.push(text(x, y, number(row), { class: "mv-ring-token", "font-size": 5.5 }));
      }
    }
    if (state.written) {
      const [a, b] = [on(53, turned(state.first + state.written - 0.5)), on(44, turned(state.first + state.written - 0.5))];
      parts.push(arc(52.5, state.first, state.written, { class: "mv-ring-written" }));
      parts.push(make("svg:line", { x1: a[0], y1: a[1], x2: b[0], y2: b[1], class: "mv-ring-written" }));
      parts.push(text(...on(36, turned(state.first + state.written - 0.5)), "W", { class: "mv-ring-w", "font-size": 12 }));
    }
    if (state.len) {
      const angle = turned(state.row + 0.5), [a, b] = [on(82, angle), on(88, angle)];
      parts.push(make("svg:line", { x1: a[0], y1: a[1], x2: b[0], y2: b[1], class: "mv-ring-front" }));
      parts.push(text(...on(94, angle), "F", { class: "mv-ring-f", "font-size": 12 }));
    }
    parts.push(text(0, -7, "next token", { "font-size": 7 }), text(0, 4, number(state.next), { "font-size": 11, "font-weight": 700 }));
    if (state.wrapped) parts.push(text(0, 16, "wrapped", { class: "mv-ring-w", "font-size": 8 }));
    marks.setAttribute("viewBox", "-100 -100 200 200");
    marks.replaceChildren(...parts);
  }

  function markGrid(state) {
    const parts = [];
    const at = (row) => [left + (row % grid.columns) * cell, above + Math.floor(row / grid.columns) * cell];
    const every = small ? 1 : Math.max(1, Math.ceil(grid.lines / 8));
    for (let line = 0; line < grid.lines; line += every) {
      parts.push(text(left - 4, above + line * cell + cell / 2, number(line * grid.columns), { "text-anchor": "end", class: "mv-ring-line", "font-size": small ? 7 : 11 }));
    }
    if (small) {
      for (let row = 0; row < capacity; row++) {
        const [x, y] = at(row), token = trace.token(state, row);
        parts.push(text(x + cell / 2, y + 15, token < 0 ? "·" : token, { class: "mv-ring-token", "font-size": 7 }));
      }
    }
    // a letter in the cell of a small ring; else a label in the margin and a line to the cell
    const marked = (row, letter, said, kind, y) => {
      const [x, top] = at(row), mid = x + cell / 2, up = letter === "W";
      if (small) return [text(x + (up ? 4.5 : cell - 4.5), top + 5, letter, { class: `mv-ring-token mv-ring-${letter.toLowerCase()}`, "font-size": 5.5 })];
      const anchor = x < 60 ? "start" : x > grid.width - 60 ? "end" : "middle";
      return [
        make("svg:line", { x1: mid, y1: up ? top : top + cell, x2: mid, y2: y, class: `mv-ring-${kind} mv-ring-thin` }),
        text(mid, up ? y - 11 : y + 11, `${letter} ${said}`, { class: `mv-ring-${letter.toLowerCase()}`, "font-size": 15, "text-anchor": anchor }),
      ];
    };
    if (state.len) {
      const [x, y] = at(state.row);
      parts.push(make("svg:rect", { x, y, width: cell, height: cell, class: "mv-ring-front", fill: "none" }));
    }
    if (state.written) {
      for (let done = 0, row = state.first; done < state.written;) { // a rectangle for each line of the grid that the rows lie in
        const [x, y] = at(row), n = Math.min(state.written - done, grid.columns - (row % grid.columns), capacity - row);
        parts.push(make("svg:rect", { x, y, width: n * cell, height: cell, class: "mv-ring-written", fill: "none" }));
        done += n;
        row = (row + n) % capacity;
      }
      parts.push(...marked((state.first + state.written - 1) % capacity, "W", state.wrapped ? "wrapped" : "write", "written", above - 2));
    }
    if (state.len) parts.push(...marked(state.row, "F", "front", "front", grid.height - above + 2));
    marks.setAttribute("viewBox", `0 0 ${grid.width} ${grid.height}`);
    marks.replaceChildren(...parts);
  }

  function beside(state) {
    const said = sentence(state).split("; ")[0];
    did.textContent = state.step >= 0 && !state.accepted ? `✕ ${said}` : said;
    v.root.dataset.refused = state.step >= 0 && !state.accepted ? "yes" : "no";
    wrapped.style.visibility = state.wrapped ? "visible" : "hidden";
    [number(state.next), `${number(state.len)} of ${number(capacity)}`, `token ${number(state.front)}`, `row ${number(state.row)}`].forEach((value, i) => { values[i].textContent = value; });
    source.hidden = !(state.chunk && state.accepted && state.count > 0);
    if (!source.hidden) {
      const share = (100 * state.dropped) / state.count;
      const lost = state.dropped ? `0 to ${number(state.dropped - 1)} left the window, ` : "";
      source.replaceChildren(
        make("div", { class: "mv-ring-chunk", "aria-hidden": "true" }, make("i", { style: `width:${share}%` }), make("b", { style: `width:${100 - share}%` })),
        `source rows ${lost}${number(state.dropped)} to ${number(state.count - 1)} are live`);
    }
    const focus = mod(state.first + Math.max(state.written, 1) - 1, capacity);
    lines.forEach(([head, token, mark], i) => {
      const row = capacity > near ? mod(focus - (near >> 1) + i, capacity) : i;
      const fresh = state.written > 0 && mod(row - state.first, capacity) < state.written;
      const front = state.len > 0 && row === state.row, value = trace.token(state, row);
      head.textContent = `row ${number(row)}`;
      token.textContent = value < 0 ? "empty" : `token ${number(value)}`;
      mark.textContent = [fresh && "W written", front && "F front"].filter(Boolean).join(", ");
      head.parentElement.className = `${fresh ? "mv-ring-fresh" : ""} ${front ? "mv-ring-first" : ""} ${capacity > near && row === 0 ? "mv-ring-zero" : ""}`;
    });
    if (live) bytes.replaceChildren(...landed(state));
  }

  // The bytes of the row that landed, as read back from the plane after its store.
  const stored = new Map();
  const hex = (words) => [...words.subarray(0, 6)].map((w) => w.toString(16).padStart(4, "0")).join(" ") + (words.length > 6 ? " …" : "");
  function landed(state) {
    const rowOf = stored.get(state.step);
    if (!rowOf) return [make("p", {}, "Step stores a row through the kernel; the f16 words that landed are shown here.")];
    return [make("p", {}, `read back from row ${number(state.first)} after the store (${model.get("backend")} backend)`),
      make("code", {}, `K ${hex(rowOf.key)}`), make("code", {}, `V ${hex(rowOf.value)}`)];
  }
  v.received = (message, buffers) => {
    asked = false;
    delete v.root.dataset.asked;
    if (message.op === "refused") { owed = false; v.stop(); throw new Error(message.text); }
    if (message.op !== "stored") return;
    const { before, position } = message, here = trace.at(trace.last);
    if (here.next !== position || here.len !== before.len || here.row !== before.origin_physical) {
      trace.restart(before); // the plane was moved by other hands: go on from where it is
      stored.clear();
    }
    trace.add(position, 1, true, false);
    stored.set(trace.last, { key: unpack(buffers[0], Uint16Array), value: unpack(buffers[1], Uint16Array) });
    slider.max = trace.last;
    v.set("step", trace.last);
    v.redraw();
    if (owed) { owed = false; store(); }
  };

  function draw() {
    const state = trace.at(step()), mode = model.get("mode"), said = sentence(state);
    wheel.dataset.mode = small && mode === "grid" ? "small grid" : mode;
    v.root.dataset.mode = mode;
    wheel.style.aspectRatio = mode === "ring" ? "1" : `${grid.width} / ${grid.height}`;
    if (mode === "ring") { drawRing(state); markRing(state); } else { drawGrid(state); markGrid(state); }
    beside(state);
    slider.value = state.step;
    slider.setAttribute("aria-valuetext", said);
    speeds.value = model.get("speed");
    v.buttons.mode.textContent = mode === "ring" ? "Grid" : "Ring";
    v.able("back", state.step >= 0);
    v.able("step", live || state.step < trace.last);
    v.root.dataset.step = state.step;
    canvas.setAttribute("aria-label", `${number(capacity)} rows by age. ${said}`);
    v.say(said);
  }

  shown();
  v.start();
  return v.end;
}

export default { render };
