import { stage, make, number, unpack, viridis } from "./stage.js";

const NAMES_OF = ["token-major", "head-major"];
const WALKED = 4; // elements a second, in play

function render({ model, el }) {
  const { capacity, n_kv_heads: heads, head_dim: dims } = model.get("sizes");
  const wide = heads * dims, size = capacity * wide;
  // of each layout, token-major first: the offset of each element of each row, <u4
  const packed = unpack(model.get("offsets"), Uint32Array);
  const offset = (by, at) => packed[by * size + at.row * wide + at.element];
  const lying = NAMES_OF.map(() => new Array(size)); // of each layout, of each offset: the element there
  for (let row = 0; row < capacity; row++) {
    for (let element = 0; element < wide; element++) {
      NAMES_OF.forEach((_, by) => { lying[by][offset(by, { row, element })] = { row, element }; });
    }
  }

  // ---- the pick, and what the pointer is over, which is shown in its place while it is there
  let over = null;
  const pick = () => ({ row: model.get("row"), element: model.get("element") });
  const inside = ({ row, element }) => row >= 0 && row < capacity && element >= 0 && element < wide;
  const take = (at) => {
    if (!at || !inside(at)) return false;
    over = null;
    v.set("row", at.row);
    v.set("element", at.element);
    v.redraw();
    return true;
  };
  const by = () => (model.get("walk") === NAMES_OF[1] ? 1 : 0);
  const onward = (count) => take(lying[by()][offset(by(), pick()) + count]);
  const moved = (rows, elements) => take({ row: pick().row + rows, element: pick().element + elements });

  const v = stage({ model, el }, {
    name: "layout",
    label: `A plane of ${capacity} rows in both layouts`,
    state: ["row", "element", "walk"],
    actions: [
      { name: "back", keys: ["PageUp"], does: "the element before in memory", act: () => onward(-1), button: "Back" },
      { name: "step", keys: ["PageDown"], does: "the next element in memory", act: () => onward(1), button: "Next in memory" },
      { name: "play", keys: [" "], does: "walk through memory, pause", act: () => v.play(), button: "Play" },
      { name: "walk", keys: ["m"], does: "walk the other layout's memory", act: () => v.set("walk", NAMES_OF[1 - by()]), button: "Walk" },
      { name: "left", keys: ["ArrowLeft"], does: "the element before in the row (in a grid: the cell to the left)", act: () => moved(0, -1) },
      { name: "right", keys: ["ArrowRight"], does: "the next element of the row (in a grid: the cell to the right)", act: () => moved(0, 1) },
      { name: "up", keys: ["ArrowUp"], does: "the row before (in a grid: the cell above)", act: () => moved(-1, 0) },
      { name: "down", keys: ["ArrowDown"], does: "the next row (in a grid: the cell below)", act: () => moved(1, 0) },
      { name: "first", keys: ["Home"], does: "to offset 0", act: () => take(lying[by()][0]) },
      { name: "last", keys: ["End"], does: "to the last offset", act: () => take(lying[by()][size - 1]) },
    ],
    draw,
  });
  v.plays(() => onward(1), WALKED, () => { if (offset(by(), pick()) === size - 1) take(lying[by()][0]); });

  // ---- the two grids: each buffer in its own shape, memory runs along a line, then to the next
  const cells = [[], []], strips = [[], []];
  const grids = NAMES_OF.map((name, layout) => {
    const long = layout ? dims : wide, shape = layout ? [heads, capacity, dims] : [capacity, wide];
    const grid = make("div", { role: "grid", class: "mv-layout-grid", "aria-label": `${name}: ${shape.join(" x ")}`, style: `--long:${long}` });
    if (!layout) {
      grid.append(make("div", { role: "row", class: "mv-layout-line" }, make("span", { role: "columnheader" }),
        ...Array.from({ length: heads }, (_, head) => make("span", { role: "columnheader", "aria-colspan": dims, class: "mv-layout-head", style: `--dims:${dims}` }, `head ${head}`))));
    }
    for (let line = 0; line < size / long; line++) {
      const row = line % capacity, head = Math.floor(line / capacity);
      const parts = Array.from({ length: long }, (_, x) => {
        const at = line * long + x, { element } = lying[layout][at];
        const cell = make("span", {
          role: "gridcell", tabindex: -1, "data-arrows": true, "data-layout": layout, "data-offset": at,
          class: !layout && x && x % dims === 0 ? "mv-layout-next" : undefined,
          "aria-label": `offset ${at}: row ${row}, element ${element}, KV head ${Math.floor(element / dims)}, dim ${element % dims}`,
        }, String(at));
        cells[layout].push(cell);
        return cell;
      });
      grid.append(make("div", { role: "row", class: `mv-layout-line ${layout && head && !row ? "mv-layout-next" : ""}` },
        make("span", { role: "rowheader" }, layout ? `head ${head}, row ${row}` : `row ${row}`), ...parts));
    }
    v.listen(grid, "keydown", (event) => {
      const { key, target } = event;
      if (!key.startsWith("Arrow") || !target.matches("[data-offset]") || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      v.warn("");
      const at = Number(target.dataset.offset), x = at % long;
      if (key === "ArrowUp" || key === "ArrowDown") take(lying[layout][at + (key === "ArrowUp" ? -long : long)]);
      else if (key === "ArrowLeft" ? x > 0 : x < long - 1) take(lying[layout][at + (key === "ArrowLeft" ? -1 : 1)]);
    });
    return make("div", { class: "mv-layout-plane" }, make("p", { class: "mv-layout-title" }, `${name}: ${shape.join(" x ")}`), grid);
  });
  const formulas = NAMES_OF.map(() => ({ numbers: make("b"), terms: make("span") }));
  const written = ["physical * kv_dim + element", "(kv_head * capacity + physical) * head_dim + dim"];
  const explained = make("div", { class: "mv-layout-formulas" }, ...formulas.map(({ numbers, terms }, layout) =>
    make("p", {}, make("i", {}, `${NAMES_OF[layout]}: `), make("code", {}, written[layout]), numbers, terms)));

  // ---- the two buffers as memory, one under the other, a line from the element in one to it in the other
  const captions = NAMES_OF.map(() => make("p", { class: "mv-layout-spans" }));
  const hops = NAMES_OF.map(() => make("svg:svg", { viewBox: `0 0 ${size} 4`, preserveAspectRatio: "none", class: "mv-layout-hops", "aria-hidden": "true" }));
  const bars = NAMES_OF.map((_, layout) => {
    const bar = make("div", { class: "mv-layout-strip", role: "img" });
    for (let at = 0; at < size; at++) {
      const cell = make("i", { "data-layout": layout, "data-offset": at });
      strips[layout].push(cell);
      bar.append(cell);
    }
    return bar;
  });
  const between = make("svg:line", { y1: 0, y2: 10, class: "mv-layout-same" });
  const same = make("svg:svg", { viewBox: `0 0 ${size} 10`, preserveAspectRatio: "none", class: "mv-layout-between", "aria-hidden": "true" }, between);
  const memory = make("div", { class: "mv-layout-memory" }, // what can wrap is under the strips, which stay where the pointer is
    make("b", {}, "token-major as memory"), hops[0], bars[0], same, bars[1], hops[1], make("b", {}, "head-major as memory"), ...captions);
  const planes = make("div", { class: "mv-layout-planes" }, make("div", { class: "mv-layout-left" }, grids[0], explained), grids[1]);
  const all = make("div", { class: "mv-layout-all" }, planes, memory);
  v.picture.append(all);

  // ---- the pointer
  const found = (event) => {
    const cell = event.target.closest("[data-offset]");
    return cell ? lying[cell.dataset.layout][cell.dataset.offset] : null;
  };
  let where = "";
  v.listen(v.picture, "pointermove", (event) => {
    const here = `${event.clientX} ${event.clientY}`;
    if (event.pointerType === "touch" || here === where) return; // a page that moves under it is no move
    where = here;
    const at = found(event);
    if (!at && !over) return;
    if (at && over && at.row === over.row && at.element === over.element) return;
    over = at;
    v.redraw();
  });
  v.listen(v.picture, "pointerleave", () => { if (over) { over = null; v.redraw(); } });
  v.listen(v.picture, "click", (event) => {
    const at = found(event);
    if (at) take(at);
  });

  /** All rows of a KV head as spans of memory: first offset, and elements. */
  const spans = (layout, head) => {
    if (layout) return [[head * capacity * dims, capacity * dims]];
    if (heads === 1) return [[0, size]];
    return Array.from({ length: capacity }, (_, row) => [row * wide + head * dims, dims]);
  };
  const spanned = (layout, head) => {
    const runs = spans(layout, head);
    return `KV head ${head} is ${counted(runs.length, "span")}: ${runs.map(([first, count]) => `${first} to ${first + count - 1}`).join(", ")}`;
  };

  /** The text in the largest size, 1 em or, on the full screen, more, at which the picture is not cut. */
  let fitted = "";
  function fit() {
    const key = `${v.full} ${v.root.clientWidth} ${v.full ? innerHeight : 0}`;
    if (key === fitted) return;
    fitted = key;
    for (let scale = v.full ? 2.4 : 1; scale > 0.45; scale -= 0.05) {
      all.style.fontSize = `${scale}em`;
      if (planes.scrollWidth <= planes.clientWidth && (!v.full || all.offsetHeight <= v.picture.clientHeight)) return;
    }
  }

  const counted = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;
  const few = (count, what) => `the ${count === 1 ? "" : `${count} `}${what}${count === 1 ? "" : "s"} before it`;

  function draw() {
    const at = over ?? pick(), { row, element } = at;
    const head = Math.floor(element / dims), dim = element % dims, line = head * capacity + row;
    const offsets = [offset(0, at), offset(1, at)];
    const focused = v.root.contains(document.activeElement) && document.activeElement.matches("[role=gridcell]") ? Number(document.activeElement.dataset.layout) : -1;
    NAMES_OF.forEach((_, layout) => {
      lying[layout].forEach((there, place) => {
        const ofHead = Math.floor(there.element / dims) === head, chosen = place === offsets[layout];
        for (const cell of [cells[layout][place], strips[layout][place]]) {
          cell.classList.toggle("mv-layout-of", ofHead);
          cell.classList.toggle("mv-layout-e", chosen);
        }
        cells[layout][place].setAttribute("aria-selected", String(chosen));
        cells[layout][place].tabIndex = chosen ? 0 : -1;
      });
      if (focused === layout && !over) cells[layout][offsets[layout]].focus({ preventScroll: true });
    });
    const numbers = [
      `${row} * ${wide} + ${element} = ${row * wide} + ${element} = ${offsets[0]}`,
      `(${head} * ${capacity} + ${row}) * ${dims} + ${dim} = ${line * dims} + ${dim} = ${offsets[1]}`,
    ];
    const terms = [
      `${row * wide}: ${row ? few(row, "row") : "no row before it"}; ${element}: in the row`,
      `${head * capacity * dims}: ${head ? few(head, "head") : "no head before it"}; ${row * dims}: ${row ? `its head's ${row === 1 ? "row" : `${row} rows`} before it` : "no row of its head before it"}; ${dim}: in that row`,
    ];
    formulas.forEach((parts, layout) => {
      parts.numbers.textContent = numbers[layout];
      parts.terms.textContent = terms[layout];
      const said = spanned(layout, head), step = layout ? dims : wide;
      captions[layout].replaceChildren(make("b", {}, `${NAMES_OF[layout]}: `), `${said}. Row to row: ${step}${step > dims ? `, ${step - dims} of them not the head's` : ", nothing between"}`);
      bars[layout].setAttribute("aria-label", `${NAMES_OF[layout]} as memory, ${size} elements: the element at ${offsets[layout]}; ${said}`);
      hops[layout].replaceChildren(...Array.from({ length: capacity - 1 }, (_, from) => {
        const [x, y] = [offset(layout, { row: from, element: head * dims }), offset(layout, { row: from + 1, element: head * dims })].map((o) => o + 0.5);
        return make("svg:path", { d: layout ? `M${x} 0Q${(x + y) / 2} 7 ${y} 0` : `M${x} 4Q${(x + y) / 2} -3 ${y} 4`, fill: "none" });
      }));
    });
    between.setAttribute("x1", offsets[0] + 0.5);
    between.setAttribute("x2", offsets[1] + 0.5);
    const walked = offset(by(), pick());
    v.able("back", walked > 0);
    v.able("step", walked < size - 1);
    v.buttons.walk.textContent = `Walks: ${NAMES_OF[by()]}`;
    v.root.dataset.walk = NAMES_OF[by()];
    Object.assign(v.root.dataset, { row, element, over: over ? "yes" : "no" });
    const held = [0, 1].map((layout) => counted(spans(layout, head).length, "span"));
    v.say(`row ${row}, element ${element}: KV head ${head}, dim ${dim} (E); token-major ${numbers[0]}; head-major ${numbers[1]}; all rows of KV head ${head} (hatched): ${held[0]} of token-major memory, ${held[1]} of head-major`);
    fit();
  }

  v.start();
  return v.end;
}

export default { render };
