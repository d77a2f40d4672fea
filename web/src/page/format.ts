// How the page writes numbers, in the canvas as in the text: one way for each language.

export type Language = "en" | "ko";

/** What stands behind a figure in percent: it never begins a line of its own. */
const PERCENT = { en: "\u00a0%", ko: "%" };

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** With a real minus, as wide as the digits and never at the end of a line. */
function local(value: number, language: Language, options: Intl.NumberFormatOptions): string {
  return value.toLocaleString(language, { signDisplay: "negative", ...options }).replace("-", "−");
}

/** With a fixed number of digits behind the point. What rounds to zero has no sign. */
export function number(value: number, language: Language, digits = 0): string {
  return local(value, language, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** With a sign before what is above zero too. */
export function signed(value: number, language: Language, digits = 0): string {
  return local(value, language, { minimumFractionDigits: digits, maximumFractionDigits: digits, signDisplay: "exceptZero" });
}

/** A number that the server wrote out, with as many digits behind the point; other text as it is. */
export function rewritten(text: string, language: Language): string {
  if (!/^[-+−]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?$/.test(text)) return text;
  const value = Number(text.replaceAll(",", "").replace("−", "-"));
  if (text.includes("e")) return significant(value, language);
  const digits = text.split(".")[1]?.length ?? 0;
  return (text.startsWith("+") ? signed : number)(value, language, digits);
}

/** A unit as the server writes it behind a number. */
export function unit(text: string, language: Language): string {
  return text.trim() === "%" ? PERCENT[language] : text;
}

function compact(value: number, language: Language): string {
  return local(value, language, { notation: "compact", maximumFractionDigits: 1 });
}

/** As a multiple of a power of ten: 2 × 10⁻⁷, and 10⁻³ for 1 × 10⁻³. */
function power(value: number, language: Language): string {
  const [digits = "", exponent = ""] = value.toExponential(1).split("e");
  const raised = [...exponent.replace("+", "")].map((one) => (one === "-" ? "⁻" : SUPERSCRIPTS[Number(one)])).join("");
  const [factor, ten] = [Number(digits), number(10, language)];
  if (factor === 1) return `${ten}${raised}`;
  return `${number(factor, language, factor % 1 ? 1 : 0)}\u00a0×\u00a0${ten}${raised}`;
}

const MANY = 1e6;
const TINY = 1e-4;

/** Three digits that count, for cells and what is read out: 0.0123, 1,230, 1.2M, 2 × 10⁻⁷. */
export function significant(value: number, language: Language): string {
  const size = Math.abs(value);
  if (size >= MANY) return compact(value, language);
  if (size >= 1e3) return number(value, language);
  if (size >= TINY || !size) return local(value, language, { maximumSignificantDigits: 3 });
  return power(value, language);
}

/** The numbers of one axis, all written in one way: none as 10⁻⁵ beside 0.0001, or 1.2M beside 800,000;
    and where steps are even, with equal digits: 0.0020 above 0.0015. */
export function axis(values: number[], language: Language): string[] {
  const sizes = values.map(Math.abs).filter(Boolean);
  const digits = evenDigits(values);
  const even = (value: number): string => number(value, language, digits ?? 0);
  const small = digits === null ? significant : even;
  const write = sizes.some((size) => size < TINY) ? power : Math.max(0, ...sizes) >= MANY ? compact : small;
  return values.map((value) => (value ? write(value, language) : number(0, language)));
}

/** Digits behind the point that numbers with equal steps between them need; null where steps differ. */
function evenDigits(values: number[]): number | null {
  const steps = values.slice(1).map((value, i) => value - (values[i] ?? 0));
  const [least, most] = [Math.min(...steps), Math.max(...steps)];
  if (steps.length < 2 || most - least > 1e-6 * Math.abs(most)) return null;
  return Math.max(...values.map((value) => String(Number(value.toPrecision(6))).split(".")[1]?.length ?? 0));
}

/** A share of one. Without digits nothing that is possible is 0 %, and nothing that is not certain 100 %. */
export function percent(share: number, language: Language, digits?: number): string {
  const [value, sign] = [share * 100, PERCENT[language]];
  if (digits !== undefined) return number(value, language, digits) + sign;
  if (value > 99 && value < 100) return `>\u00a0${number(99, language)}${sign}`;
  if (value > 0 && value < 1) return `<\u00a0${number(1, language)}${sign}`;
  return number(value, language) + sign;
}
