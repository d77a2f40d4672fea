import { expect, test } from "vitest";
import { runKorean } from "../src/page/korean";
import { NAMED } from "../src/run/words_named";
import { SAID, TRANSLATED } from "../src/run/words_said";

/** What a template says where its names stand for values: a sentence of the server, and its Korean. */
function filled([english, korean]: readonly [string, string]): [string, string] {
  const names = [...new Set([...english.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? ""))];
  const values = new Map(names.map((name, i) => [name, /^[A-Z]$/.test(name) ? `${i + 2}.5` : `value${i}`]));
  const put = (text: string): string => text.replace(/\{(\w+)\}/g, (_, name: string) => values.get(name) ?? "");
  // Of what a pattern leaves open the sentence takes one reading.
  const plain = english.replace(/(?<!\\)\((?:\?:)?([^()|]*)[^()]*\)\??/g, "$1").replace(/(['\w])\?/g, "$1").replace(/\\(.)/g, "$1");
  return [put(plain), put(korean)];
}

const OPEN = SAID.filter(([english]) => !/\[|\+|\*|\(\?<|verb|language|shares/.test(english));

test.each(OPEN)("no template stands in the way of another: %s", (english, korean) => {
  const [said, wanted] = filled([english, korean]);
  expect(runKorean(said).replace(/\s%/g, "%")).toBe(wanted.replace(/\s%/g, "%"));
});

test("what stands for a name is in Korean where there are words for it", () => {
  expect(TRANSLATED.has("curve")).toBe(true);
  expect(runKorean("Learning rate (moving average)")).toBe("학습률 (가중치의 이동 평균)");
  expect(runKorean("nats per target token")).toBe("토큰당 nat");
});

test.each(Object.entries(NAMED))("a name, with and without a capital: %s", (english, korean) => {
  expect(runKorean(english)).toBe(korean);
  const capital = english.charAt(0).toUpperCase() + english.slice(1);
  expect(runKorean(capital)).toBe(NAMED[capital] ?? korean);
});

test.each(["", "line 3: 'a dog' | line 12: \"b\"", "toString", "constructor", "An unknown sentence. And another; of 5 more."])(
  "what has no Korean stays as it is, but for places: %s",
  (text) => {
    expect(runKorean(text)).toBe(text.replace(/line (\d+): (?=['"])/g, "$1번째 줄: "));
  },
);
