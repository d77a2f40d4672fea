// The words of runs that fill in blanks.

import { wordsWith } from "../page/preferences.svelte";

export const words = wordsWith({
  fill_text: ["Text with blanks", "빈칸이 있는 글"],
  fill_hint: ["Type a text with blanks: The ___ sleeps.", "빈칸이 있는 글을 입력하세요: The ___ sleeps."],
  fill_blank: ["Blank", "빈칸"],
  fill_blank_title: ["Put ___ where the cursor stands", "커서 위치에 ___을 넣습니다"],
  fill_pieces: ["Pieces of a blank", "빈칸의 서브워드 수"],
  fill_pieces_title: ["How many pieces of the vocabulary a blank stands for: more for words that it has not whole",
    "빈칸 하나에 들어가는 서브워드의 수. 어휘에 통째로 들어 있지 않은 단어를 넣으려면 늘리세요"],
  fill_label: ["The text with its blanks filled", "빈칸을 채운 글"],
  fill_empty: ["Write ___, three underscores, where a word is missing. What could stand there appears here as you type.",
    "단어가 빠진 자리에 밑줄 세 개(___)를 쓰세요. 그 자리에 올 수 있는 말이 입력하는 대로 여기에 나타납니다."],
  fill_done: ["Filled: {text}", "채운 글: {text}"],
  fill_number: ["Blank {number}", "빈칸 {number}"],
  fill_candidates: ["Candidates of blank {number}", "빈칸 {number}의 후보"],
  fill_choose: ["Click a candidate to put it in; the other blanks are asked again.", "후보를 누르면 빈칸에 들어가고, 나머지 빈칸은 모델에 다시 묻습니다."],
  fill_whole: ["No blank is left.", "남은 빈칸이 없습니다."],
  fill_left: ["“{word}” is put in. Blanks left: {left}", "“{word}” 단어를 넣었습니다. 남은 빈칸: {left}"],
  fill_undo_title: ["Take back the last word that was put in", "마지막으로 넣은 단어를 되돌립니다"],
  fill_sure_title: ["What do the figures say?", "이 숫자는 무엇을 뜻하나요?"],
  fill_sure_1: ["How probable the model finds each word in that blank, given the text around it, while the other blanks are open. The model divides its probability among all pieces of its vocabulary. Pieces that cannot stand there, such as half a word, are left out, so the figures need not sum to 100\u00a0%.",
    "다른 빈칸은 비워 둔 채, 주변의 글을 보고 모델이 그 빈칸의 각 단어에 준 확률입니다. 모델은 어휘의 모든 서브워드에 확률을 나누어 줍니다. 그 자리에 올 수 없는 것(예: 단어의 일부)은 뺐으므로 합이 100%가 아닐 수 있습니다."],
  fill_sure_2: ["In the text above, the surest blank is filled first and the others are asked again: words that agree with each other need not be the first of each list.",
    "위의 글에서는 가장 확실한 빈칸부터 채우고 나머지를 다시 묻습니다. 서로 어울리도록 고르므로, 채워진 단어가 각 목록의 1순위와 다를 수 있습니다."],
});
