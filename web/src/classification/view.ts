import { AskFile } from "../files/ask_file.svelte";
import { AskText } from "../page/ask.svelte";
import { both } from "../page/texts";
import { view } from "../page/view";
import { classifyText, labelFile } from "./classify";

export const classify = view({
  name: "classify",
  task: { name: "classification", verb: "classify", korean: "분류" },
  only: ({ reads }) => reads === "text",
  texts: both({
    tab: ["Classify", "분류"],
    about: ["Labels your text, and shows which words speak for the label.",
      "학습된 모델이 글에 레이블을 붙이고, 어느 단어가 그 레이블에 유리한지 보여 줍니다."],
  }),
  load: () => import("./Classify.svelte"),
  asked: new AskText("classify", classifyText),
});

export const label = view({
  name: "label",
  task: { name: "classification", verb: "classify", korean: "분류" },
  only: ({ reads }) => reads !== "text",
  texts: both({
    tab: ["Label", "인식"],
    about: ["Labels a picture or a recording: choose a file, draw, or use the camera or the microphone.",
      "학습된 모델이 이미지나 녹음에 레이블을 붙입니다. 파일을 넣거나, 그리거나, 카메라나 마이크를 쓰세요."],
  }),
  again: { 3: { more: { heads: "true" } } },
  load: () => import("./Label.svelte"),
  asked: new AskFile("label", labelFile, ["heads", "reading"]),
});
