import { view } from "../page/view";
import Write from "./Write.svelte";
import { lookTexts, texts } from "./words";
import { AskWriting } from "./ask_writing.svelte";

export const write = view({
  name: "write",
  task: { name: "language-model", verb: "write", korean: "글쓰기" },
  works: { surprise: "놀람도 계산" },
  texts,
  look: { texts: lookTexts, isWriting: true },
  Shown: Write,
  asked: new AskWriting("write"),
});
