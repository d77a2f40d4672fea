import { AskText } from "../page/ask.svelte";
import { both } from "../page/texts";
import { view } from "../page/view";
import { classifyText } from "./classify";

export const classify = view({
  name: "classify",
  task: { name: "classification", verb: "classify", korean: "분류" },
  only: ({ reads }) => reads === "text",
  texts: both({
    tab: ["Classify", "분류"],
    about: ["Labels your text, and shows which words speak for the label.",
      "학습된 모델이 글에 레이블을 붙이고, 어느 단어가 그 레이블에 유리한지 보여 줍니다."],
  }),
  load: () => import("./Classify.svelte"),
  asked: new AskText("classify", classifyText),
});
