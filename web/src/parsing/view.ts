import { AskText } from "../page/ask.svelte";
import { view } from "../page/view";
import Parse from "./Parse.svelte";
import { parseText } from "./parse";
import { lookTexts, texts } from "./words";

export const parse = view({
  name: "parse",
  task: { name: "parsing", verb: "parse", korean: "구문 분석" },
  texts,
  look: { texts: lookTexts, isSearching: true },
  Shown: Parse,
  asked: new AskText("parse", parseText),
});
