import { readTexts } from "../look/words_read";
import { AskText } from "../page/ask.svelte";
import { view } from "../page/view";
import Tag from "./Tag.svelte";
import { tagText } from "./tag";
import { texts } from "./words";

export const tag = view({
  name: "tag",
  takes: ({ task }) => task === "tagging",
  texts,
  lookTexts: readTexts,
  Shown: Tag,
  asked: new AskText("tag", tagText),
});
