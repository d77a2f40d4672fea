import { AskText } from "../page/ask.svelte";
import { view } from "../page/view";
import Parse from "./Parse.svelte";
import { parseText } from "./parse";
import { lookTexts, texts } from "./words";

export const parse = view({
  name: "parse",
  takes: ({ task }) => task === "parsing",
  texts,
  lookTexts,
  Shown: Parse,
  asked: new AskText("parse", parseText),
});
