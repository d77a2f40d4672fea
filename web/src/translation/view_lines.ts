import { AskFile } from "../files/ask_file.svelte";
import { both } from "../page/texts";
import { view } from "../page/view";
import { readLine } from "./lines";

export const lines = view({
  name: "lines",
  task: { name: "picture-translation", verb: "translate", korean: "이미지 속 글 읽기" },
  works: { lines: "이미지 속 글 읽기" },
  texts: both({
    tab: ["Text in a picture", "이미지 속 글"],
    about: ["Reads a line of text in a picture, and writes it or its translation: choose a file, or use the camera.",
      "학습된 모델이 이미지 속의 글 한 줄을 읽고 그 내용이나 번역을 씁니다. 파일을 넣거나 카메라를 쓰세요."],
  }),
  load: () => import("./Lines.svelte"),
  asked: new AskFile("lines", readLine),
});
