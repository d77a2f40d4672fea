import { describe, expect, test } from "vitest";
import { Format } from "../src/page/format";
import type { UiLanguage } from "../src/page/texts";
import { fromFloats, fromHalves, greatest, joined, rowOf } from "../src/drawing/numbers";
import { smoothed } from "../src/run/curves";
import { cases } from "./random";

class Written extends Format {
  constructor(readonly language: UiLanguage) {
    super();
  }
}
const english = new Written("en");
const korean = new Written("ko");
const base64 = (values: ArrayBufferView): string => Buffer.from(values.buffer).toString("base64");

test("every half-precision number is the 32-bit number with the same bits in place", () => {
  const bits = Uint16Array.from({ length: 65_536 }, (_, i) => i);
  // The exponent of a 32-bit number is greater by 112; a product with 2^112 moves it there, numbers below 2^-14 too.
  const moved = Uint32Array.from(bits, (half) => ((half & 0x8000) << 16) | ((half & 0x7fff) << 13));
  const wanted = new Float32Array(moved.buffer).map((value) => value * 2 ** 112);
  const told = fromHalves(base64(bits));
  bits.forEach((half, i) => {
    if ((half & 0x7c00) !== 0x7c00) expect(told[i], half.toString(16)).toBe(wanted[i]);
    else if (half & 0x3ff) expect(told[i]).toBeNaN();
    else expect(told[i]).toBe(half & 0x8000 ? -Infinity : Infinity);
  });
  expect([...fromFloats(base64(Float32Array.of(0.1, -3)))]).toEqual([Math.fround(0.1), -3]);
});

test.each(cases(50))("weights of words are those of their pieces, and rows still sum to one (%#)", (chance) => {
  const words = (count: number): number[] => {
    let word = 0;
    return Array.from({ length: count }, (_, i) => (i && chance.below(2) ? ++word : word));
  };
  const [rowWord, columnWord] = [words(1 + chance.below(9)), words(1 + chance.below(9))];
  const [rows, columns] = [rowWord.length, columnWord.length];
  const values = new Float32Array(rows * columns).map(() => 1 + chance.below(100));
  for (let r = 0; r < rows; r++) {
    const row = values.subarray(r * columns, (r + 1) * columns);
    const sum = row.reduce((a, b) => a + b, 0);
    row.forEach((value, c) => (row[c] = value / sum));
  }
  const whole = joined({ rows, columns, values }, rowWord, columnWord);
  expect([whole.rows, whole.columns]).toEqual([new Set(rowWord).size, new Set(columnWord).size]);
  for (let r = 0; r < whole.rows; r++) {
    expect(rowOf(whole, r).reduce((a, b) => a + b, 0)).toBeCloseTo(1, 5);
    rowOf(whole, r).forEach((weight, c) => {
      const mine = rowWord.flatMap((word, i) => (word === r ? [i] : []));
      const sums = mine.map((i) => columnWord.reduce((sum, word, j) => sum + (word === c ? (values[i * columns + j] ?? 0) : 0), 0));
      expect(weight).toBeCloseTo(sums.reduce((a, b) => a + b, 0) / mine.length, 5);
    });
  }
});

test("the greatest of no numbers is zero", () => {
  expect(greatest(new Float32Array())).toBe(0);
  expect(joined({ rows: 0, columns: 0, values: new Float32Array() }, [], [])).toMatchObject({ rows: 0, columns: 0 });
});

describe("numbers as they are written", () => {
  test.each([
    [0, "0%"], [0.004, "< 1%"], [0.0051, "< 1%"], [0.01, "1%"], [0.5, "50%"], [0.994, ">\u00a099%"], [0.9999, "> 99%"], [1, "100%"],
  ])("a share of %s as %s", (share, wanted) => {
    const bare = (text: string): string => text.replace(/\s/g, " ");
    expect(bare(korean.percent(share))).toBe(bare(wanted));
    expect(bare(english.percent(share))).toBe(bare(wanted).replace("%", " %"));
  });

  test.each([
    [0, "0"], [0.01234, "0.0123"], [-0.5, "−0.5"], [1234.5, "1,235"], [1_230_000, "1.2M"], [2e-7, "2 × 10⁻⁷"], [1e-12, "10⁻¹²"], [-3.4e-5, "−3.4 × 10⁻⁵"],
  ])("three digits of %s that count: %s", (value, wanted) => {
    expect(english.significant(value).replace(/\s/g, " ")).toBe(wanted);
  });

  test("what rounds to zero has no sign", () => {
    expect(english.number(-0.001, 2)).toBe("0.00");
    expect(english.signed(-0.001, 2)).toBe("0.00");
    expect(english.signed(2, 1)).toBe("+2.0");
  });

  test.each(["3.25", "1,234", "−0.50", "+1.5", "24"])("a number of the server is the same in English: %s", (text) => {
    expect(english.rewritten(text)).toBe(text);
  });

  test.each(["2 of 3", "v1.2.3", "", "1.2.3", "0x1f", "--minutes 9"])("what is no number stays as it is: %s", (text) => {
    expect(english.rewritten(text)).toBe(text);
  });

  test.each([
    [[0, 0.001, 0.002], ["0", "0.001", "0.002"]],
    [[0.0005, 0.001, 0.0015, 0.002], ["0.0005", "0.0010", "0.0015", "0.0020"]],
    [[0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"]],
    [[0, 400_000, 800_000, 1_200_000], ["0", "400K", "800K", "1.2M"]],
    [[1e-5, 1e-4], ["10⁻⁵", "10⁻⁴"]],
  ])("an axis is written in one way: %j", (values, wanted) => {
    expect(english.axis(values).map((text) => text.replace("\u00a0", " "))).toEqual(wanted);
  });

  test("rows and columns of a cell are counted from one", () => {
    expect(english.cell(0, 7)).toEqual(["1", "1"]);
    expect(english.cell(13, 7)).toEqual(["2", "7"]);
  });
});

describe("a smoothed curve", () => {
  test.each(cases(20))("stays between the least and the greatest of what it smooths (%#)", (chance) => {
    const y = Array.from({ length: 40 }, () => chance.below(1000) / 100);
    const x = y.map((_, i) => i * i);
    const out = smoothed({ name: "", x, y }, 0.9);
    out.forEach((value, i) => {
      expect(value).toBeGreaterThanOrEqual(Math.min(...y.slice(0, i + 1)) - 1e-9);
      expect(value).toBeLessThanOrEqual(Math.max(...y.slice(0, i + 1)) + 1e-9);
    });
    expect(out[0]).toBeCloseTo(y[0] ?? 0, 9);
  });

  test("is the mean with weights that fall by β", () => {
    expect(smoothed({ name: "", x: [0, 1, 2], y: [1, 2, 4] }, 0.5)[2]).toBeCloseTo((4 + 2 * 0.5 + 0.25) / 1.75, 9);
    expect(smoothed({ name: "", x: [5], y: [3] }, 0.5)).toEqual([3]);
  });
});
