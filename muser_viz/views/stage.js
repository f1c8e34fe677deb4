// What every view shares: its frame, keys, full screen, theme, motion, what is said and what went wrong.

const SVG = "http://www.w3.org/2000/svg";

/** A number as the chapter prints it. */
export const number = (value) => Number(value).toLocaleString("en-US");

/** The bytes of a trait as a typed array. */
export const unpack = (data, Type) => {
  if (!data) return new Type(0);
  const buffer = data.buffer ? data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength) : data.slice(0);
  return new Type(buffer);
};

/** An element: "button", or "svg:path"; attributes, then children; what is undefined is left out. */
export const make = (tag, attributes = {}, ...children) => {
  const [space, name] = tag.startsWith("svg:") ? [SVG, tag.slice(4)] : [null, tag];
  const element = space ? document.createElementNS(space, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children);
  return element;
};

const STOPS = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37]];

/** Viridis, 0 (dark) to 1 (light), as [red, green, blue]. */
export const viridis = (at) => {
  const x = Math.min(0.9999, Math.max(0, at)) * (STOPS.length - 1), i = Math.floor(x);
  return STOPS[i].map((c, k) => Math.round(c + (STOPS[i + 1][k] - c) * (x - i)));
};

const THEMED = ["ink", "paper", "faint", "edge", "empty", "write", "front", "mark", "second"];

/**
 * The frame of a view, put into el.
 *
 * actions: [{ name, keys, does, act, button }]: one table for keys, help and (where button is a label) buttons.
 * An act that returns false had nowhere to go: in full screen a clicker then goes on to the next view.
 * draw(): draws the present state of the model; called at the start, on every change of a name in `state`,
 * and after a change of theme, size or screen.
 */
export function stage({ model, el }, { name, label, actions = [], state = [], draw }) {
  const over = new AbortController();
  const motion = matchMedia("(prefers-reduced-motion: reduce)"), dark = matchMedia("(prefers-color-scheme: dark)");
  const root = make("div", { class: `mv mv-${name}`, tabindex: 0, role: "group", "aria-label": label, "data-lm-suppress-shortcuts": true });
  const picture = make("div", { class: "mv-picture" });
  const says = make("p", { class: "mv-says" });
  const heard = make("div", { class: "mv-heard", "aria-live": "polite", role: "status" });
  const alert = make("div", { class: "mv-alert", role: "alert", hidden: true });
  const bar = make("div", { class: "mv-bar", role: "toolbar", "aria-label": "Controls" });
  const help = make("div", { class: "mv-help", role: "dialog", "aria-label": "Keys", hidden: true });
  root.append(picture, says, bar, alert, heard, help);
  el.replaceChildren(root);

  const s = { root, picture, bar, model, colours: {}, signal: over.signal };
  Object.defineProperty(s, "full", { get: () => document.fullscreenElement === root });
  Object.defineProperty(s, "reduced", { get: () => motion.matches });

  /** Show a message where the reader looks; an empty one takes it away. */
  s.warn = (text) => { alert.textContent = text; alert.hidden = !text; };
  s.fail = (error) => s.warn(error?.message ?? String(error));
  /** fn, with its error shown in the widget. */
  s.guard = (fn) => (...given) => { try { return fn(...given); } catch (error) { s.fail(error); return undefined; } };
  s.listen = (target, type, fn, options = {}) => target.addEventListener(type, s.guard(fn), { signal: over.signal, ...options });

  let told = 0, waiting = 0;
  /** The sentence under the picture; a screen reader hears the last one, once a second at most. */
  s.say = (text) => {
    says.textContent = text;
    clearTimeout(waiting);
    const tell = () => { told = performance.now(); heard.textContent = text; };
    waiting = setTimeout(tell, Math.max(60, told + 1000 - performance.now()));
  };

  /** Change state in the browser alone: every display of this widget follows, and no byte goes to the kernel. */
  s.set = (name, value) => model.set(name, value);
  let drawn = 0; // the width that was drawn for; 0: none, as before the view is on the page
  const redraw = s.guard(() => {
    drawn = root.clientWidth;
    if (drawn) draw(s);
  });
  s.redraw = redraw;
  for (const key of state) model.on(`change:${key}`, () => { s.warn(""); redraw(); });

  const themed = () => {
    const style = getComputedStyle(root);
    for (const colour of THEMED) s.colours[colour] = style.getPropertyValue(`--mv-${colour}`).trim();
  };

  const leave = async () => { while (document.fullscreenElement) await document.exitFullscreen(); }; // those gone through too
  const toggle = () => {
    if (s.full) return leave();
    if (!root.requestFullscreen) throw new Error("this page does not allow full screen");
    return root.requestFullscreen().then(() => root.focus(), () => s.warn("the browser refused full screen for this page"));
  };
  const onward = (by) => {
    const views = [...document.querySelectorAll(".mv")].filter((view) => view.getClientRects().length || view === root);
    const next = views[views.indexOf(root) + by];
    if (!next) return s.warn(by > 0 ? "this is the last view of the page" : "this is the first view of the page");
    const whole = s.full;
    next.scrollIntoView({ block: "center" });
    next.focus();
    return whole ? next.requestFullscreen().then(() => next.focus(), () => s.warn("the browser refused full screen")) : undefined;
  };
  /** To the next stop of a speaker's tour, or back; false past its ends. */
  const toured = (by) => {
    const stops = model.get("stops"), at = Math.min(model.get("stop"), stops.length - 1) + by;
    if (at < 0 || at >= stops.length) return false;
    s.stop?.();
    s.set("stop", at);
    for (const [key, value] of Object.entries(stops[at])) s.set(key, value);
    return true;
  };
  const helped = (open = help.hidden) => { help.hidden = !open; (open ? help.querySelector("button") : root).focus(); };
  const again = () => {
    s.stop?.();
    root.classList.remove("mv-blank");
    if (!help.hidden) helped(false); // the focus was in it
    s.warn("");
    for (const [key, value] of Object.entries(model.get("began") ?? {})) s.set(key, value);
    redraw();
  };
  const shared = [
    { name: "again", keys: ["r"], does: "back to how this view began", act: again },
    { name: "full", keys: ["f"], does: "full screen, and back", act: toggle, button: "Full screen" },
    { name: "next", keys: ["n"], does: "the next view of the page", act: () => onward(1) },
    { name: "previous", keys: ["p"], does: "the view before", act: () => onward(-1) },
    { name: "blank", keys: ["b", "."], does: "blank the full screen, and back", act: () => s.full && root.classList.toggle("mv-blank") },
    { name: "keys", keys: ["?"], does: "this list", act: () => helped(), button: "Keys" },
  ];
  const all = [...actions, ...shared];
  s.buttons = {};
  for (const action of all) {
    if (!action.button) continue;
    const button = make("button", { type: "button", class: `mv-${action.name}`, title: `${action.does} (${shownKeys(action)})` }, action.button);
    s.listen(button, "click", () => { s.warn(""); action.act(); });
    s.buttons[action.name] = button;
    bar.append(button);
  }
  /** Play and pause: go() takes a step, and is false where none is left. A step a second where motion is reduced. */
  s.plays = (go, perSecond, begin = () => {}) => {
    let waiting = 0;
    const shown = () => {
      s.buttons.play.textContent = waiting ? "Pause" : "Play";
      root.dataset.playing = waiting ? "yes" : "no";
    };
    const wait = (ms) => { waiting = setTimeout(tick, ms); shown(); };
    const tick = s.guard(() => {
      waiting = 0;
      if (go() === false) shown();
      else wait(1000 / (s.reduced ? 1 : perSecond));
    });
    s.stop = () => { clearTimeout(waiting); waiting = 0; shown(); };
    s.play = () => { if (waiting) s.stop(); else { begin(); wait(300); } };
    shown();
  };
  /** A field that goes to one of 0 .. last, or says that there is no such one. */
  s.jump = (what, last, to) => {
    const field = make("input", { type: "number", min: 0, max: last, step: 1, "aria-label": what });
    s.listen(field, "change", () => {
      if (field.value === "") return;
      const wanted = Number(field.value);
      if (!Number.isInteger(wanted) || wanted < 0 || wanted > last) {
        throw new Error(`${what} ${field.value} was asked for; there are ${what}s 0 to ${number(last)}`);
      }
      s.warn("");
      to(wanted);
    });
    return make("label", {}, `to ${what}`, field);
  };
  /** Show whether a button has somewhere to go; it keeps the focus, so the keys go on working. */
  s.able = (name, can) => s.buttons[name].setAttribute("aria-disabled", String(!can));
  const close = make("button", { type: "button" }, "Close");
  s.listen(close, "click", () => helped(false));
  help.append(make("table", {}, make("caption", {}, "Keys"), make("tbody", {}, ...all.filter((a) => a.keys?.length).map((a) =>
    make("tr", {}, make("th", { scope: "row" }, shownKeys(a)), make("td", {}, a.does))))), close);

  s.listen(root, "keydown", (event) => {
    const { key, target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (key !== "Enter" || !event.shiftKey) event.stopPropagation(); // else JupyterLab cuts the cell at x, with a button focused
    if (key === "Escape" && !help.hidden) { helped(false); event.preventDefault(); return; }
    const by = { PageDown: 1, PageUp: -1 }[key];
    const action = all.find((a) => a.keys?.includes(key.length === 1 ? key.toLowerCase() : key));
    if (!action) {
      if (by && s.full) { s.warn(""); onward(by); } // nothing to step here, as in a form: a clicker goes on
      return;
    }
    if (target.matches("input:not([type=range]):not([type=checkbox]), select, textarea")) return;
    if (target.matches("button, summary") && (key === " " || key === "Enter")) return;
    if (target.matches("[data-arrows]") && key.startsWith("Arrow")) return;
    event.preventDefault();
    s.warn("");
    if (!by) { action.act(); return; }
    if ((model.get("stops")?.length ? toured(by) : action.act()) === false && s.full) onward(by);
  });

  const refresh = () => { themed(); redraw(); };
  let settled = 0; // a theme's style sheets can come in after its name
  const themes = new MutationObserver(() => { refresh(); clearTimeout(settled); settled = setTimeout(refresh, 300); });
  themes.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name"] });
  s.listen(dark, "change", refresh);
  s.listen(motion, "change", redraw);
  s.listen(root, "fullscreenchange", () => {
    root.classList.toggle("mv-full", s.full);
    root.classList.remove("mv-blank");
    s.buttons.full.textContent = s.full ? "Leave full screen" : "Full screen";
    requestAnimationFrame(redraw);
  });
  const sizes = new ResizeObserver(() => { if (root.clientWidth !== drawn) requestAnimationFrame(refresh); });
  sizes.observe(root);

  /** Whether the kernel that made this view is still there. */
  s.alive = true;
  const gone = () => {
    s.alive = false;
    root.dataset.kernel = "gone";
    s.stop?.();
    s.warn(`The kernel has gone. ${s.needsKernel ? "Run this cell again to go on." : "This view still works on what it holds; run its cell again to tie it to Python."}`);
  };
  model.on("comm_live_update", gone);
  model.on("msg:custom", s.guard((message, buffers) => {
    if (message.op === "error") s.warn(message.text);
    else s.received?.(message, buffers);
  }));

  s.start = refresh;
  s.end = () => {
    s.stop?.();
    clearTimeout(waiting);
    clearTimeout(settled);
    themes.disconnect();
    sizes.disconnect();
    over.abort();
  };
  return s;
}

const NAMES = { ArrowRight: "→", ArrowLeft: "←", ArrowUp: "↑", ArrowDown: "↓", " ": "Space", PageDown: "Page Down", PageUp: "Page Up" };

function shownKeys(action) {
  return (action.keys ?? []).map((key) => NAMES[key] ?? (key.length === 1 ? key.toUpperCase() : key)).join(", ");
}
