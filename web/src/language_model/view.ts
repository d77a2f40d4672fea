import { view } from "../page/view";
import { lookTexts, texts } from "./words";
import { AskWriting } from "./ask_writing.svelte";

export const write = view({
  name: "write",
  task: { name: "language-model", verb: "write", korean: "글쓰기" },
  works: { surprise: "놀람도 계산" },
  texts,
  look: { texts: lookTexts, isWriting: true },
  load: () => import("./Write.svelte"),
  asked: new AskWriting("write"),
});
