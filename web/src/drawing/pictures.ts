// Pictures and their numbers as files: a part of the page is taken as it is seen, and a matrix or a search is drawn
// once more, since of a large one only a part is seen.

import { depth } from "./cells";
import type { Curve } from "../run/curves";
import { rowOf, type Grid } from "./numbers";
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
  const lines = rows.map((name, r) => [name, ...Array.from(rowOf(grid, r), (value) => Number(value.toPrecision(4)))]);
  return csv([["", ...columns], ...lines]);
}

/** An SVG of the page with what its style sheets say of it. */
function styled(drawing: SVGSVGElement): SVGSVGElement {
  const made = drawing.cloneNode(true) as SVGSVGElement;
  const [theirs, ours] = [drawing, made].map((one) => [one, ...one.querySelectorAll("*")]);
  ours?.forEach((element, i) => {
    const style = getComputedStyle(theirs?.[i] as Element);
    for (const name of [...OF_PAGE, ...[...element.attributes].map((one) => one.name).filter((one) => one.startsWith("data-"))]) element.removeAttribute(name);
    for (const name of STYLED) {
      const value = style.getPropertyValue(name);
      if (value && value !== "none") element.setAttribute(name, value.replace(/px$/, ""));
      else if (name === "fill") element.setAttribute(name, "none");
    }
  });
  return made;
}

/** What of a part of the page is not in a file of it. */
const UNSEEN = ".hidden, .saves, [data-unsaved], details:not([open]) > :not(summary)";
let pixel: CanvasRenderingContext2D | null = null;

/** A colour that style sheets have made, as files have it, and how much of it there is. */
function inkOf(colour: string): { fill: string; "fill-opacity": number } {
  pixel ??= document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  if (!pixel) return { fill: colour, "fill-opacity": 1 };
  pixel.clearRect(0, 0, 1, 1);
  pixel.fillStyle = colour;
  pixel.fillRect(0, 0, 1, 1);
  const [r = 0, g = 0, b = 0, a = 0] = pixel.getImageData(0, 0, 1, 1).data;
  return { fill: css([r, g, b]), "fill-opacity": Number((a / 255).toFixed(3)) };
}

/** A text of the page, a mark for each of its lines. */
function lettersOf(node: Text, outer: DOMRect): SVGElement[] {
  const style = getComputedStyle(node.parentElement as Element);
  const look = { ...inkOf(style.color), "font-size": parseFloat(style.fontSize), "font-weight": style.fontWeight, "dominant-baseline": "central" };
  const lines: { at: DOMRect; words: string[] }[] = [];
  for (const { 0: word, index } of node.data.matchAll(/\S+/g)) {
    const range = document.createRange();
    range.setStart(node, index);
    range.setEnd(node, index + word.length);
    const at = range.getBoundingClientRect();
    const last = lines.at(-1);
    if (last && Math.abs(last.at.top - at.top) < 2) last.words.push(word);
    else if (at.width) lines.push({ at, words: [word] });
  }
  return lines.map(({ at, words }) => text(words.join(" "), { x: at.left - outer.left, y: at.top - outer.top + at.height / 2, ...look }));
}

function marksOf(element: Element, outer: DOMRect): SVGElement[] {
  const style = getComputedStyle(element);
  if (element.matches(UNSEEN) || style.visibility === "hidden") return [];
  const placed = (box: DOMRect): Record<string, number> => ({ x: box.left - outer.left, y: box.top - outer.top, width: box.width, height: box.height });
  const box = placed(element.getBoundingClientRect());
  if (element instanceof HTMLCanvasElement) {
    return [shape("image", { ...box, href: element.toDataURL(), preserveAspectRatio: "none", "image-rendering": "pixelated" })];
  }
  if (element instanceof SVGSVGElement) {
    const made = styled(element);
    for (const [name, value] of Object.entries(box)) made.setAttribute(name, String(value));
    return [made];
  }
  const ink = inkOf(style.backgroundColor);
  const behind = ink["fill-opacity"] ? [...element.getClientRects()].map((one) => shape("rect", { ...placed(one), rx: parseFloat(style.borderRadius) || 0, ...ink })) : [];
  const inside = [...element.childNodes].flatMap((node) => (node instanceof Text ? lettersOf(node, outer) : node instanceof Element ? marksOf(node, outer) : []));
  if (style.opacity === "1") return [...behind, ...inside];
  const faint = shape("g", { opacity: style.opacity });
  faint.append(...behind, ...inside);
  return [faint];
}

const HEAD = 28;

/** What is seen of a part of the page under a title, as a file that looks the same without the page. */
export function seenSvg(part: Element | undefined, title: string): string {
  if (!part) return "";
  const outer = part.getBoundingClientRect();
  const group = shape("g", { transform: `translate(0 ${HEAD})` });
  group.append(...[...part.childNodes].flatMap((node) => (node instanceof Text ? lettersOf(node, outer) : node instanceof Element ? marksOf(node, outer) : [])));
  return saved([group], { width: part.scrollWidth || outer.width, height: outer.height + HEAD + 6 }, title);
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

/** A matrix, a square for each number, under the colours of the page: another ink below zero. */
export function gridSvg(grid: Grid, rows: readonly string[], columns: readonly string[], reach: number, title: string): string {
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
    const opacity = Number((Number.isNaN(value) ? 0 : depth(value, reach, false)).toFixed(3));
    marks.push(shape("rect", { ...place, width: CELL - 1, height: CELL - 1, fill: css(value < 0 ? series[1] : accent), "fill-opacity": opacity }));
  });
  return saved(marks, { width, height }, title);
}

/** An element of SVG, which the page draws and a file holds. */
export interface Mark {
  tag: "rect" | "path" | "text";
  has: Record<string, string | number>;
  text?: string;
}

/** A drawing under its title. */
export function marksSvg(marks: readonly Mark[], width: number, height: number, title: string): string {
  const drawing = shape("g", { transform: "translate(0 30)" });
  drawing.append(...marks.map(({ tag, has, text: content }) => (content ? text(content, has) : shape(tag, has))));
  return saved([drawing], { width, height: height + 30 }, title);
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
