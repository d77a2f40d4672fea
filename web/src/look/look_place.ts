// What was made in Look, as the address keeps it: sentence, changes, what is chosen.

import type { Head } from "$openapi";
import type { Place } from "../page/address";
import { parts, type At, type Spot, type Units } from "./look";

export interface LookPlace {
  /** Which sentence of the text; null: the text as one. */
  sentence: number | null;
  beam: number;
  units: Units | null;
  /** Which map is shown. */
  at: At | null;
  /** The word in focus; null if none is, undefined where the page may choose. */
  word: Spot | null | undefined;
  off: Head[];
  hidden: number[];
  forced: number[];
}

/** Where one is in Look, for the address. */
export function placeOf(
  run: string,
  looking: { text: string; made: LookPlace },
  beside: { text: string },
): Partial<Place> & { view: string } {
  return { view: "look", run, text: looking.text, more: { ...written(looking.made), beside: beside.text } };
}

function written(place: LookPlace): Record<string, string> {
  const { sentence, beam, units, at, word, off, hidden, forced } = place;
  return {
    sentence: sentence === null ? "all" : sentence ? String(sentence + 1) : "",
    beam: beam ? String(beam) : "",
    units: units ?? "",
    at: at ? named(at) : "",
    word: word ? `${word.side}.${word.unit + 1}` : word === null ? "none" : "",
    off: off.map(named).join(","),
    hide: hidden.map((one) => one + 1).join(","),
    force: forced.join(","),
  };
}

/** What is no such place is left out: addresses are written by people too. */
export function readPlace(more: Record<string, string>): LookPlace {
  const at = heads(more.at)[0] ?? null;
  const [side, unit] = (more.word ?? "").split(".");
  const chosen = side === "source" || side === "target" ? { side, unit: whole(unit) - 1 } : undefined;
  return {
    sentence: more.sentence === "all" ? null : Math.max(0, (whole(more.sentence) || 1) - 1),
    beam: Math.min(8, Math.max(0, whole(more.beam) || 0)),
    units: more.units === "words" || more.units === "pieces" ? more.units : null,
    at,
    word: more.word === "none" ? null : chosen && chosen.unit >= 0 ? (chosen as LookPlace["word"]) : undefined,
    off: heads(more.off).flatMap(({ head, ...one }) => (head === null ? [] : [{ ...one, head }])),
    hidden: numbers(more.hide).map((one) => one - 1).filter((one) => one >= 0),
    forced: numbers(more.force).filter((one) => one >= 0),
  };
}

/** cross.1.2, counted from 1; cross.1.0 is the mean of the layer's heads. */
export function named({ part, layer, head }: At): string {
  return `${part}.${layer + 1}.${head === null ? 0 : head + 1}`;
}

function heads(text = ""): At[] {
  return text.split(",").flatMap((one) => {
    const [name, layer, head] = one.split(".");
    const part = parts.find((known) => known === name);
    const [l, h] = [whole(layer), whole(head)];
    return part && l >= 1 && h >= 0 ? [{ part, layer: l - 1, head: h ? h - 1 : null }] : [];
  });
}

function numbers(text = ""): number[] {
  return text.split(",").map(whole).filter((one) => !Number.isNaN(one));
}

function whole(text = ""): number {
  return /^\d{1,6}$/.test(text) ? Number(text) : NaN;
}
