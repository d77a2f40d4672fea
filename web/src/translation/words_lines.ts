// The words of runs that read lines of text in pictures.

import { both } from "../page/texts";

export const texts = both({
  lines_title: ["A picture of a line of text", "글이 한 줄 담긴 이미지"],
  lines_drop: ["Drop the picture to read its line", "이미지를 놓으면 글을 읽습니다"],
  lines_over: ["Write over the picture", "이미지 위에 쓰기"],
  lines_close: ["One line of text, cut close to its letters.", "글이 한 줄만 담기도록 글자에 바짝 맞게 자른 이미지를 넣으세요."],
  lines_answer: ["What the line says", "이미지에 쓰인 내용"],
  lines_empty: ["The picture appears here, with what the model writes of it.", "이미지와, 모델이 읽고 쓴 글이 여기에 나타납니다."],
  lines_none: ["The model writes nothing of this picture.", "모델이 이 이미지에서 읽어 낸 글이 없습니다."],
  lines_sure: ["Mean probability of its tokens: {share}", "토큰의 평균 확률: {share}"],
  lines_looked_1: ["The line as the model reads it. Click a token to see where the model looked while it wrote it: what got little of its attention is dimmed.",
    "모델에 입력되는 그대로의 줄입니다. 토큰을 누르면 모델이 그 토큰을 쓰는 동안 어디를 보았는지 나타나며, 어텐션을 적게 받은 곳은 흐려집니다."],
  lines_seen: ["The line as the model reads it", "모델이 읽는 줄"],
  lines_how_title: ["How is the picture read?", "이미지는 어떻게 읽나요?"],
  lines_how_1: ["The picture becomes grey and as high as the recipe says; its columns of pixels go into the model from left to right. There is no vocabulary of the source: a word with two letters swapped still looks like the word.",
    "이미지를 흑백으로 바꾸고 레시피에 정한 높이로 맞춘 다음, 픽셀의 세로줄을 왼쪽부터 차례로 모델에 넣습니다. 원문 어휘가 따로 없으므로, 글자 두 개가 뒤바뀐 단어도 원래 단어와 비슷하게 보입니다."],
  lines_how_2: ["A run that has learned to translate writes the translation; one that has learned to read writes the line itself.",
    "번역을 배운 모델은 번역을 쓰고, 읽기를 배운 모델은 이미지의 글을 그대로 씁니다."],
});
