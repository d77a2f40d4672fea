import { AskText } from "../page/ask.svelte";
import { both } from "../page/texts";
import { view } from "../page/view";
import { parseText } from "./parse";
import { lookTexts } from "./words";

export const parse = view({
  name: "parse",
  task: { name: "parsing", verb: "parse", korean: "구문 분석" },
  texts: both({
    tab: ["Parse", "구문 분석"],
    about: ["Draws the tree of a sentence: which words belong together, and as what.",
      "학습된 모델이 문장의 구구조 트리를 그립니다. 어느 단어들이 한 덩어리인지 볼 수 있습니다."],
  }),
  look: { texts: lookTexts, isSearching: true },
  again: { 3: { view: "look" }, 8: { view: "look" } },
  load: () => import("./Parse.svelte"),
  asked: new AskText("parse", parseText),
});
