// The words of runs that parse.

import { wordsWith } from "../page/preferences.svelte";
import { both } from "../page/texts";

export const words = wordsWith({
  parse_text: ["Sentence to parse", "분석할 문장"],
  parse_answer: ["The tree", "트리"],
  parse_empty: ["The tree appears here as you type.", "입력하는 대로 트리가 여기에 나타납니다."],
  parse_cut: ["Words stand between spaces, cut as in the treebank that the run has learned from; the Penn Treebank parts “sleeps .” and “does n't”.",
    "단어는 띄어쓰기로 나누며, 모델이 학습한 트리뱅크와 같은 방식이어야 합니다. Penn Treebank는 “sleeps .”, “does n't”처럼 나눕니다."],
  parse_label: ["Tree of “{sentence}”. Arrow keys go from bracket to bracket, up, down and to the sides.",
    "“{sentence}” 문장의 트리. 화살표 키로 위, 아래, 옆의 괄호로 이동합니다."],
  parse_done: ["Tree: {text}", "트리: {text}"],
  parse_point: ["Point at a bracket, tap it or go to it by keyboard, to see where the model looked when it opened it.",
    "괄호에 커서를 올리거나 괄호를 누르거나 키보드로 이동하면, 모델이 그 괄호를 열 때 어디를 보았는지 보여 줍니다."],
  parse_looked: ["To open {label} over “{held}” the model looked at: {where}", "“{held}” 위의 {label} 괄호를 열 때 모델이 본 것: {where}"],
  parse_looked_nowhere: ["This model has no attention to show for {label}.", "이 모델에는 {label} 괄호를 열 때의 어텐션이 없습니다."],
  parse_brackets: ["In brackets", "괄호 표기"],
  parse_sure_title: ["What does the tree say?", "이 트리는 무엇을 뜻하나요?"],
  parse_sure_1: ["Each label is a phrase over the words beneath it, as the treebank names phrases: S a sentence, NP a noun phrase, VP a verb phrase, PP a phrase with a preposition. The search writes no output but a tree over exactly these words, also where the sentence makes no sense.",
    "각 기호는 그 아래 단어들이 이루는 구를 트리뱅크의 이름으로 나타냅니다. S는 문장, NP는 명사구, VP는 동사구, PP는 전치사구입니다. 탐색은 문장에 뜻이 없더라도 이 단어들이 빠짐없이 잎이 되는 트리만 만듭니다."],
  parse_sure_2: ["The colour of a word grows with the share of the attention that it got when the bracket was opened: by the mean of the heads of the layer that looks most surely at one word. It says where values were taken from, and is no reason.",
    "괄호를 열 때 받은 어텐션 비중이 클수록 단어의 색이 진합니다. 한 단어를 가장 뚜렷하게 보는 층의 헤드를 평균한 값입니다. 값을 어디서 가져왔는지를 보여 줄 뿐, 판단의 근거는 아닙니다."],
});

/** What is called otherwise where it is looked into: what is a translation elsewhere is a tree. */
export const lookTexts = both({
  look_title: ["Look inside a parse", "구문 분석 들여다보기"],
  look_invites: ["A tree, taken apart while it is written. Type a sentence above, and see", "모델이 트리를 만드는 과정을 단계별로 살펴봅니다. 위에 문장을 입력하면 다음을 볼 수 있습니다."],
  look_offers: [
    [
      "where every head of every layer looked when it opened or closed a bracket,",
      "which tree the model would write if a word were hidden, a head switched off, or another bracket chosen,",
      "what every step of the search chose among,",
      "the numbers on their way from words through the layers to brackets.",
    ],
    [
      "괄호를 열거나 닫을 때마다 각 층의 헤드가 어디를 보았는지",
      "단어를 가리거나, 헤드를 끄거나, 다른 괄호를 고르면 어떤 트리가 되는지",
      "탐색의 단계마다 어떤 후보를 비교했는지",
      "단어가 벡터로 바뀌어 층을 지나 괄호가 되는 과정",
    ],
  ],
  look_done: ["Looked into. Tree: {text}", "계산이 끝났습니다. 트리: {text}"],
  look_source: ["Sentence, {language}", "{language} 문장"],
  look_target: [() => "Tree", () => "트리"],
  part_encoder_about: ["sentence looks at itself", "문장의 단어 사이의 어텐션"],
  part_cross_about: ["tree looks at sentence", "트리에서 문장으로 향한 어텐션"],
  part_decoder_about: ["tree looks back at itself", "트리에서 앞서 쓴 부분으로 향한 어텐션"],
  what_if_about: ["Click a word of the sentence to hide it, a bracket of the tree to put another in its place, or a head below to switch it off. The old tree stays beside the new one; the run itself is not changed.",
    "문장의 단어를 누르면 가릴 수 있고, 트리의 괄호를 누르면 다른 것으로 바꿀 수 있습니다. 아래에서 헤드를 끌 수도 있습니다. 바꾸기 전의 트리가 옆에 남으며, 모델 자체는 바뀌지 않습니다."],
  same: ["The tree stays as it was.", "트리가 그대로입니다."],
  believed: ["How likely the model finds the first tree (log P, nearer to 0 is likelier): {before} before, {now} now",
    "처음 나온 트리의 로그 확률(log P, 0에 가까울수록 확률이 높음): 이전 {before}, 지금 {now}"],
  word: ["Word or bracket", "단어 또는 괄호"],
  look_point: ["Point at a word or a bracket to see where it looked. Click to keep it selected and to change something.",
    "단어나 괄호에 커서를 올리면 거기서 어텐션이 향한 곳이 나타납니다. 누르면 고정되며, 바꿔 볼 수 있습니다."],
  look_keys: ["Use the arrow keys to move from one to the next, and Enter to select.", "화살표 키로 이동하고, Enter 키로 고정합니다."],
  way_about: ["What the model computes, from words to numbers to brackets. Every word and every bracket has one row of numbers, which each layer changes. Choose one above to see its row: a stroke for each number, blue above zero, orange below.",
    "모델이 단어에서 벡터를 거쳐 괄호를 계산하는 과정입니다. 단어와 괄호마다 벡터가 하나 있고, 층을 지날 때마다 바뀝니다. 위에서 하나를 고르면 그 벡터가 나타납니다. 성분 하나가 선 하나이며, 0보다 크면 파란색, 작으면 주황색입니다."],
  here_could_about: ["What may stand here, so that a tree over exactly these words can follow, and how probable the model found each. Choose one, and the rest follows from it.",
    "이 단어들로 트리를 완성할 수 있는 기호와 그 확률입니다. 하나를 고르면 나머지가 거기서부터 이어집니다."],
  heads_worth: ["Every head of every layer. The deeper the blue, the less probable this tree becomes with the head switched off (log P falls by up to {most}); orange: it becomes more probable.",
    "모든 층의 모든 헤드입니다. 파란색이 진할수록 그 헤드를 껐을 때 이 트리의 확률이 더 낮아집니다(log P 감소, 최대 {most}). 주황색이면 오히려 높아집니다."],
  chose_looking: [
    (symbol: string, where: string, list: string) => `To choose “${symbol}” the model looked at: ${list} · ${where}`,
    (symbol: string, where: string, list: string) => `“${symbol}” 기호를 고를 때 본 것: ${list} · ${where}`,
  ],
  looked_at_by: [
    (one: string, where: string, list: string) => `“${one}” was looked at by: ${list} · ${where}`,
    (one: string, where: string, list: string) => `“${one}” 쪽으로 향한 어텐션: ${list} · ${where}`,
  ],
  looked_by_nobody: ["Nothing looked at “{one}” · {where}", "“{one}” 쪽으로 향한 어텐션이 없습니다 · {where}"],
  table_of: ["Where “{one}” looked", "“{one}”에서 어텐션이 향한 곳"],
  table_by: ["Who looked at “{one}”", "“{one}” 쪽으로 향한 어텐션"],
  person_wrote: ["Reference", "정답 트리"],
});
