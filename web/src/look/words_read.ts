// What is called otherwise where a run that is looked into reads a text and writes none.

import { both } from "../page/texts";

/** Blanks are filled in, labels given: all that there is to see is how the text was read. */
export const readTexts = both({
  look_title: ["Look inside a reading", "모델이 글을 읽는 과정 들여다보기"],
  look_text: ["Text to look into", "들여다볼 글"],
  look_hint: ["Type a text…", "글을 입력하세요…"],
  look_invites: ["A text, taken apart as the model reads it. Type one above, and see", "모델이 글을 읽는 과정을 단계별로 살펴봅니다. 위에 글을 입력하면 다음을 볼 수 있습니다."],
  look_offers: [
    [
      "where every head of every layer looked from each word,",
      "what the model would say of the text if a word were hidden or a head switched off,",
      "which heads matter for what it says,",
      "the numbers on their way from words through the layers.",
    ],
    [
      "단어마다, 각 층의 헤드가 어디를 보았는지",
      "단어를 가리거나 헤드를 끄면 모델의 답이 어떻게 달라지는지",
      "모델의 답에 어느 헤드가 중요한지",
      "단어가 벡터로 바뀌어 층을 지나는 과정",
    ],
  ],
  look_done: ["Looked into. The model says: {text}", "계산이 끝났습니다. 모델의 답: {text}"],
  look_source: ["Text, {language}", "{language} 글"],
  part_encoder_about: ["the text looks at itself", "글 안의 단어 사이의 어텐션"],
  person_wrote: ["Reference", "정답"],
  what_if_about: ["Click a word to hide it, or switch a head off below. What the model said at first stays beside what it says then; the run itself is not changed.",
    "단어를 누르면 가릴 수 있고, 아래에서 헤드를 끌 수도 있습니다. 바꾸기 전의 답이 옆에 남으며, 모델 자체는 바뀌지 않습니다."],
  same: ["The model says the same as before.", "모델의 답이 그대로입니다."],
  believed: ["How likely the model finds what it said at first (log P, nearer to 0 is likelier): {before} before, {now} now",
    "처음 답의 로그 확률(log P, 0에 가까울수록 확률이 높음): 이전 {before}, 지금 {now}"],
  heads_worth: ["Every head of every layer. The deeper the blue, the less probable what the model says becomes with the head switched off (log P falls by up to {most}); orange: it becomes more probable.",
    "모든 층의 모든 헤드입니다. 파란색이 진할수록 그 헤드를 껐을 때 이 답의 확률이 더 낮아집니다(log P 감소, 최대 {most}). 주황색이면 오히려 높아집니다."],
  way_about: ["What the model computes of a text. Every piece has one row of numbers, which each layer changes. Choose a word above to see its row: a stroke for each number, blue above zero, orange below.",
    "모델이 글을 읽으며 계산하는 벡터입니다. 서브워드마다 벡터가 하나 있고, 층을 지날 때마다 바뀝니다. 위에서 단어를 고르면 그 벡터가 나타납니다. 성분 하나가 선 하나이며, 0보다 크면 파란색, 작으면 주황색입니다."],
});
