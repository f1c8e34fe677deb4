// What JupyterLab does for the views, in a page without a kernel: a model for each, and its module run in its place.

const { models } = JSON.parse(document.querySelector("script#mv-models").textContent);

class Model {
  #values;
  #heard = new Map();

  constructor(values) {
    this.#values = values;
  }

  get(name) {
    return this.#values[name];
  }

  set(name, value) {
    const given = typeof name === "object" ? name : { [name]: value };
    for (const [key, now] of Object.entries(given)) {
      if (Object.is(this.#values[key], now)) continue;
      this.#values[key] = now;
      this.#tell(`change:${key}`, now);
      this.#tell("change");
    }
  }

  on(events, act) {
    for (const event of events.split(" ")) this.#heard.set(event, [...(this.#heard.get(event) ?? []), act]);
  }

  off(events, act) {
    if (!events) this.#heard.clear();
    for (const event of events?.split(" ") ?? []) {
      this.#heard.set(event, (this.#heard.get(event) ?? []).filter((other) => act && other !== act));
    }
  }

  save_changes() {} // there is nobody to tell

  send() {
    throw new Error("This page has no kernel: open the lesson in JupyterLab (muser-viz lab) to go on.");
  }

  #tell(event, value) {
    for (const act of this.#heard.get(event) ?? []) act(this, value);
  }
}

const bytes = (base64) => new DataView(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)).buffer);

const made = {};
async function model(id) {
  const { view, state, buffers } = models[id];
  for (const [path, data] of buffers) {
    const inside = path.slice(0, -1).reduce((value, key) => value[key], state);
    inside[path.at(-1)] = bytes(data);
  }
  const found = globalThis.muserViews?.[view];
  const front = typeof found === "function" ? await found() : found;
  const of = new Model(state);
  await front.initialize?.({ model: of });
  return { front, of };
}

for (const place of document.querySelectorAll("[data-model]")) {
  const still = [...place.childNodes], el = document.createElement("div");
  place.append(el);
  try {
    const { front, of } = await (made[place.dataset.model] ??= model(place.dataset.model));
    await front.render({ model: of, el });
    for (const node of still) node.remove();
  } catch (error) {
    el.textContent = `This view did not start: ${error?.message ?? error}`;
  }
}
document.documentElement.dataset.views = "started";
