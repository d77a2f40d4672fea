import { AskText } from "../page/ask.svelte";
import { both } from "../page/texts";
import { view } from "../page/view";
import { tagText } from "./tag";

export const tag = view({
  name: "tag",
  task: { name: "tagging", verb: "tag", korean: "태깅" },
  texts: both({
    tab: ["Tag", "태깅"],
    about: ["Tags each word, with its part of speech or the kind of name that it belongs to, and shows what else it could be.",
      "학습된 모델이 글의 단어마다 품사나 이름의 종류 같은 태그를 붙이고, 그 단어에 붙을 수 있는 다른 태그도 보여 줍니다."],
  }),
  load: () => import("./Tag.svelte"),
  asked: new AskText("tag", tagText),
});
