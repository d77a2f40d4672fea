// The words of runs that find boxes.

import { wordsWith } from "../page/preferences.svelte";

export const words = wordsWith({
  detect_drop: ["Drop the picture to find what is in it", "이미지를 놓으면 무엇이 있는지 찾습니다"],
  detect_answer: ["What is in the picture", "이미지에 있는 것"],
  detect_empty: ["The picture appears here, with a box around each thing that the model finds.", "이미지가 여기에 나타나고, 모델이 찾은 물체마다 상자가 그려집니다."],
  detect_least: ["Least score", "최저 점수"],
  detect_found: ["Boxes: {count}", "상자 {count}개"],
  detect_none: ["No box has a score as high as this.", "점수가 이만큼 높은 상자가 없습니다."],
  detect_best: ["The surest is {box}.", "가장 확실한 것은 {box}입니다."],
  detect_looked_1: ["The picture at the size at which the model reads it. Click a box to see where the model looked while it wrote it: what got little of its attention is dimmed.",
    "모델이 읽는 크기의 이미지입니다. 상자를 누르면 모델이 그 상자를 출력하는 동안 어디를 보았는지 나타나며, 어텐션을 적게 받은 곳은 흐려집니다."],
  detect_seen: ["The picture as the model reads it", "모델이 읽는 이미지"],
  detect_written: ["The boxes that were written", "모델이 출력한 상자"],
  detect_sure_title: ["What is the score?", "점수란 무엇인가요?"],
  detect_sure_1: ["The probability that the model gives to the label of a box, beside all other labels and nothing. The model always writes the same number of boxes; those that it hardly believes in have a low score and are left out.",
    "모든 레이블과 ‘없음’ 가운데 모델이 이 상자의 레이블에 준 확률입니다. 모델은 늘 같은 수의 상자를 출력하며, 확신이 낮은 상자는 점수가 낮아 표시되지 않습니다."],
});
