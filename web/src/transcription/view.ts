import { both } from "../page/texts";
import { view } from "../page/view";
import { AskRecording } from "./ask_recording.svelte";

export const transcribe = view({
  name: "transcribe",
  task: { name: "transcription", verb: "transcribe", korean: "받아쓰기" },
  texts: both({
    tab: ["Transcribe", "받아쓰기"],
    about: ["Writes down what is said in a recording, and when: choose a file, or speak into the microphone.",
      "학습된 모델이 녹음에서 들리는 말을 시각과 함께 받아씁니다. 파일을 넣거나 마이크에 대고 말하세요."],
  }),
  again: { 8: {} },
  load: () => import("./Transcribe.svelte"),
  asked: new AskRecording(),
});
