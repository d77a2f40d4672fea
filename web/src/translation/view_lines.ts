import { AskFile } from "../files/ask_file.svelte";
import { view } from "../page/view";
import { readLine } from "./lines";
import { texts } from "./words_lines";

export const lines = view({
  name: "lines",
  task: { name: "picture-translation", verb: "translate", korean: "이미지 속 글 읽기" },
  works: { lines: "이미지 속 글 읽기" },
  texts,
  load: () => import("./Lines.svelte"),
  asked: new AskFile("lines", readLine),
});
