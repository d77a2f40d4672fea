// What is marked in the source: words that the translation leaves out or that the run never read,
// and those that belong to the word that somebody points at.

import type { TranslationWarning } from "$openapi";
import type { Span } from "./translate";
import type { Shown } from "./ask_translation.svelte";

/** A word that is pointed at, in the source or in the translation. */
export interface Pointed {
  sentence: number;
  /** Code points of the source sentence. */
  source: Span[];
}

/** A stretch of the source text that is shown in one way. */
export interface Stretch {
  text: string;
  mark: TranslationWarning["code"] | "";
  isPointed: boolean;
  /** Its sentence, and where it stands there; -1 between sentences. */
  sentence: number;
  span: Span;
}

/** The source text cut where what is marked begins and ends; joined they are the text. `known`: all words that the
 *  run has read, by which those of what is still typed are marked. */
export function stretches(text: string, sentences: Shown[], pointed: Pointed | null, known: ReadonlySet<string> | null): Stretch[] {
  const found: Stretch[] = [];
  let end = 0;
  for (const [number, sentence] of sentences.entries()) {
    const begin = text.indexOf(sentence.source, end);
    if (begin < 0) continue; // it was changed since, or the model read it a little differently
    if (begin > end) found.push(...plain(text.slice(end, begin), known));
    const here = pointed?.sentence === number ? pointed.source : [];
    found.push(...cut(sentence, number, here));
    end = begin + sentence.source.length;
  }
  if (end < text.length) found.push(...plain(text.slice(end), known));
  return found;
}

/** Which words of a translation come from a stretch of the source. */
export function comesFrom(spans: Span[] | null | undefined, from: Span): boolean {
  return (spans ?? []).some(([begin, end]) => begin < from[1] && from[0] < end);
}

function plain(text: string, known: ReadonlySet<string> | null): Stretch[] {
  const parts = known ? text.split(/(?<=\s)(?=\S)|(?<=\S)(?=\s)/) : [text];
  return parts.map((part, i) => {
    // The last word may still be typed.
    const isWhole = i + 1 < parts.length && /[\p{L}]/u.test(part);
    const bare = part.replace(/^\P{L}+|\P{L}+$/gu, "").toLowerCase();
    const isKnown = !isWhole || !known || known.has(bare) || bare.split(/\P{L}+/u).every((one) => known.has(one));
    return { text: part, mark: isKnown ? "" : "unknown", isPointed: false, sentence: -1, span: [0, 0] };
  });
}

function cut(sentence: Shown, number: number, pointed: Span[]): Stretch[] {
  const letters = [...sentence.source]; // code points, as the server counts
  const warnings = (sentence.chosen?.warnings ?? []).filter(
    (w) => w.side === "source" && w.code !== "coverage",
  );
  const linked = (sentence.chosen?.words ?? []).flatMap((word) => word.source ?? []);
  const edges = new Set([0, letters.length]);
  for (const { begin, end } of warnings) edges.add(begin).add(end);
  for (const [begin, end] of [...linked, ...pointed]) edges.add(begin).add(end);
  const places = [...edges].filter((edge) => edge <= letters.length).sort((a, b) => a - b);
  return places.slice(1).map((end, i) => {
    const begin = places[i] as number;
    const covers = (span: Span): boolean => span[0] <= begin && end <= span[1];
    const mark = warnings.find((w) => covers([w.begin, w.end]))?.code ?? "";
    const text = letters.slice(begin, end).join("");
    return { text, mark, isPointed: pointed.some(covers), sentence: number, span: [begin, end] };
  });
}
