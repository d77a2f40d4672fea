import { AskFile } from "../files/ask_file.svelte";
import { readTexts } from "../look/words_read";
import { view } from "../page/view";
import Lines from "./Lines.svelte";
import { readLine } from "./lines";
import { texts } from "./words_lines";

export const lines = view({
  name: "lines",
  task: { name: "picture-translation", verb: "translate", korean: "이미지 속 글 읽기" },
  works: { lines: "이미지 속 글 읽기" },
  texts,
  look: { texts: readTexts },
  Shown: Lines,
  asked: new AskFile("lines", readLine),
});
