import { expect, test } from "vitest";
import { fits, read, write, type Place } from "../src/page/address";
import { readPlace, placeOf, type LookPlace } from "../src/look/look_place";
import { parts } from "../src/look/look";
import { cases, ODD, type Chance } from "./random";

const text = (chance: Chance): string => chance.list(40, () => chance.of(ODD)).join("");

test.each(cases(200))("an address holds what was put into it (%#)", (chance) => {
  const place: Place = { view: "look", run: text(chance), text: text(chance), figure: text(chance), more: {} };
  const more = chance.list(3, () => text(chance)).filter(Boolean);
  more.forEach((value, i) => (place.more[`name${i}`] = value));
  if (!fits(place)) return expect(read(write(place))).toMatchObject({ run: place.run, text: "", more: {} });
  expect(read(write(place))).toEqual(place);
});

test("a text that is too long is left out with what belongs to its words", () => {
  const place: Place = { view: "look", run: "demo", text: "한".repeat(300), figure: "", more: { at: "cross.1.2" } };
  expect(fits(place)).toBe(false);
  expect(read(write(place))).toEqual({ view: "look", run: "demo", text: "", figure: "", more: {} });
});

test("an address of another version tells its view, run and text alone", () => {
  const told = read("#look?v=7&run=demo&text=Hello&at=cross.1.2");
  expect(told).toEqual({ view: "look", run: "demo", text: "Hello", figure: "", more: {} });
});

test.each(["", "#", "#look?", "#look?%E0%A4%A", "#look?v", "#?v=1", "#look?v=1&text=%F0%28&text=b", "nonsense?a?b"])(
  "an address that a person has written is read: %s",
  (hash) => {
    expect(typeof read(hash).view).toBe("string");
  },
);

test.each(cases(200))("what was made in Look is read from its address (%#)", (chance) => {
  const head = () => ({ part: chance.of(parts), layer: chance.below(12), head: chance.below(16) });
  const made: LookPlace = {
    sentence: chance.of([null, chance.below(30)]),
    beam: chance.below(9),
    units: chance.of([null, "words", "pieces"]),
    at: chance.of([null, head(), { ...head(), head: null }]),
    word: chance.of([null, undefined, { side: chance.of(["source", "target"]), unit: chance.below(99) }]),
    off: chance.list(4, head),
    hidden: chance.list(4, () => chance.below(99)),
    forced: chance.list(4, () => chance.below(37_000)),
  };
  const { more } = read(write(placeOf("demo", { text: "a", made }, { text: "" })));
  expect(readPlace(more)).toEqual(made);
});

test("what is no place in Look is left out", () => {
  const wrong = { sentence: "-3", beam: "99", units: "letters", at: "cross.0.1", word: "source.0", off: "cross.1.0,up.1.1", hide: "0,x", force: "1e9,7" };
  expect(readPlace(wrong)).toEqual({
    sentence: 0, beam: 8, units: null, at: null, word: undefined, off: [], hidden: [], forced: [7],
  });
});
