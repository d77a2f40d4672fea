// How the page writes numbers, in the canvas as in the text: one way for each language.

import type { UiLanguage } from "./texts";

/** What stands behind a figure in percent: it never begins a line of its own. */
const PERCENT = { en: "\u00a0%", ko: "%" };

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const MANY = 1e6;
const TINY = 1e-4;

export abstract class Format {
  abstract readonly language: UiLanguage;

  /** With a real minus, as wide as the digits and never at the end of a line. */
  #local(value: number, options: Intl.NumberFormatOptions): string {
    return value.toLocaleString(this.language, { signDisplay: "negative", ...options }).replace("-", "−");
  }

  /** With a fixed number of digits behind the point. What rounds to zero has no sign. */
  number(value: number, digits = 0): string {
    return this.#local(value, { minimumFractionDigits: digits, maximumFractionDigits: digits });
  }

  /** With a sign before what is above zero too. */
  signed(value: number, digits = 0): string {
    return this.#local(value, { minimumFractionDigits: digits, maximumFractionDigits: digits, signDisplay: "exceptZero" });
  }

  /** A number that the server wrote out, with as many digits behind the point; other text as it is. */
  rewritten(text: string): string {
    if (!/^[-+−]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?$/.test(text)) return text;
    const value = Number(text.replaceAll(",", "").replace("−", "-"));
    if (text.includes("e")) return this.significant(value);
    const digits = text.split(".")[1]?.length ?? 0;
    return text.startsWith("+") ? this.signed(value, digits) : this.number(value, digits);
  }

  /** A unit as the server writes it behind a number. */
  unit(text: string): string {
    return text.trim() === "%" ? PERCENT[this.language] : text;
  }

  /** Row and column of a cell, from 1, where so many stand in a row. */
  cell(place: number, columns: number): [string, string] {
    return [this.number(Math.floor(place / columns) + 1), this.number((place % columns) + 1)];
  }

  compact(value: number): string {
    return this.#local(value, { notation: "compact", maximumFractionDigits: 1 });
  }

  /** As a multiple of a power of ten: 2 × 10⁻⁷, and 10⁻³ for 1 × 10⁻³. */
  #power(value: number): string {
    const [digits = "", exponent = ""] = value.toExponential(1).split("e");
    const raised = [...exponent.replace("+", "")].map((one) => (one === "-" ? "⁻" : SUPERSCRIPTS[Number(one)])).join("");
    const [factor, ten] = [Number(digits), this.number(10)];
    if (factor === 1) return `${ten}${raised}`;
    return `${this.number(factor, factor % 1 ? 1 : 0)}\u00a0×\u00a0${ten}${raised}`;
  }

  /** Three digits that count, for cells and what is read out: 0.0123, 1,230, 1.2M, 2 × 10⁻⁷. */
  significant(value: number): string {
    const size = Math.abs(value);
    if (size >= MANY) return this.compact(value);
    if (size >= 1e3) return this.number(value);
    if (size >= TINY || !size) return this.#local(value, { maximumSignificantDigits: 3 });
    return this.#power(value);
  }

  /** The numbers of one axis, all written in one way: none as 10⁻⁵ beside 0.0001, or 1.2M beside 800,000;
      and where steps are even, with equal digits: 0.0020 above 0.0015. */
  axis(values: number[]): string[] {
    const sizes = values.map(Math.abs).filter(Boolean);
    const digits = evenDigits(values);
    const write = (value: number): string => {
      if (!value) return this.number(0);
      if (sizes.some((size) => size < TINY)) return this.#power(value);
      if (Math.max(0, ...sizes) >= MANY) return this.compact(value);
      return digits === null ? this.significant(value) : this.number(value, digits);
    };
    return values.map(write);
  }

  /** As many digits behind the point as show the first two of `greatest`, or `least`. */
  enough(greatest: number, least: number): number {
    if (!greatest) return least;
    return Math.max(least, Math.min(9, 1 - Math.floor(Math.log10(greatest))));
  }

  /** A share of one. Without digits nothing that is possible is 0 %, and nothing that is not certain 100 %. */
  percent(share: number, digits?: number): string {
    const [value, sign] = [share * 100, PERCENT[this.language]];
    if (digits !== undefined) return this.number(value, digits) + sign;
    if (value > 99 && value < 100) return `>\u00a0${this.number(99)}${sign}`;
    if (value > 0 && value < 1) return `<\u00a0${this.number(1)}${sign}`;
    return this.number(value) + sign;
  }
}

/** Digits behind the point that numbers with equal steps between them need; null where steps differ. */
function evenDigits(values: number[]): number | null {
  const steps = values.slice(1).map((value, i) => value - (values[i] ?? 0));
  const [least, most] = [Math.min(...steps), Math.max(...steps)];
  if (steps.length < 2 || most - least > 1e-6 * Math.abs(most)) return null;
  return Math.max(...values.map((value) => String(Number(value.toPrecision(6))).split(".")[1]?.length ?? 0));
}
