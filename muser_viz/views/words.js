import { make, number } from "./stage.js";
// Two words of f16 or f32 numbers: as bits, hex, decimal, and how far apart.

const FIELDS = { 16: { exponent: 5, digits: 5 }, 32: { exponent: 8, digits: 9 } };
const view = new DataView(new ArrayBuffer(4));

/** The number that a word of 16 or 32 bits is. */
export const floatOf = (word, width) => {
  view.setUint32(0, word);
  if (width === 32) return view.getFloat32(0);
  const sign = word >> 15 ? -1 : 1, exponent = (word >> 10) & 31, mantissa = word & 1023;
  if (exponent === 31) return mantissa ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + mantissa / 1024) : mantissa * 2 ** -24);
};

// x > 0 rounded to so many decimals of its mantissa, ties to even, as Python rounds.
const rounded = (x, digits) => {
  const long = x.toExponential(100), end = long.indexOf("e"), cut = digits + 2;
  const tie = /^50*$/.test(long.slice(cut, end)) && "02468".includes(long[cut - 1]);
  const [mantissa, exponent] = (tie ? long.slice(0, cut) + long.slice(end) : x.toExponential(digits)).split("e");
  return [mantissa, Number(exponent)];
};
const raised = (exponent) => `e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;

/** A size in two digits: 2.5e-07. */
export const power = (x) => {
  if (!Number.isFinite(x)) return "inf";
  const [mantissa, exponent] = rounded(x, 1);
  return mantissa + raised(exponent);
};

/** A number in so many digits, without trailing zeros. */
const decimal = (x, digits) => {
  if (Number.isNaN(x)) return "nan";
  const sign = x < 0 || Object.is(x, -0) ? "-" : "";
  if (!Number.isFinite(x)) return `${sign}inf`;
  if (x === 0) return `${sign}0`;
  const [mantissa, exponent] = rounded(Math.abs(x), digits - 1);
  const bare = mantissa.replace(/0+$/, "").replace(".", "");
  if (exponent < -4 || exponent >= digits) return sign + bare[0] + (bare.length > 1 ? `.${bare.slice(1)}` : "") + raised(exponent);
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${bare}`;
  const whole = bare.padEnd(exponent + 1, "0");
  return sign + whole.slice(0, exponent + 1) + (whole.length > exponent + 1 ? `.${whole.slice(exponent + 1)}` : "");
};

const hexOf = (word, width) => `0x${word.toString(16).padStart(width / 4, "0")}`;
const rank = (word, width) => {
  const half = 2 ** (width - 1);
  return word >= half ? half - word : word;
};

/** How many representable numbers lie between two words; null where one is a NaN. */
const ulpOf = (a, b, width) =>
  Number.isNaN(floatOf(a, width)) || Number.isNaN(floatOf(b, width)) ? null : Math.abs(rank(a, width) - rank(b, width));

const flippedOf = (a, b) => [...((a ^ b) >>> 0).toString(2)].filter((bit) => bit === "1").length;

/** The sentence of two words; the package prints the same. */
export const pairText = (names, index, a, b, width) => {
  const [one, two] = [a, b].map((word) => `${hexOf(word, width)} = ${decimal(floatOf(word, width), FIELDS[width].digits)}`);
  const count = flippedOf(a, b), ulp = ulpOf(a, b, width);
  if (!count) return `word ${number(index)}: ${one}, the same bits in ${names[0]} and ${names[1]}`;
  const bits = count === 1 ? "1 bit differs" : `${count} bits differ`;
  const apart = ulp === null
    ? "no distance: a NaN lies on no number line"
    : `${number(ulp)} ULP, ${power(Math.abs(floatOf(a, width) - floatOf(b, width)))} apart`;
  return `word ${number(index)}: ${names[0]} ${one}, ${names[1]} ${two}; ${bits}, ${apart}`;
};

// ±1.25 × 2^-7, or what the word is instead
const parts = (word, width) => {
  const { exponent: bits, digits } = FIELDS[width], fraction = width - 1 - bits, bias = 2 ** (bits - 1) - 1;
  const sign = word >= 2 ** (width - 1) ? "−" : "+";
  const exponent = Math.floor(word / 2 ** fraction) % 2 ** bits, mantissa = word % 2 ** fraction;
  if (exponent === 2 ** bits - 1) return [mantissa ? "not a number" : `${sign}infinity`];
  if (!exponent && !mantissa) return [`${sign}zero`];
  const lead = decimal((exponent ? 1 : 0) + mantissa / 2 ** fraction, digits);
  return [`${sign}${lead} × 2`, make("sup", {}, String((exponent || 1) - bias).replace("-", "−"))];
};

/** Two words one under the other, bit by bit; bits that differ are lit. show(names, index, a, b, width) */
export const pairTable = () => {
  const bits = make("div", { class: "mv-pair-bits", role: "img" });
  const values = make("table", { class: "mv-pair-values" });
  const element = make("div", { class: "mv-pair" }, bits, values);
  const show = (names, index, a, b, width) => {
    const text = [a, b].map((word) => word.toString(2).padStart(width, "0"));
    const { exponent } = FIELDS[width];
    bits.setAttribute("aria-label", `word ${number(index)}, sign, exponent, mantissa: ${text.map((t, i) =>
      `${names[i]} ${t[0]} ${t.slice(1, 1 + exponent)} ${t.slice(1 + exponent)}`).join(", ")}`);
    bits.replaceChildren(...[["sign", 0, 1], ["exponent", 1, 1 + exponent], ["mantissa", 1 + exponent, width]].map(([field, from, to]) =>
      make("div", { class: `mv-pair-field mv-pair-${field}` },
        make("span", { class: "mv-pair-head" }, field),
        ...names.map((name, i) => make("div", { class: "mv-pair-row" },
          make("span", { class: "mv-pair-name", title: name }, name),
          ...[...text[i].slice(from, to)].map((bit, k) =>
            make("i", text[0][from + k] === text[1][from + k] ? {} : { class: "mv-pair-lit" }, bit)))))));
    values.replaceChildren(...[a, b].map((word, i) => make("tr", {},
      make("th", { scope: "row" }, names[i]), make("td", {}, hexOf(word, width)),
      make("td", {}, decimal(floatOf(word, width), FIELDS[width].digits)), make("td", {}, ...parts(word, width)))));
  };
  return { element, show, ulpOf };
};
