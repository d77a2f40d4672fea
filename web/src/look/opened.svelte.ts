// What is asked of a look beyond its answer: one cell of a map opened, and what each head is good for.

import type { CellAnswer } from "$openapi";
import { ApiError } from "../page/api";
import type { HeadsAnswer, Looking, Part, Units } from "./look";

/** So little work that it is done without being asked for. */
const AT_ONCE = 4000;

export interface Cell {
  part: Part;
  layer: number;
  head: number | null;
  /** Units that look and that are looked at. */
  row: number;
  column: number;
  /** What they are called: the pieces, where they are pieces of words. */
  names: [string, string];
  /** What had been read when the row's word was chosen; empty where a row reads itself. */
  read: string;
}

export class OpenedState {
  cell = $state.raw<Cell | null>(null);
  answer = $state.raw<CellAnswer | null>(null);
  importance = $state.raw<HeadsAnswer | null>(null);
  isMeasuring = $state(false);
  error = $state.raw<ApiError | null>(null);
  #request: AbortController | null = null;
  #measuring: AbortController | null = null;

  /** Another look: nothing of the old one holds. */
  forget(now: Looking | null): void {
    this.close();
    this.#measuring?.abort();
    this.importance = null;
    this.isMeasuring = false;
    this.error = null;
    if (now && now.parts.length && now.work <= AT_ONCE) void this.measure(now);
  }

  close(): void {
    this.#request?.abort();
    this.cell = this.answer = null;
  }

  async open(now: Looking, part: Part, layer: number, head: number | null, units: Units, row: number, column: number): Promise<void> {
    this.close();
    const { rows, columns } = now.axes(part, units);
    const [looks, seen] = [rows[row], columns[column]];
    if (!looks || !seen) return;
    if (head === null || !now.answer.model.key_width) {
      this.cell = { part, layer, head, row, column, names: [looks.text, seen.text], read: "" };
      return;
    }
    const [r, c] = now.pair(part, layer, head, looks, seen);
    const pieces = now.axes(part, "pieces");
    const [piece, other] = [pieces.rows[r] ?? looks, pieces.columns[c] ?? seen];
    const read = part === "encoder" ? "" : now.readBefore(piece, "pieces");
    this.cell = { part, layer, head, row, column, names: [piece.text, other.text], read };
    const request = (this.#request = new AbortController());
    await this.#take(request, async () => {
      const answer = await now.cell(part, layer, head, r, c, request.signal);
      if (!request.signal.aborted) this.answer = answer;
    });
  }

  async measure(now: Looking): Promise<void> {
    const request = (this.#measuring = new AbortController());
    this.isMeasuring = true;
    await this.#take(request, async () => {
      const answer = await now.importance(request.signal);
      if (!request.signal.aborted) this.importance = answer;
    });
    if (request === this.#measuring) this.isMeasuring = false;
  }

  async #take(request: AbortController, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (request.signal.aborted) return;
      this.error = ApiError.of(error);
    }
  }
}
