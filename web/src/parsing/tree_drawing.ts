// Where the parts of a tree stand: its words on one line at the bottom, each bracket above the middle
// of what it holds. As src/dragoman/pictures/tree.py draws it.

import type { ParsedTree } from "$openapi";
import { textWidth } from "../drawing/letters";

const LEVEL = 42; // pixels from one row of labels to the next
const BETWEEN = 14; // pixels between two words
const MARGIN = 14;
const SIZE = 15; // of the letters
const ABOVE = 15; // pixels from a label's baseline to where a line from above ends,
const BELOW = 5; // and to where one begins

export interface Label {
  x: number;
  y: number;
  text: string;
  /** Half of the space that it takes. */
  half: number;
}

export interface Drawing {
  width: number;
  height: number;
  /** In the order of the tree's. */
  brackets: Label[];
  words: Label[];
  tags: Label[];
  lines: string[];
}

export function drawn(tree: ParsedTree): Drawing {
  const depths: number[] = [];
  for (const { parent } of tree.brackets) depths.push(parent == null ? 0 : (depths[parent] ?? 0) + 1);
  const lowest = Math.max(...tree.words.map((word) => (depths[word.parent] ?? 0) + 1));
  const top = (row: number): number => MARGIN + SIZE + row * LEVEL;
  const bottom = top(lowest + 1);
  const brackets: Label[] = [];
  const words: Label[] = [];
  const tags: Label[] = [];
  const lines: string[] = [];
  let right = MARGIN; // where the next word may begin

  function line(x1: number, y1: number, x2: number, y2: number): void {
    lines.push(`M${x1.toFixed(1)} ${y1.toFixed(1)}L${x2.toFixed(1)} ${y2.toFixed(1)}`);
  }

  function leaf(number: number): number {
    const { text, tag, parent } = tree.words[number]!;
    const y = top((depths[parent] ?? 0) + 1);
    const half = Math.max(textWidth(text, SIZE), textWidth(tag ?? "", SIZE)) / 2;
    const x = right + half;
    right += 2 * half + BETWEEN;
    if (tag) tags.push({ x, y, text: tag, half });
    line(x, tag ? y + BELOW : y - ABOVE, x, bottom - ABOVE);
    words[number] = { x, y: bottom, text, half };
    return x;
  }

  /** The middle of a bracket; `next` is the first that stands behind it and all that it holds. */
  function bracket(number: number): { x: number; next: number } {
    const { label, first, count } = tree.brackets[number]!;
    const y = top(depths[number] ?? 0);
    const begin = right;
    const places: number[] = [];
    let next = number + 1;
    for (let word = first; word < first + count; ) {
      const child = tree.brackets[next];
      if (child?.parent === number && child.first === word) {
        const inner = bracket(next);
        places.push(inner.x);
        word += child.count;
        next = inner.next;
      } else places.push(leaf(word++));
    }
    // A label wider than all that it holds would lie over its neighbour's.
    const half = textWidth(label, SIZE) / 2;
    const x = Math.max(begin + half, ((places[0] ?? begin) + (places.at(-1) ?? begin)) / 2);
    right = Math.max(right, x + half + BETWEEN);
    for (const at of places) line(x, y + BELOW, at, y + LEVEL - ABOVE);
    brackets[number] = { x, y, text: label, half };
    return { x, next };
  }

  bracket(0);
  return { width: right - BETWEEN + MARGIN, height: bottom + MARGIN, brackets, words, tags, lines };
}
