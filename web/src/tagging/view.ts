import { AskText } from "../page/ask.svelte";
import { view } from "../page/view";
import { tagText } from "./tag";
import { texts } from "./words";

export const tag = view({
  name: "tag",
  task: { name: "tagging", verb: "tag", korean: "태깅" },
  texts,
  load: () => import("./Tag.svelte"),
  asked: new AskText("tag", tagText),
});
