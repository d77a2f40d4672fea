import { AskFile } from "../files/ask_file.svelte";
import { readTexts } from "../look/words_read";
import { view } from "../page/view";
import Detect from "./Detect.svelte";
import { detect } from "./detect";
import { texts } from "./words";

export const boxes = view({
  name: "boxes",
  takes: ({ task }) => task === "detection",
  texts,
  lookTexts: readTexts,
  Shown: Detect,
  asked: new AskFile("boxes", detect),
});
