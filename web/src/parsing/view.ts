import { AskText } from "../page/ask.svelte";
import { view } from "../page/view";
import { parseText } from "./parse";
import { lookTexts, texts } from "./words";

export const parse = view({
  name: "parse",
  task: { name: "parsing", verb: "parse", korean: "구문 분석" },
  texts,
  look: { texts: lookTexts, isSearching: true },
  load: () => import("./Parse.svelte"),
  asked: new AskText("parse", parseText),
});
