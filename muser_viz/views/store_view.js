import { stage, make, number, unpack, viridis } from "./stage.js";

const PER_SECOND = 2; // threads, in play
const FIELDS = ["source_row", "element", "source", "row", "cell"];
const WORDS = 2 ** 32;

function render({ model, el }) {
  const told = model.get("told"), count = model.get("count");
  // of each launch, of each thread: source row, element, source, row, cell, <f8; -1 past the guard
  const packed = unpack(model.get("threads"), Float64Array);
  const tables = told.map((_, launch) => Array.from({ length: count }, (_, thread) =>
    Object.fromEntries(FIELDS.map((name, field) => [name, packed[(launch * count + thread) * FIELDS.length + field]]))));
  const grid = tables[0].filter((entry) => entry.cell >= 0).length, past = count - grid;
  const wide = told[0].scalars.kv_dim;
  const first = tables[0][0].source_row, last = tables[0][grid - 1].source_row;
  const shades = Math.max(1, last - first);
  const colourOf = (sourceRow) => `rgb(${viridis(0.45 + (0.4 * (sourceRow - first)) / shades).join()})`;

  const step = () => Math.max(-1, Math.min(count, model.get("step")));
  const to = (wanted) => {
    const at = Math.max(-1, Math.min(count, wanted));
    if (at === step()) return false;
    v.set("step", at);
    return true;
  };

  const v = stage({ model, el }, {
    name: "store",
    label: `A store by ${told.map((launch) => launch.kernel).filter((name, i, names) => names.indexOf(name) === i).join(" and ")}: ${count} threads`,
    state: ["step"],
    actions: [
      { name: "back", keys: ["ArrowLeft", "PageUp"], does: "one thread back", act: () => to(step() - 1), button: "Back" },
      { name: "step", keys: ["ArrowRight", "PageDown"], does: "the next thread; after the last, all at once", act: () => to(step() + 1), button: "Step" },
      { name: "play", keys: [" "], does: "play, pause", act: () => v.play(), button: "Play" },
      { name: "all", keys: ["End", "a"], does: "all threads at once", act: () => to(count), button: "All at once" },
      { name: "first", keys: ["Home"], does: "to the start", act: () => to(-1) },
      { name: "down", keys: ["ArrowDown"], does: "a row of threads on", act: () => to(Math.min(step() + wide, count)) },
      { name: "up", keys: ["ArrowUp"], does: "a row of threads back", act: () => to(step() - wide) },
      { name: "guard", keys: ["g"], does: "to the first thread past the guard", act: () => { if (past) return to(grid); throw new Error("this view has no thread past the guard: give past=4"); } },
    ],
    draw,
  });
  v.plays(() => to(step() + 1) && step() < count, PER_SECOND, () => { if (step() === count) to(-1); });
  const slider = make("input", { type: "range", min: -1, max: count, step: 1, "aria-label": "thread" });
  v.listen(slider, "input", () => to(Number(slider.value)));
  v.buttons.play.after(slider);

  // ---- threads, source and planes: blocks of cells; a line of a block is what one row has there
  const cell = (text, attributes = {}) => make("i", attributes, String(text));
  const block = (title, name, ...lines) => make("div", { class: `mv-store-block mv-store-${name}`, role: "img" }, make("p", { class: "mv-store-title" }, title), ...lines);
  const line = (before, cells, after) => make("div", { class: "mv-store-line" }, ...(before ? [before] : []), ...cells, ...(after ? [after] : []));

  const threads = Array.from({ length: count }, (_, thread) => cell(thread, { "data-thread": thread }));
  const threadLines = [];
  for (let from = 0; from < count;) { // the threads past the guard begin a line of their own
    const end = from < grid ? Math.min(from + wide, grid) : Math.min(from + wide, count);
    threadLines.push(line(null, threads.slice(from, end)));
    from = end;
  }
  if (past) threadLines[Math.ceil(grid / wide)].classList.add("mv-store-guarded");
  const threadBlock = block("threads", "threads", ...threadLines, ...(past ? [make("div", { class: "mv-store-note" }, "✕ past the guard")] : []));

  const sources = new Map(), sourceLines = new Map(), sourceParts = [];
  if (first > 0) sourceParts.push(make("div", { class: "mv-store-gone" }, make("i"), first === 1 ? "s0: left the window" : `s0 to s${number(first - 1)}: left the window`));
  for (let row = first; row <= last; row++) {
    const cells = Array.from({ length: wide }, (_, element) => {
      const made = cell(number(row * wide + element));
      sources.set(row * wide + element, made);
      return made;
    });
    const made = line(make("b", {}, `s${number(row)}`), cells);
    sourceLines.set(row, made);
    sourceParts.push(made);
  }
  const sourceBlock = block("source: the chunk", "source", ...sourceParts);

  const planes = told.map((launch) => {
    const { capacity, n_kv_heads: heads, head_dim: dims, head_major: byHead } = launch;
    const long = byHead ? dims : wide, cells = [], lines = [], marks = [];
    for (let at = 0; at < (capacity * wide) / long; at++) {
      const row = at % capacity, head = Math.floor(at / capacity);
      const made = Array.from({ length: long }, (_, x) => cell(at * long + x, { class: !byHead && x && x % dims === 0 ? "mv-store-next" : undefined }));
      const mark = make("b");
      cells.push(...made);
      marks.push(mark);
      lines.push(line(make("span", {}, byHead ? `head ${head}, row ${row}` : `row ${row}`), made, mark));
      if (byHead && head && !row) lines.at(-1).classList.add("mv-store-next");
    }
    const shape = byHead ? [heads, capacity, dims] : [capacity, wide];
    return { cells, lines, marks, long, box: block(`${launch.name}: ${shape.join(" x ")}`, "plane", ...lines) };
  });

  // ---- what the kernel is told, and the index arithmetic with the thread's numbers
  const given = make("div", { class: "mv-store-told" });
  for (const [i, launch] of told.entries()) {
    const same = i > 0 && launch.kernel === told[0].kernel;
    if (same) continue;
    const alike = told.filter((other) => other.kernel === launch.kernel);
    given.append(make("p", {}, make("b", {}, launch.kernel), " is told ", ...Object.keys(launch.scalars).flatMap((name, k) => {
      const values = [...new Set(alike.map((other) => number(other.scalars[name])))];
      return [k ? " " : "", make("span", {}, make("code", {}, name), " ", make("b", {}, values.join(" or ")), k < Object.keys(launch.scalars).length - 1 ? "," : "")];
    })));
  }
  const sums = make("div", { class: "mv-store-sums" });

  /** [name, formula, numbers] of a thread, as the kernels' files write them. */
  function arithmetic(thread) {
    const lines = [], entries = tables.map((table) => table[thread]);
    told.forEach(({ kernel, scalars: s, name, capacity, head_dim: dims, head_major: byHead }, i) => {
      const [of, cell] = told.length > 1 ? [name, "cell = "] : ["cell", ""], e = entries[i], one = "write_index" in s;
      if (i === 0 || kernel !== told[0].kernel) {
        const index = one ? "element" : "thread_index", limit = one ? "kv_dim" : "source_count * kv_dim";
        const bound = one ? wide : `${s.source_count} * ${wide}`;
        lines.push(thread < grid
          ? ["guard", `${index} < ${limit}`, `${thread} < ${bound}, stores`]
          : ["guard", `${index} >= ${limit}`, `${thread} >= ${bound}, returns`]);
        if (thread >= grid) return;
        if (!one) {
          const age = (s.start_position + e.source_row - s.origin_logical + WORDS) % WORDS;
          lines.push(
            ["source_row", "source_first + thread_index / kv_dim", `${number(s.source_first)} + ${thread} / ${wide} = ${number(e.source_row)}`],
            ["element", "thread_index % kv_dim", `${thread} % ${wide} = ${e.element}`],
            ["age", "start_position + source_row - origin_logical", `${number(s.start_position)} + ${number(e.source_row)} - ${number(s.origin_logical)} = ${number(age)}`],
            ["physical", "(origin_physical + age) % capacity", `(${number(s.origin_physical)} + ${number(age)}) % ${capacity} = ${e.row}`]);
        }
      }
      if (thread >= grid) return;
      const head = Math.floor(e.element / dims), dim = e.element % dims;
      if (one) lines.push([of, cell + "write_index * kv_dim + element", `${s.write_index} * ${wide} + ${e.element} = ${e.cell}`]);
      else if (byHead) {
        lines.push(["kv_head, dim", "element / head_dim, % head_dim", `${e.element} / ${dims} = ${head}, ${e.element} % ${dims} = ${dim}`],
          [of, cell + "(kv_head * capacity + physical) * head_dim + dim", `(${head} * ${capacity} + ${e.row}) * ${dims} + ${dim} = ${e.cell}`]);
      } else lines.push([of, cell + "physical * kv_dim + element", `${e.row} * ${wide} + ${e.element} = ${e.cell}`]);
    });
    const e = entries[0];
    if (thread >= grid) return lines;
    const one = "write_index" in told[0].scalars;
    if (!one) lines.push(["source", "source_row * kv_dim + element", `${number(e.source_row)} * ${wide} + ${e.element} = ${number(e.source)}`]);
    const places = entries.length > 1 ? entries.map((entry) => `[${entry.cell}]`).join(" or ") : `key_cache[${e.cell}]`;
    lines.push(["K; V alike", `key_cache[cell] = key[${one ? "element" : "source"}]`, `${places} = key[${number(e.source)}]`]);
    return lines;
  }

  const arrows = make("svg:svg", { class: "mv-store-arrows", "aria-hidden": "true" });
  const flow = make("div", { class: "mv-store-flow" }, threadBlock, sourceBlock);
  const all = make("div", { class: "mv-store-all" }, make("div", { class: "mv-store-left" }, flow, sums, given),
    make("div", { class: "mv-store-planes" }, ...planes.map((plane) => plane.box)), arrows);
  v.picture.append(all);
  v.listen(all, "click", (event) => {
    const thread = event.target.closest("[data-thread]");
    if (thread) to(Number(thread.dataset.thread));
  });

  /** What the thread of a step computes; before and after, what a dispatch is. */
  function fill(at) {
    const now = at >= 0 && at < count;
    const who = !now ? (at < 0 ? "before the dispatch" : "the whole dispatch") : `thread ${at}${at >= grid ? " ✕ does nothing" : ""}`;
    const note = at < 0
      ? "No thread has run. Step takes them one at a time, to be seen; a GPU runs them at once, in no order."
      : `All ${count} at once, in no order: each thread's index and the scalars say which element it copies, and to which cell.`;
    const lines = now
      ? make("div", {}, ...arithmetic(at).flatMap(([name, formula, numbers]) => [make("span", {}, name), make("code", {}, formula), make("b", {}, numbers)]))
      : make("p", {}, note);
    sums.replaceChildren(make("p", { class: "mv-store-who" }, who), lines);
  }

  /** The text in the largest size, 1 em or, on the full screen, more, at which the picture is not cut. */
  let fitted = "";
  function fit() {
    const key = `${v.full} ${v.root.clientWidth} ${v.full ? innerHeight : 0}`;
    if (key === fitted) return;
    fitted = key;
    v.root.dataset.narrow = v.root.clientWidth < 34 * parseFloat(getComputedStyle(v.root).fontSize) ? "yes" : "no";
    sums.style.minHeight = "";
    fill(0); // the longest: the room for it is kept
    const enough = () => all.scrollWidth <= v.picture.clientWidth && (!v.full || all.offsetHeight <= v.picture.clientHeight);
    for (let scale = v.full ? 2.4 : 1; scale > 0.45; scale -= 0.05) {
      all.style.fontSize = `${scale}em`;
      if (enough()) break;
    }
    if (v.root.dataset.narrow === "no") sums.style.minHeight = `${sums.offsetHeight / parseFloat(getComputedStyle(sums).fontSize)}em`;
  }

  const ends = (made) => { // of a line's cells: left, right and middle, in the picture
    const box = all.getBoundingClientRect(), cells = made.querySelectorAll("i");
    const from = (made.firstElementChild ?? made).getBoundingClientRect(), right = cells[cells.length - 1].getBoundingClientRect();
    return { left: from.left - box.left, right: right.right - box.left, y: right.top + right.height / 2 - box.top };
  };
  const arrow = (from, till, attributes) => {
    const [x0, x1] = [from.right + 3, till.left - 3], bend = Math.min(40, (x1 - x0) / 2), tip = attributes.marked ? 9 : 6;
    return [
      make("svg:path", { d: `M${x0} ${from.y}C${x0 + bend} ${from.y} ${x1 - bend - tip} ${till.y} ${x1 - tip} ${till.y}`, fill: "none", class: attributes.marked ? "mv-store-mark" : "", stroke: attributes.stroke }),
      make("svg:path", { d: `M${x1} ${till.y}l${-tip} ${-tip / 2}v${tip}z`, class: attributes.marked ? "mv-store-mark" : "", fill: attributes.stroke }),
    ];
  };

  /** An arrow from each line of threads that ran to its source row, and on to each line of a plane that it wrote. */
  function drawArrows(at) {
    const made = [], beside = ends(sourceLines.get(first)).left > ends(threadLines[0]).right;
    const onward = planes.every((plane) => ends(plane.lines[0]).left > ends(sourceLines.get(first)).right);
    const drawn = new Set(), till = Math.min(at, grid - 1);
    for (let thread = till; thread >= 0; thread--) { // the marked one first: it is put on top below
      const marked = thread === at;
      const source = sourceLines.get(tables[0][thread].source_row);
      const put = (name, from, to) => {
        if (drawn.has(name)) return;
        drawn.add(name);
        made.unshift(...arrow(ends(from), ends(to), { marked, stroke: marked ? undefined : colourOf(tables[0][thread].source_row) }));
      };
      if (beside) put(`t${Math.floor(thread / wide)}`, threadLines[Math.floor(thread / wide)], source);
      if (onward) planes.forEach((plane, i) => {
        const there = Math.floor(tables[i][thread].cell / plane.long);
        put(`${i} ${there} ${tables[0][thread].source_row}`, source, plane.lines[there]);
      });
    }
    arrows.replaceChildren(...made);
  }

  /** The sentence that the package prints. */
  function sentence(at) {
    if (at < 0) return `start: ${count} threads, nothing stored`;
    if (at >= count) return `all at once: ${grid} threads store, ${past} past the guard do nothing`;
    const stored = `${Math.min(at + 1, grid)} of ${grid} elements stored`;
    if (at >= grid) return `thread ${at}: ${at} >= ${grid}, past the guard, it does nothing; ${stored}`;
    const e = tables[0][at];
    const cells = told.map((launch, i) => `${launch.name} cell ${tables[i][at].cell}`).join(", ");
    return `thread ${at}: source row ${e.source_row}, element ${e.element} (source ${e.source}) -> row ${e.row}, ${cells}; ${stored}`;
  }

  function draw() {
    const at = step(), now = at >= 0 && at < count ? at : -1, said = sentence(at);
    const entry = now >= 0 && now < grid ? tables[0][now] : null;
    const paint = (element, colour, name) => {
      element.style.background = colour ?? "";
      element.className = [element.classList.contains("mv-store-next") && "mv-store-next", colour && "mv-store-held", name].filter(Boolean).join(" ");
    };
    threads.forEach((element, thread) => {
      const ran = thread <= at, guarded = thread >= grid;
      paint(element, ran && !guarded ? colourOf(tables[0][thread].source_row) : null, [guarded && "mv-store-idle", thread === now && "mv-store-now"].filter(Boolean).join(" "));
    });
    for (const [source, element] of sources) {
      const read = source - first * wide <= at && at >= 0;
      paint(element, read ? colourOf(Math.floor(source / wide)) : null, entry?.source === source ? "mv-store-now" : "");
    }
    planes.forEach((plane, i) => {
      const by = new Map(tables[i].slice(0, Math.min(at + 1, grid)).map((e) => [e.cell, e]));
      plane.cells.forEach((element, place) => {
        const held = by.get(place);
        paint(element, held ? colourOf(held.source_row) : null, entry && tables[i][now].cell === place ? "mv-store-now" : "");
      });
      plane.marks.forEach((mark, k) => {
        const from = [...by.values()].find((e) => Math.floor(e.cell / plane.long) === k);
        mark.textContent = from ? `← s${number(from.source_row)}` : "";
      });
      plane.box.setAttribute("aria-label", `${told[i].name} plane, ${plane.cells.length} cells; written: ${[...by.keys()].sort((a, b) => a - b).join(" ") || "none"}`);
    });
    threadBlock.setAttribute("aria-label", `${count} threads, ${past} past the guard`);
    sourceBlock.setAttribute("aria-label", `source rows ${number(first)} to ${number(last)} of the chunk`);
    slider.value = at;
    slider.setAttribute("aria-valuetext", said);
    v.able("back", at >= 0);
    v.able("step", at < count);
    v.able("all", at < count);
    v.root.dataset.step = at;
    v.say(said);
    fit();
    fill(at);
    drawArrows(at);
  }

  v.start();
  return v.end;
}

export default { render };
