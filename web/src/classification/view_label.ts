import { AskFile } from "../files/ask_file.svelte";
import { readTexts } from "../look/words_read";
import { view } from "../page/view";
import Label from "./Label.svelte";
import { labelFile } from "./classify";
import { texts } from "./words_label";

export const label = view({
  name: "label",
  task: { name: "classification", verb: "classify", korean: "분류" },
  only: ({ reads }) => reads !== "text",
  texts,
  look: { texts: readTexts },
  Shown: Label,
  asked: new AskFile("label", labelFile),
});
