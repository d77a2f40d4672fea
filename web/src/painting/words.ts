// The words of runs that paint.

import { wordsWith } from "../page/preferences.svelte";

export const words = wordsWith({
  paint_text: ["Caption", "설명"],
  paint_hint: ["Say what is to be painted", "무엇을 그릴지 쓰세요"],
  paint_picture: ["The picture", "이미지"],
  paint_empty: ["The picture appears here, patch by patch, as the model writes it.", "모델이 코드를 쓰는 순서대로 이미지가 패치 하나씩 여기에 나타납니다."],
  paint_done: ["Pictures: {count}", "이미지 {count}장"],
  paint_which: ["Picture {number}: probability {probability}", "이미지 {number}: 확률 {probability}"],
  paint_others: ["Draw others", "다른 이미지 뽑기"],
  paint_likeliest: ["Most probable", "가장 확률이 높은 이미지"],
  paint_again: ["Show again how it was painted", "그린 순서 다시 보기"],
  paint_save: ["Save as PNG", "PNG로 저장"],
  paint_unknown: ["No caption of the training has {words}: the model does not know what to paint for that.",
    "학습에 쓴 설명에 없는 말: {words}. 모델은 이 말로 무엇을 그려야 할지 모릅니다."],
  paint_looked: ["Words of the caption: choose one to see which patches looked at it", "설명의 단어: 하나를 고르면 그 단어에 어텐션이 향한 패치가 표시됩니다"],
  paint_patch: ["Row {row}, column {column}: probability {probability}", "{row}행 {column}열: 확률 {probability}"],
  paint_point: ["Point at a patch to see which words it looked at.", "패치에 커서를 올리면 모델이 그 패치를 쓸 때 본 단어가 표시됩니다."],
  paint_how_title: ["How does it paint?", "어떻게 그리나요?"],
  paint_how_1: ["The model writes a picture as it would write a sentence: one code for each patch, from left to right and from top to bottom. Another network, which learned the codes, makes the pixels of them.",
    "모델은 문장을 쓰듯이 코드를 차례로 써서 이미지를 만듭니다. 왼쪽에서 오른쪽으로, 위에서 아래로 패치마다 코드 하나를 씁니다. 코드를 배운 다른 신경망이 그 코드로 픽셀을 만듭니다."],
  paint_how_2: ["While it writes a code, it looks at the words of the caption. What you see is the mean of the heads of the layer that looks most surely at one word. It does not prove why a code was chosen.",
    "코드를 쓰는 동안 모델은 설명의 단어를 봅니다. 화면의 값은 한 단어를 가장 뚜렷하게 보는 층의 헤드를 평균한 것입니다. 그 코드를 왜 골랐는지 증명하지는 않습니다."],
});
