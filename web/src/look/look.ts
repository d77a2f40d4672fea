// One translation looked into: what the server tells of it, and how it is asked for more.

import type {
  CellAnswer,
  Head,
  HeadsAnswer as AnswerOfHeads,
  LookAnswer as AnswerOfLook,
  LookRequest as AskedOfLook,
  Maps,
  ModelInfo,
  StepCandidate,
  Weights,
  WordAnswer,
} from "$openapi";
import { call, post, type With } from "../page/api";
import { bytes, fromHalves, joined, type Grid } from "../drawing/numbers";

export const parts = ["encoder", "cross", "decoder"] as const;
export type Part = (typeof parts)[number];
export type Side = "source" | "target";
/** "words" joins the subword pieces that the model reads. */
export type Units = "words" | "pieces";
/** The most pieces of a word whose rows of numbers the server tells. */
export const MOST_PIECES = 50;

/** A request that stands on its own: what is empty is there too. */
export interface LookRequest extends With<AskedOfLook, "run" | "source" | "prefix_tokens" | "heads_off" | "hidden" | "compare"> {
  /** Which of its sentences; null: the text as one. */
  sentence: number | null;
}

export type Candidate = StepCandidate & { outcome: "kept" | "ended" | "dropped" };

/** What was asked for is there, and what OpenAPI calls by any text is called by a part. */
export interface LookAnswer extends Omit<With<AnswerOfLook, "choices">, "maps" | "model" | "steps"> {
  maps: Record<Part, Maps>;
  model: ModelInfo & { attentions: Record<Part, number[]> };
  steps: { place: number; candidates: Candidate[] }[];
}

/** A head; null: the mean of its layer's heads. */
export interface At {
  part: Part;
  layer: number;
  head: number | null;
}

export function isSame(one: At, other: At): boolean {
  return one.part === other.part && one.layer === other.layer && one.head === other.head;
}

/** A word or a piece that is pointed at. */
export interface Spot {
  side: Side;
  unit: number;
}

/** By how much log P of the translation falls without each head, by layer and head. */
export type HeadsAnswer = AnswerOfHeads & { fallen: Record<Part, number[][]> };

export interface Unit {
  text: string;
  /** Its first piece. */
  first: number;
  count: number;
}

/** A text that has been looked into up to here is sent whole; of a longer one, head by head. */
const WHOLE = 400_000;
const MAP = 56;
const CHOICES = 8;
const MOST_GRIDS = 40;

/** Every weight of one part: layers, heads, rows, columns. */
interface Whole {
  shape: Weights["shape"];
  values: Float32Array;
}

/** One answer, unpacked, with all that has been asked for since. */
export class Looking {
  readonly maps: Record<Part, { shape: Weights["shape"]; values: Uint8Array }>;
  readonly isWhole: boolean;
  readonly #whole = new Map<Part, Whole>();
  readonly #grids = new Map<string, Grid>();
  readonly #units = new Map<string, Unit[]>();

  constructor(
    readonly answer: LookAnswer,
    readonly request: LookRequest,
  ) {
    for (const part of parts) {
      const packed = answer.attention[part];
      if (packed) this.#whole.set(part, { shape: packed.shape, values: fromHalves(packed.data) });
    }
    this.isWhole = this.#whole.size === parts.length;
    const map = (part: Part) => ({ shape: answer.maps[part].shape, values: bytes(answer.maps[part].data) });
    this.maps = { encoder: map("encoder"), cross: map("cross"), decoder: map("decoder") };
  }

  /** Whether something was written: else the model said something of what it read. */
  get writes(): boolean {
    return this.answer.target_tokens.length > 0;
  }

  layers(part: Part): number {
    return this.answer.model.attentions[part].length;
  }

  /** Of each layer of a part. */
  heads(part: Part): number {
    return this.answer.model.attentions[part][0] ?? 0;
  }

  /** The parts in which this model has attention. */
  get parts(): Part[] {
    return parts.filter((part) => this.layers(part) > 0);
  }

  units(side: Side, units: Units): Unit[] {
    const key = `${side} ${units}`;
    const kept = this.#units.get(key);
    if (kept) return kept;
    const tokens = this.answer[`${side}_tokens`];
    const made = units === "words" ? wordsOf(tokens, this.answer[`${side}_words`]) : piecesOf(tokens);
    this.#units.set(key, made);
    return made;
  }

  /** The piece that was chosen for a word of the output: its first, but not a space by itself. */
  chosenPiece(unit: Unit): number {
    const isSpace = this.answer.target_tokens[unit.first] === "\u2581" && unit.count > 1;
    return isSpace ? unit.first + 1 : unit.first;
  }

  /** What the rows of a part are, and its columns. */
  axes(part: Part, units: Units): { rows: Unit[]; columns: Unit[] } {
    const source = this.units("source", units);
    const target = this.units("target", units);
    if (part === "encoder") return { rows: source, columns: source };
    if (part === "cross") return { rows: target, columns: source };
    const begin = { text: "<s>", first: -1, count: 1 };
    return { rows: target, columns: [begin, ...target.slice(0, -1)] };
  }

  /** The weights of a head, or the mean of a layer's heads that are on, if they are known already. */
  known(at: At, units: Units): Grid | null {
    const key = `${at.part} ${at.layer} ${at.head} ${units}`;
    const kept = this.#grids.get(key);
    if (kept) return kept;
    const pieces = units === "pieces" ? this.#cut(at) : this.known(at, "pieces");
    if (!pieces) return null;
    const grid = units === "pieces" ? pieces : this.#join(at.part, pieces);
    this.#keep(key, grid);
    return grid;
  }

  async grid({ part, layer, head }: At, signal: AbortSignal): Promise<void> {
    const which = { part, layer, ...(head === null ? { mean: true } : { head }) };
    const packed: Weights = await this.#ask("v1/look/attention", which, signal);
    const [, , rows, columns] = packed.shape;
    this.#keep(`${part} ${layer} ${head} pieces`, { rows, columns, values: fromHalves(packed.data) });
  }

  /** Ask for more of what was computed. */
  async #ask<Answer>(path: string, more: object, signal: AbortSignal): Promise<Answer> {
    return (await call(path, post({ ...this.request, ...more }, signal))).json();
  }

  word(side: Side, { first, count }: Unit, signal: AbortSignal): Promise<WordAnswer> {
    return this.#ask("v1/look/word", { side, first, count }, signal);
  }

  cell(at: Head, row: number, column: number, signal: AbortSignal): Promise<CellAnswer> {
    return this.#ask("v1/look/cell", { ...at, row, column }, signal);
  }

  importance(signal: AbortSignal): Promise<HeadsAnswer> {
    return this.#ask("v1/look/heads", {}, signal);
  }

  /** The heads of a layer that were at work when this was computed. */
  on(part: Part, layer: number): number[] {
    const { heads_off: off } = this.request;
    return [...Array(this.heads(part)).keys()].filter((head) => !off.some((other) => isSame(other, { part, layer, head })));
  }

  /** All heads times all tokens: how much work it is to switch off one after the other. */
  get work(): number {
    const heads = this.parts.reduce((sum, part) => sum + this.layers(part) * this.heads(part), 0);
    return heads * (this.answer.source_tokens.length + this.answer.target_tokens.length);
  }

  /** The pieces of a cell of words: of all pairs the one with the greatest weight. */
  pair(at: At, row: Unit, column: Unit): [number, number] {
    const grid = this.known(at, "pieces");
    const first = at.part === "decoder" ? column.first + 1 : column.first;
    let best: [number, number] = [row.first, first];
    let most = -1;
    for (let r = row.first; r < row.first + row.count; r++) {
      for (let c = first; c < first + column.count; c++) {
        const weight = grid?.values[r * grid.columns + c] ?? 0;
        if (weight > most) [best, most] = [[r, c], weight];
      }
    }
    return best;
  }

  /** The weights of a head, or the mean of those that are on, of a part that is whole. */
  #cut({ part, layer, head }: At): Grid | null {
    const whole = this.#whole.get(part);
    if (!whole) return null;
    const [, count, rows, columns] = whole.shape;
    const size = rows * columns;
    const of = (h: number): Float32Array => whole.values.subarray((layer * count + h) * size, (layer * count + h + 1) * size);
    if (head !== null) return { rows, columns, values: of(head) };
    const values = new Float32Array(size);
    const on = this.on(part, layer);
    for (const h of on) of(h).forEach((weight, i) => (values[i] = (values[i] as number) + weight / on.length));
    return { rows, columns, values };
  }

  #join(part: Part, grid: Grid): Grid {
    const { source_words: source, target_words: target } = this.answer;
    if (part === "encoder") return joined(grid, source, source);
    if (part === "cross") return joined(grid, target, source);
    return joined(grid, target, [0, ...target.slice(0, -1).map((word) => word + 1)]);
  }

  /** The grids of a long text are large: only the last ones are kept. */
  #keep(key: string, grid: Grid): void {
    this.#grids.set(key, grid);
    const most = this.isWhole ? 2000 : MOST_GRIDS;
    for (const old of this.#grids.keys()) {
      if (this.#grids.size <= most) break;
      this.#grids.delete(old);
    }
  }
}

export async function look(request: LookRequest, signal: AbortSignal): Promise<Looking> {
  const body = { ...request, attention_within: WHOLE, maps: MAP, choices: CHOICES };
  return new Looking(await (await call("v1/look", post(body, signal))).json(), request);
}

const START = "\u2581";
const BYTE = /^<0x([0-9A-F]{2})>$/;

/** Pieces as text: bytes as the characters that they are, and as pieces where they are none. */
export function spelled(pieces: string[]): string {
  let out = "";
  let open: string[] = [];
  const flush = (): void => {
    const bytes = new Uint8Array(open.map((piece) => parseInt(piece.slice(3, 5), 16)));
    const text = new TextDecoder().decode(bytes);
    out += text.includes("\uFFFD") ? open.join("") : text;
    open = [];
  };
  for (const piece of pieces) {
    if (BYTE.test(piece)) open.push(piece);
    else {
      flush();
      out += piece;
    }
  }
  flush();
  return out.replaceAll(START, " ").trim() || "␣";
}

function wordsOf(tokens: string[], words: number[]): Unit[] {
  const units: Unit[] = [];
  words.forEach((word, place) => {
    const unit = units[word];
    if (unit) unit.count++;
    else units[word] = { text: "", first: place, count: 1 };
  });
  for (const unit of units) unit.text = spelled(tokens.slice(unit.first, unit.first + unit.count));
  return units;
}

/** A word's first piece and a bracket of a tree bare, what continues a word after three dots; a byte
 *  as its character, if that is one by itself. */
export function pieceLabel(piece: string, place: number): string {
  const byte = parseInt(BYTE.exec(piece)?.[1] ?? "0", 16);
  if (byte > 0x20 && byte < 0x7f) piece = String.fromCharCode(byte);
  if (piece.startsWith(START)) return piece.slice(1) || "␣";
  if (place === 0 || /^(<.*>$|[()])/.test(piece) || !/[\p{L}\p{N}]/u.test(piece)) return piece;
  return `…${piece}`;
}

function piecesOf(tokens: string[]): Unit[] {
  return tokens.map((piece, first) => ({ text: pieceLabel(piece, first), first, count: 1 }));
}
