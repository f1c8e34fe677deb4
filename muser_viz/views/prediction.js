import { stage, make, number, unpack, viridis } from "./stage.js";

const NUMBER = /^[ \t\n\r\f\v]*([0-9]{1,18}|[0-9]{1,3}(,[0-9]{3}){1,5})[ \t\n\r\f\v]*$/; // as the package's own check

function render({ model, el }) {
  // [answer, reason] as JSON in UTF-8
  const [answer, why] = JSON.parse(new TextDecoder().decode(unpack(model.get("answer"), Uint8Array)));
  const choices = model.get("choices");

  /** What was given, as it is compared; throws where it is no answer. */
  const read = (given) => {
    if (choices.length) {
      if (!choices.includes(given)) throw new Error(`nothing was chosen; choose one of ${choices.join(", ")}`);
      return given;
    }
    if (!NUMBER.test(given)) throw new Error(`${given ? `'${given.slice(0, 40)}'` : "nothing"} was given; type a whole number, such as 12`);
    return String(BigInt(given.replaceAll(",", "").trim()));
  };
  const check = (event) => {
    event.preventDefault();
    s.warn("");
    s.set("graded", "");
    s.set("graded", read(model.get("given")));
  };

  const s = stage({ model, el }, { name: "prediction", label: `Predict: ${model.get("asked")}`, state: ["given", "graded"], draw });
  const asked = make("p", { class: "mv-asked" }, make("b", {}, "Predict:"), ` ${model.get("asked")}`);
  const button = make("button", { type: "submit" }, "Check");
  let show;
  const form = make("form", { class: "mv-form" }, asked);
  if (choices.length) {
    const radios = choices.map((choice) => make("input", { type: "radio", name: "given", value: choice }));
    form.append(make("div", { role: "radiogroup", "aria-label": model.get("asked") },
      ...choices.map((choice, i) => make("label", {}, radios[i], make("span", {}, choice)))), button);
    show = (given) => radios.forEach((radio, i) => { radio.checked = choices[i] === given; });
  } else {
    const field = make("input", { type: "text", inputmode: "numeric", autocomplete: "off", placeholder: "a whole number", "aria-label": model.get("asked") });
    form.append(make("div", { class: "mv-given" }, field, button));
    show = (given) => { if (field.value !== given) field.value = given; };
  }
  s.listen(form, "input", (event) => { s.set("given", event.target.value); s.set("graded", ""); });
  s.listen(form, "submit", check);
  // JupyterLab keeps Enter from submitting
  s.listen(form, "keydown", (event) => event.key === "Enter" && event.target.matches("input") && check(event));
  s.picture.append(form);

  function draw() {
    const graded = model.get("graded");
    show(model.get("given"));
    s.root.dataset.verdict = graded === "" ? "none" : graded === answer ? "right" : "not";
    s.say(graded === "" ? "" : `${graded === answer ? "Right" : `Not ${graded}`}: ${why}`);
  }
  s.start();
  return s.end;
}

export default { render };
