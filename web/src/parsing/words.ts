// The words of the tab Parse.

export const parseEnglish = {
  parse: "Parse",
  parse_text: "Sentence to parse",
  parse_hint: "Type a sentence, its words between spaces: The cat sleeps .",
  parse_empty: "The tree appears here as you type.",
  parse_cut: "Words stand between spaces, cut as in the treebank that the run has learned from; the Penn Treebank parts “sleeps .” and “does n't”.",
  parse_label: (sentence: string) => `Tree of “${sentence}”. Arrow keys go from bracket to bracket, up, down and to the sides.`,
  parse_done: (text: string) => `Tree: ${text}`,
  parse_score: (log: string) => `log P ${log}`,
  parse_bracket: (label: string, held: string) => `${label}: ${held}`,
  parse_point: "Point at a bracket, tap it or go to it by keyboard, to see where the model looked when it opened it.",
  parse_looked: (label: string, held: string, where: string) => `To open ${label} over “${held}” the model looked at: ${where}`,
  parse_looked_nowhere: (label: string) => `This model has no attention to show for ${label}.`,
  parse_brackets: "In brackets",
  parse_sure_title: "What does the tree say?",
  parse_sure_1:
    "Each label is a phrase over the words beneath it, as the treebank names phrases: S a sentence, NP a noun phrase, VP a verb phrase, PP a phrase with a preposition. The search writes no output but a tree over exactly these words, also where the sentence makes no sense.",
  parse_sure_2:
    "The colour of a word grows with the share of the attention that it got when the bracket was opened: by the mean of the heads of the layer that looks most surely at one word. It says where values were taken from, and is no reason.",
};

export const parseKorean: typeof parseEnglish = {
  parse: "구문 분석",
  parse_text: "분석할 문장",
  parse_hint: "단어 사이를 띄어 문장을 입력하세요: The cat sleeps .",
  parse_empty: "입력하는 대로 트리가 여기에 나타납니다.",
  parse_cut: "단어는 띄어쓰기로 나누며, 모델이 학습한 트리뱅크와 같은 방식이어야 합니다. Penn Treebank는 “sleeps .”, “does n't”처럼 나눕니다.",
  parse_label: (sentence) => `“${sentence}” 문장의 트리. 화살표 키로 위, 아래, 옆의 괄호로 옮깁니다.`,
  parse_done: (text) => `트리: ${text}`,
  parse_score: (log) => `log P ${log}`,
  parse_bracket: (label, held) => `${label}: ${held}`,
  parse_point: "괄호를 가리키거나 키보드로 옮기면, 모델이 그 괄호를 열 때 어디를 보았는지 보여 줍니다.",
  parse_looked: (label, held, where) => `“${held}” 위의 ${label} 괄호를 열 때 모델이 본 것: ${where}`,
  parse_looked_nowhere: (label) => `이 모델에는 ${label} 괄호에 대해 보여 줄 어텐션이 없습니다.`,
  parse_brackets: "괄호 표기",
  parse_sure_title: "이 트리는 무엇을 뜻하나요?",
  parse_sure_1:
    "각 기호는 그 아래 단어들이 이루는 구를 트리뱅크의 이름으로 나타냅니다. S는 문장, NP는 명사구, VP는 동사구, PP는 전치사구입니다. 탐색은 문장에 뜻이 없더라도 이 단어들을 빠짐없이 잎으로 갖는 트리만 만듭니다.",
  parse_sure_2:
    "괄호를 열 때 받은 어텐션 비중이 클수록 단어의 색이 진합니다. 한 단어를 가장 확실하게 보는 층의 헤드를 평균한 값입니다. 값을 어디서 가져왔는지를 보여 줄 뿐, 판단의 근거는 아닙니다.",
};
