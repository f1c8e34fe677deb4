import { stage, make, number, unpack, viridis } from "./stage.js";

function render({ model, el }) {
  const s = stage({ model, el }, { name: "exercise", label: `Exercise: ${model.get("asked")}`, state: ["verdict", "unfolded"], draw });
  const solution = make("details", {}, make("summary", {}, "Show a solution"), make("pre", {}, make("code", {}, model.get("solution"))));
  s.picture.append(make("p", { class: "mv-asked" }, make("b", {}, "Exercise:"), ` ${model.get("asked")}`));
  s.root.insertBefore(solution, s.bar);
  s.listen(solution, "toggle", () => s.set("unfolded", solution.open));

  function draw() {
    const verdict = model.get("verdict");
    s.root.dataset.verdict = verdict === "right" ? "right" : verdict.startsWith("not yet") ? "not" : "none";
    solution.open = model.get("unfolded");
    s.say(verdict);
  }
  s.start();
  return s.end;
}

export default { render };
