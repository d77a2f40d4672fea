import { readTexts } from "../look/words_read";
import { view } from "../page/view";
import Fill from "./Fill.svelte";
import { AskBlanks } from "./ask_blanks.svelte";
import { texts } from "./words";

export const fill = view({
  name: "fill",
  takes: ({ task }) => task === "masked",
  texts,
  lookTexts: readTexts,
  Shown: Fill,
  asked: new AskBlanks(),
});
