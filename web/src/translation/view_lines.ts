import { AskFile } from "../files/ask_file.svelte";
import { readTexts } from "../look/words_read";
import { view } from "../page/view";
import Lines from "./Lines.svelte";
import { readLine } from "./lines";
import { texts } from "./words_lines";

export const lines = view({
  name: "lines",
  takes: ({ task }) => task === "picture-translation",
  texts,
  lookTexts: readTexts,
  Shown: Lines,
  asked: new AskFile("lines", readLine),
});
