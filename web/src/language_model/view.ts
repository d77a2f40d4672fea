import { both } from "../page/texts";
import { view } from "../page/view";
import { lookTexts } from "./words";
import { AskWriting } from "./ask_writing.svelte";

export const write = view({
  name: "write",
  task: { name: "language-model", verb: "write", korean: "글쓰기" },
  works: { surprise: "놀람도 계산" },
  texts: both({
    tab: ["Write", "글쓰기"],
    about: ["Continues your text, and shows how much each word surprised the model.", "학습된 언어 모델이 글을 이어 쓰고, 단어마다 모델이 얼마나 놀랐는지(놀람도) 보여 줍니다."],
  }),
  look: { texts: lookTexts, isWriting: true },
  load: () => import("./Write.svelte"),
  asked: new AskWriting("write"),
});
