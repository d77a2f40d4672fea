// Pictures and their numbers as files: what is drawn as SVG is taken as it is seen, and what is
// drawn on canvas is drawn once more, so that it stays sharp at any size.

import { pathOf, type Marks, type Size } from "../look/beam_drawing";
import { depth } from "./cells";
import type { Curve } from "../run/curves";
import type { Grid } from "./numbers";
import { css, palette } from "./palette.svelte";

const SVG = "http://www.w3.org/2000/svg";
/** What the page's style sheets say of a drawing; a file has none of them. */
const STYLED = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity",
  "font-family", "font-size", "font-weight", "font-variant-numeric", "text-anchor",
];
/** What only a page has a use for. */
const OF_PAGE = ["class", "tabindex", "role", "aria-label", "style"];

/** A row of numbers or words, with what CSV wants quoted. */
function row(cells: readonly (string | number)[]): string {
  return cells.map((one) => (/[",\r\n]/.test(String(one)) ? `"${String(one).replaceAll('"', '""')}"` : String(one))).join(",");
}

/** A table as CSV. */
export function csv(rows: readonly (readonly (string | number)[])[]): string {
  return `${rows.map(row).join("\n")}\n`;
}

/** Every point of curves: as measured, and smoothed where they are. `names`: of each curve. */
export function curvesCsv(xName: string, drawn: readonly Curve[], names: readonly string[]): string {
  const rows = drawn.flatMap((curve, i) =>
    curve.x.map((x, k) => [names[i] ?? "", x, (curve.raw ?? curve.y)[k] ?? "", curve.raw ? (curve.y[k] ?? "") : ""]),
  );
  const isSmoothed = drawn.some((curve) => curve.raw);
  return csv([["curve", xName, "value", "smoothed"], ...rows].map((cells) => (isSmoothed ? cells : cells.slice(0, 3))));
}

/** A matrix under the names of its columns, each row behind its own. */
export function gridCsv(grid: Grid, rows: readonly string[], columns: readonly string[]): string {
  const lines = rows.map((name, r) => [
    name,
    ...Array.from(grid.values.subarray(r * grid.columns, (r + 1) * grid.columns), (value) => Number(value.toPrecision(4))),
  ]);
  return csv([["", ...columns], ...lines]);
}

/** What the page says beside a drawing: what it is called, and which line is what. */
export interface Heading {
  title: string;
  lines: readonly { name: string; colour: string; dashes: string }[];
}

/** What is drawn, as a file that looks the same without the page. */
export function drawnSvg(drawing: SVGSVGElement, heading?: Heading): string {
  const made = drawing.cloneNode(true) as SVGSVGElement;
  const [theirs, ours] = [drawing, made].map((one) => [one, ...one.querySelectorAll("*")]);
  ours?.forEach((element, i) => {
    const style = getComputedStyle(theirs?.[i] as Element);
    for (const name of [...OF_PAGE, ...[...element.attributes].map((one) => one.name).filter((one) => one.startsWith("data-"))]) element.removeAttribute(name);
    for (const name of STYLED) {
      const value = style.getPropertyValue(name);
      if (value && value !== "none") element.setAttribute(name, value);
      else if (name === "fill") element.setAttribute(name, "none");
    }
  });
  const above = heading ? headed(heading, drawing) : { marks: [], height: 0 };
  const [width, height] = [drawing.width.baseVal.value, drawing.height.baseVal.value + above.height];
  const [top, whole] = [-above.height, { x: 0, width, height }];
  made.setAttribute("viewBox", `0 ${top} ${width} ${height}`);
  made.setAttribute("height", String(height));
  made.insertBefore(shape("rect", { ...whole, y: top, fill: css(palette.colours.raised) }), made.firstChild);
  made.append(...above.marks);
  return new XMLSerializer().serializeToString(made);
}

const [HEAD, SAMPLE] = [20, 26];

/** Rows above a drawing, from its upper edge upwards: the title, and under it the names of the lines. */
function headed({ title, lines }: Heading, drawing: SVGSVGElement): { marks: SVGElement[]; height: number } {
  const { ink, font } = palette.colours;
  const most = drawing.width.baseVal.value - 10;
  let [x, row] = [10, 1];
  const places = lines.map(({ name }) => {
    const needed = SAMPLE + 6 + name.length * LETTER + 14;
    if (x > 10 && x + needed > most) [x, row] = [10, row + 1];
    const place = { x, row };
    x += needed;
    return place;
  });
  const rows = lines.length ? row + 1 : 1;
  const height = rows * HEAD + 8;
  const y = (at: number): number => -height + (at + 1) * HEAD - 4;
  const style = { "font-size": LETTERS, "font-family": font, fill: css(ink), "text-anchor": "start" };
  const marks = [text(title, { ...style, x: 10, y: y(0), "font-weight": 600 })];
  lines.forEach(({ name, colour, dashes }, i) => {
    const { x = 10, row = 1 } = places[i] ?? {};
    const series = /^var\(--series-(\d)\)$/.exec(colour)?.[1];
    const drawn = series ? css(palette.colours.series[Number(series)] ?? ink) : colour;
    const sample = { x1: x, x2: x + SAMPLE, y1: y(row) - 4, y2: y(row) - 4, stroke: drawn, "stroke-width": 2 };
    marks.push(shape("line", dashes ? { ...sample, "stroke-dasharray": dashes } : sample));
    marks.push(text(name, { ...style, x: x + SAMPLE + 6, y: y(row) }));
  });
  return { marks, height };
}

/** Marks under a title, as a file. */
export function saved(marks: readonly SVGElement[], { width, height }: { width: number; height: number }, title: string): string {
  const { ink, raised, font } = palette.colours;
  const wide = Math.max(width, title.length * LETTER + 20);
  const svg = shape("svg", { width: wide, height, viewBox: `0 0 ${wide} ${height}`, "font-size": LETTERS, "font-family": font, fill: css(ink) });
  svg.append(shape("rect", { width: wide, height, fill: css(raised) }), text(title, { x: 10, y: 18, "font-weight": 600 }), ...marks);
  return new XMLSerializer().serializeToString(svg);
}

const CELL = 26;
const LETTERS = 12;
const LETTER = 7.2; // pixels of one, on average: enough for the room that names need

/** A matrix, a square for each number, under the colours of the page: another ink below zero. `depthOf`: how
    much colour a number has, where that is not its share of `reach`. */
export function gridSvg(
  grid: Grid, rows: readonly string[], columns: readonly string[], reach: number, title: string,
  depthOf: (value: number) => number = (value) => depth(value, reach, false),
): string {
  const { accent, series } = palette.colours;
  const longest = (names: readonly string[]): number => Math.max(0, ...names.map((name) => name.length)) * LETTER;
  const left = Math.ceil(longest(rows)) + 14;
  const top = Math.ceil(longest(columns) * Math.SQRT1_2) + 40;
  const width = left + grid.columns * CELL + Math.ceil(longest(columns.slice(-1)) * Math.SQRT1_2) + 10;
  const height = top + grid.rows * CELL + 10;
  const marks = columns.map((name, c) => {
    const [x, y] = [left + (c + 0.5) * CELL, top - 6];
    return text(name, { x, y, transform: `rotate(-45 ${x} ${y})` });
  });
  rows.forEach((name, r) => marks.push(text(name, { x: left - 6, y: top + (r + 0.5) * CELL + 4, "text-anchor": "end" })));
  grid.values.forEach((value, i) => {
    const place = { x: left + (i % grid.columns) * CELL, y: top + Math.floor(i / grid.columns) * CELL };
    const opacity = Number((Number.isNaN(value) ? 0 : depthOf(value)).toFixed(3));
    marks.push(shape("rect", { ...place, width: CELL - 1, height: CELL - 1, fill: css(value < 0 ? series[1] : accent), "fill-opacity": opacity }));
  });
  return saved(marks, { width, height }, title);
}

const BAR_ROW = 34;
const BAR_WIDTH = 360;

/** Things and how probable each is, as bars from 0 to 1; `told`: the number as it is shown. */
export function barsSvg(bars: readonly { name: string; probability: number; told: string }[], title: string): string {
  const width = BAR_WIDTH + 20;
  const marks = bars.flatMap(({ name, probability, told }, i) => {
    const y = 34 + i * BAR_ROW;
    return [
      text(name, { x: 10, y: y + 12 }),
      text(told, { x: width - 10, y: y + 12, "text-anchor": "end" }),
      shape("rect", { x: 10, y: y + 18, width: Math.max(2, probability * BAR_WIDTH), height: 4, rx: 2, fill: css(palette.colours.accent) }),
    ];
  });
  return saved(marks, { width, height: 34 + bars.length * BAR_ROW }, title);
}

/** The tree of a search under its title. */
export function marksSvg({ lines, letters }: Marks, size: Size, title: string): string {
  const { colours } = palette;
  const tree = shape("g", { transform: "translate(0 30)" });
  for (const line of lines) {
    const { ink: of, alpha, width: thick, isDashed } = line;
    const dashes: Record<string, string> = isDashed ? { "stroke-dasharray": "2 3" } : {};
    tree.append(shape("path", { d: pathOf(line), fill: "none", stroke: css(colours[of], alpha), "stroke-width": thick, ...dashes }));
  }
  for (const { at, text: content, size: letter, weight, ink: of } of letters) {
    const place = { x: at[0], y: at[1], "dominant-baseline": "central" };
    tree.append(text(content, { ...place, "font-size": letter, "font-weight": weight, fill: css(colours[of]) }));
  }
  return saved([tree], { width: size.width, height: size.height + 30 }, title);
}

export function shape(name: string, attributes: Record<string, string | number>): SVGElement {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}

export function text(content: string, attributes: Record<string, string | number>): SVGElement {
  const made = shape("text", attributes);
  made.textContent = content;
  return made;
}
