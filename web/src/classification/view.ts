import { AskText } from "../page/ask.svelte";
import { view } from "../page/view";
import { classifyText } from "./classify";
import { texts } from "./words";

export const classify = view({
  name: "classify",
  task: { name: "classification", verb: "classify", korean: "분류" },
  only: ({ reads }) => reads === "text",
  texts,
  load: () => import("./Classify.svelte"),
  asked: new AskText("classify", classifyText),
});
