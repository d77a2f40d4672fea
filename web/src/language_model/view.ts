import { view } from "../page/view";
import Write from "./Write.svelte";
import { lookTexts, texts } from "./words";
import { WriterState } from "./writer.svelte";

export const write = view({
  name: "write",
  takes: ({ task }) => task === "language-model",
  texts,
  lookTexts,
  Shown: Write,
  asked: new WriterState(),
});
