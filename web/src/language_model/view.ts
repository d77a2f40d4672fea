import { view } from "../page/view";
import Write from "./Write.svelte";
import { lookTexts, texts } from "./words";
import { AskWriting } from "./ask_writing.svelte";

export const write = view({
  name: "write",
  takes: ({ task }) => task === "language-model",
  texts,
  lookTexts,
  Shown: Write,
  asked: new AskWriting("write"),
});
