import { expect, test } from "vitest";
import { drawn, type Label } from "../src/parsing/tree_drawing";
import { columnsOf, grownTo } from "../src/look/search_tree";
import { stretches } from "../src/translation/marks";
import { kept, joined } from "../src/language_model/write";
import { pairOf } from "../src/drawing/pair";
import type { Candidate } from "../src/look/look";
import type { Shown } from "../src/translation/ask_translation.svelte";
import { cases, ODD, type Chance } from "./random";

type Tree = Parameters<typeof drawn>[0];

/** A tree by chance: brackets in the order in which they open, words below any of them. */
function tree(chance: Chance): Tree {
  const brackets: Tree["brackets"] = [];
  const words: Tree["words"] = [];
  const grow = (parent: number | null, depth: number): void => {
    const self = brackets.length;
    const label = chance.of(["S", "NP", "VP", "a very long label"]);
    brackets.push({ label, first: words.length, count: 0, parent } as Tree["brackets"][number]);
    for (let i = 0; i < 1 + chance.below(3); i++) {
      if (depth < 5 && chance.below(2)) grow(self, depth + 1);
      else words.push({ text: chance.of(["a", "the", "antidisestablishmentarianism"]), tag: chance.of([null, "DT", "NN"]), parent: self } as Tree["words"][number]);
    }
    brackets[self]!.count = words.length - brackets[self]!.first;
  };
  grow(null, 0);
  return { brackets, words } as Tree;
}

test.each(cases(200))("no two labels of a tree lie over each other, and all are inside (%#)", (chance) => {
  const given = tree(chance);
  const drawing = drawn(given);
  const labels = [...drawing.brackets, ...drawing.words, ...drawing.tags];
  expect(drawing.words.map(({ text }) => text)).toEqual(given.words.map(({ text }) => text));
  expect(drawing.brackets.map(({ text }) => text)).toEqual(given.brackets.map(({ label }) => label));
  for (const row of byRow(labels).values()) {
    const sorted = [...row].sort((a, b) => a.x - b.x);
    sorted.slice(1).forEach((label, i) => expect(label.x - label.half).toBeGreaterThan(sorted[i]!.x + sorted[i]!.half));
  }
  for (const { x, y, half } of labels) {
    expect(x - half).toBeGreaterThanOrEqual(0);
    expect(x + half).toBeLessThanOrEqual(drawing.width);
    expect(y).toBeLessThanOrEqual(drawing.height);
  }
  drawing.words.slice(1).forEach((word, i) => expect(word.x).toBeGreaterThan(drawing.words[i]!.x));
});

function byRow(labels: Label[]): Map<number, Label[]> {
  const rows = new Map<number, Label[]>();
  for (const label of labels) rows.set(label.y, [...(rows.get(label.y) ?? []), label]);
  return rows;
}

/** A beam search by chance: what it chose at each step, and the tokens of what won. */
function search(chance: Chance): { steps: { place: number; candidates: Candidate[] }[]; best: number[] } {
  const beam = 1 + chance.below(4);
  let rows: number[][] = [[]];
  const ended: number[][] = [];
  const steps = Array.from({ length: 1 + chance.below(6) }, (_, place) => {
    const all = rows.flatMap((row, parent) => [0, 1, 2, 3].map((id) => ({ id, parent, tokens: [...row, id] })));
    const shown = all.sort(() => chance.below(3) - 1).slice(0, 2 * beam);
    const next: number[][] = [];
    const candidates = shown.map(({ id, parent, tokens }) => {
      if (id === 0) ended.push(tokens.slice(0, -1));
      else if (next.length < beam) next.push(tokens);
      const outcome = id === 0 ? "ended" : next.at(-1) === tokens ? "kept" : "dropped";
      return { id, parent, outcome, piece: String(id), log_probability: -1, score: -1 } as unknown as Candidate;
    });
    rows = next.length ? next : [[]];
    return { place, candidates };
  });
  return { steps, best: chance.of([...ended, ...rows]) };
}

test.each(cases(300))("the branch that won is followed from the root through the tree (%#)", (chance) => {
  const { steps, best } = search(chance);
  const columns = columnsOf(steps, best);
  let row = 0;
  columns.forEach((column, i) => {
    const marked = column.flatMap((node, k) => (node.isBest ? [k] : []));
    expect(marked.length).toBeLessThanOrEqual(1);
    if (marked[0] === undefined) return;
    const node = column[marked[0]]!;
    if (i) expect(node.from).toBe(row);
    expect(node.outcome === "ended" ? best.length : node.id).toBe(node.outcome === "ended" ? i : best[i]);
    row = marked[0];
  });
});

test.each(cases(200))("what leads somewhere is what the last step or an end continues (%#)", (chance) => {
  const { steps, best } = search(chance);
  const all = columnsOf(steps, best);
  for (let step = 1; step <= all.length; step++) {
    const grown = grownTo(all, step);
    expect(grown).toHaveLength(step);
    grown.forEach((column, i) => {
      column.forEach((node, row) => {
        const leads = grown[i + 1]?.some((next) => next.from === row && next.rank > 0);
        const lives = node.outcome === "ended" || (i === step - 1 ? node.outcome === "kept" : leads && node.outcome === "kept");
        expect(node.rank > 0, `column ${i}, row ${row} of step ${step}`).toBe(Boolean(lives));
      });
    });
  }
});

const TEXT = ["Hallo", "Welt", "👩‍👩‍👧", "한국어", "isn’t", "…", "x"];

test.each(cases(300))("stretches of a text, joined, are the text (%#)", (chance) => {
  const sentences = chance.list(4, () => chance.list(6, () => chance.of(TEXT)).join(chance.of([" ", "  "])));
  const text = sentences.map((one) => one + chance.of([" ", "\n", "", " typed since "])).join("");
  const span = (source: string): [number, number] => {
    const begin = chance.below([...source].length + 1);
    return [begin, begin + chance.below([...source].length + 3 - begin)];
  };
  const shown = sentences.map((source) => {
    const warnings = chance.list(2, () => {
      const [begin, end] = span(source);
      return { side: "source", code: chance.of(["unknown", "coverage", "missing"]), begin, end };
    });
    return { source, chosen: { warnings, words: chance.list(3, () => ({ source: [span(source)] })) } } as unknown as Shown;
  });
  const pointed = chance.of([null, { sentence: 0, source: [span(sentences[0] ?? "")] }]);
  const out = stretches(text, shown, pointed, chance.of([null, new Set(["hallo", "welt"])]));
  expect(out.map((stretch) => stretch.text).join("")).toBe(text);
  for (const { sentence, text: part, span: [begin, end] } of out) {
    if (sentence >= 0) expect([...(sentences[sentence] ?? "")].slice(begin, end).join("")).toBe(part);
  }
});

test("a word that the run never read is marked once it is whole", () => {
  const marks = (text: string): string[] => stretches(text, [], null, new Set(["a", "dog"])).flatMap(({ text: part, mark }) => (mark ? [part] : []));
  expect(marks("a dog sees a zebra")).toEqual(["sees"]);
  expect(marks("a Dog, sees: a zebra 12 ")).toEqual(["sees:", "zebra"]);
  expect(marks("a dog-a ")).toEqual([]);
});

test.each(cases(200))("words of a text that goes on are kept, and no letter is lost (%#)", (chance) => {
  const letters = (): string => chance.list(4, () => chance.of(ODD.filter((one) => one.trim()))).join("") || "x";
  const words = chance.list(6, () => ({ before: chance.of(["", " ", "\n"]), text: letters(), bits: chance.below(9) }));
  const whole = joined(words);
  const text = chance.of([whole, `${whole} more`, whole.slice(0, chance.below(whole.length + 1)), `${whole}x`]);
  expect(joined(kept(words, text))).toBe(text);
});

test("the examples of the lesson are those that differ in one word", () => {
  const told = pairOf(["a dog .", "The animal was too tired.", "The street is wide.", "The animal was too wide."]);
  expect(told?.words).toEqual(["tired", "wide"]);
  expect(told?.texts).toEqual(["The animal was too tired.", "The animal was too wide."]);
  expect(pairOf(["a b", "a b", "a b c", "c d"])).toBeNull();
  expect(pairOf([])).toBeNull();
});
