import { AskFile } from "../files/ask_file.svelte";
import { view } from "../page/view";
import { detect } from "./detect";
import { texts } from "./words";

export const boxes = view({
  name: "boxes",
  task: { name: "detection", verb: "detect", korean: "상자 찾기" },
  texts,
  load: () => import("./Detect.svelte"),
  asked: new AskFile("boxes", detect),
});
