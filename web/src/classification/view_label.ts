import { AskFile } from "../files/ask_file.svelte";
import { view } from "../page/view";
import { labelFile } from "./classify";
import { texts } from "./words_label";

export const label = view({
  name: "label",
  task: { name: "classification", verb: "classify", korean: "분류" },
  only: ({ reads }) => reads !== "text",
  texts,
  load: () => import("./Label.svelte"),
  asked: new AskFile("label", labelFile),
});
