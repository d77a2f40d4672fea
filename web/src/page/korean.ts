// What the server says in English, in Korean as far as there are words for it. Pages in English do without this file.

import { NAMED } from "../run/words_named";
import { SAID, TRANSLATED } from "../run/words_said";
import { preferences } from "./preferences.svelte";

export { errorKorean } from "./words_errors";

/** Between sentences; what stands in quotation marks may have several. */
const SENTENCES = /(?<=\.) (?=[A-Z])(?![^“]*”)/;
/** Between two findings of one kind: one of the dev set, one of the test set. */
const FINDINGS = /; (?=of [\d,]+ )/;
const LETTERS = [..."abcdefghijklmnopqrstuvwxyz"];

const patterns = SAID.map(([english, korean]) => {
  const source = english.replace(/\{[A-Z]\}/g, (name) => `(?<${name.slice(1, -1)}>[\\d.,]*\\d(?:\\s?%)?)`).replace(/\{(\w+)\}/g, "(?<$1>.+?)");
  return { pattern: new RegExp(`^(?:${source})(?<end>\\.?)$`), korean };
});

/** English name of a language -> its code; made when first asked for. */
let codes: Map<string | undefined, string> | undefined;

function languageKorean(english: string): string {
  const names = new Intl.DisplayNames(["en"], { type: "language", fallback: "none" });
  // Of several codes of one language the first counts: a map keeps the last that it is given.
  codes ??= new Map(LETTERS.flatMap((first) => LETTERS.map((second) => first + second)).reverse().map((code) => [names.of(code), code]));
  const code = codes.get(english);
  return (code && new Intl.DisplayNames(["ko"], { type: "language" }).of(code)) ?? english;
}

/** What stands in a sentence in place of a name. */
function valueKorean(name: string, value: string): string {
  if (name === "verb") return preferences.views.find(({ task }) => task.verb === value)?.task.korean ?? value;
  if (name.endsWith("language")) return value.split(" or ").map(languageKorean).join(" 또는 ");
  if (name === "shares") return value.split(/, | and /).map(runKorean).join(", ");
  return TRANSLATED.has(name) ? runKorean(value) : value;
}

function sentenceKorean(text: string): string {
  const named = [text, text.charAt(0).toLowerCase() + text.slice(1)].find((name) => Object.hasOwn(NAMED, name));
  if (named) return NAMED[named] ?? text;
  for (const { pattern, korean } of patterns) {
    const values = pattern.exec(text)?.groups;
    if (values) {
      const said = korean.replace(/\{(\w+)\}/g, (_, name: string) => valueKorean(name, values[name] ?? ""));
      return said.replace(/(?<=\d)\s%/g, "%") + values.end;
    }
  }
  return text;
}

/** In Korean, or as it is where there is no word for it (names, numbers, texts of others). */
export function runKorean(text: string): string {
  if (/^line \d+: ['"]/.test(text)) return text.replace(/(^|; |\| )line (\d+): (?=['"])/g, "$1$2번째 줄: ");
  const [findings, sentences] = [text.split(FINDINGS), text.split(SENTENCES)];
  if (findings.length > 1) return findings.map(runKorean).join("; ");
  return sentences.map(sentenceKorean).join(" ");
}
