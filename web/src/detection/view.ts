import { AskFile } from "../files/ask_file.svelte";
import { both } from "../page/texts";
import { view } from "../page/view";
import { detect } from "./detect";

export const boxes = view({
  name: "boxes",
  task: { name: "detection", verb: "detect", korean: "상자 찾기" },
  texts: both({
    tab: ["Boxes", "상자"],
    about: ["Finds things in a picture, and draws a box around each: choose a file, or use the camera.",
      "모델이 학습한 종류의 물체를 이미지에서 찾아, 물체마다 상자를 그립니다. 파일을 넣거나 카메라를 쓰세요."],
  }),
  load: () => import("./Detect.svelte"),
  asked: new AskFile("boxes", detect),
});
