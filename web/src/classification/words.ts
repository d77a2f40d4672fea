// The words of runs that label a text.

import { both } from "../page/texts";

export const texts = both({
  classify_text: ["Text to label", "분류할 글"],
  classify_hint: ["Type or paste a text…", "글을 입력하거나 붙여 넣으세요…"],
  classify_label: ["The label of the text", "글의 레이블"],
  classify_empty: ["The label appears here as you type, with how probable the model holds each one.",
    "입력하는 대로 레이블이 여기에 나타나고, 모델이 레이블마다 준 확률도 함께 표시됩니다."],
  classify_done: ["Label: {label}, {percent}", "레이블 {label}, 확률 {percent}"],
  classify_all: ["All labels", "모든 레이블"],
  classify_first: ["The {count} most probable labels", "확률이 가장 높은 레이블 {count}개"],
  classify_cut: ["The text is longer than what the model reads at once: what is grey was not read.", "글이 모델이 한 번에 읽는 길이보다 깁니다. 회색 부분은 읽지 않았습니다."],
  classify_sure_title: ["What does this number say?", "이 숫자는 무엇을 뜻하나요?"],
  classify_sure_1: ["The model spreads its belief over the labels that it was trained on, also where none of them fits. A low figure says so; a high one promises nothing about text unlike that of the training.",
    "모델은 학습한 레이블에만 확률을 나누어 주며, 알맞은 레이블이 없어도 그렇게 합니다. 숫자가 낮으면 확신이 없다는 뜻이지만, 학습 데이터와 다른 글에서는 숫자가 높아도 믿을 수 없습니다."],
  why_title: ["What the words have to do with it", "단어와 레이블의 관계"],
  why_measure: ["Words coloured by", "단어의 색"],
  why_gradient: ["Gradient", "기울기"],
  why_attention: ["Attention", "어텐션"],
  why_gradient_about: ["Gradient times input: by how much log P of “{label}” grows where a little more of the word is put in. Blue speaks for the label, orange against it; the deepest colour stands for {most} nats.",
    "기울기 × 입력: 그 단어의 입력을 조금 키울 때 “{label}” 레이블의 로그 확률(log P)이 커지는 정도입니다. 파란색은 레이블에 유리한 단어, 주황색은 불리한 단어이며, 가장 진한 색은 {most} nat에 해당합니다."],
  why_attention_about: ["Attention: how much all rows of the last layer look at the word, on average over rows and heads. The deepest colour stands for {most}.",
    "어텐션: 마지막 층의 모든 벡터에서 그 단어로 향한 어텐션을 벡터와 헤드에 걸쳐 평균한 값입니다. 가장 진한 색은 {most}에 해당합니다."],
  why_no_attention: ["This model has no attention: the gradient alone is shown.", "이 모델에는 어텐션이 없어 기울기만 보여 줍니다."],
  why_warning: ["The two measure different things and often disagree; neither is a reason.", "두 값은 서로 다른 것을 나타내며, 다를 때가 많습니다. 어느 쪽도 판단의 근거는 아닙니다."],
  why_table: ["Both beside each other", "두 값 나란히 보기"],
  why_unread: ["not read", "읽지 않음"],
});
