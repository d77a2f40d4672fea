// The words of runs that tag words.

import { wordsWith } from "../page/preferences.svelte";

export const words = wordsWith({
  tag_text: ["Text to tag", "태그를 붙일 글"],
  tag_label: ["The words and their tags", "단어와 태그"],
  tag_empty: ["The words appear here as you type, each with its tag.", "입력하는 대로 단어가 태그와 함께 여기에 나타납니다."],
  tag_cut: ["Words stand between spaces, cut as in the text that the run has learned from; the Penn Treebank parts “sleeps .” and “does n't”.",
    "단어는 띄어쓰기로 나누며, 모델이 학습한 글과 같은 방식이어야 합니다. Penn Treebank는 “sleeps .”, “does n't”처럼 나눕니다."],
  tag_done: ["Tagged: {words}", "태깅 결과: {words}"],
  tag_help: ["Use the arrow keys to move from word to word, and see below what else each could be.",
    "화살표 키로 단어 사이를 이동하면, 그 단어에 붙을 수 있는 다른 태그가 아래에 나타납니다."],
  tag_legend: ["Tags in this text", "이 글의 태그"],
  tag_legend_spans: ["Kinds of spans in this text", "이 글에 있는 구간의 종류"],
  tag_no_spans: ["The run finds no span in this text: every word has the tag O, outside.", "이 글에서 찾은 구간이 없습니다. 모든 단어의 태그가 O(구간 밖)입니다."],
  tag_point: ["Click a word, or go to it by keyboard, to see which other tags it could have had.",
    "단어를 누르거나 키보드로 이동하면, 그 단어에 붙을 수 있는 다른 태그를 보여 줍니다."],
  tag_could: ["Tags that “{word}” could have", "“{word}” 단어에 붙을 수 있는 태그"],
  tag_table: ["Word by word", "단어별로 보기"],
  tag_is: ["Tag", "태그"],
  tag_parts: ["The text is longer than what the model reads at once: it was read in {parts} parts, each without the words around it.",
    "글이 모델이 한 번에 읽는 길이보다 깁니다. {parts}개 부분으로 나누어 읽었으며, 부분마다 앞뒤 부분의 단어는 보지 못했습니다."],
  tag_sure_1: ["For each word the model spreads its belief over the tags that it was trained on, also where none of them fits. Words with a dotted line got less than 80\u00a0%, with a double line less than 50\u00a0%.",
    "모델은 단어마다 학습한 태그에만 확률을 나누어 주며, 알맞은 태그가 없어도 그렇게 합니다. 점선 밑줄이 그어진 단어는 확률이 80% 미만, 이중 밑줄이 그어진 단어는 50% 미만입니다."],
  tag_sure_2: ["A colour stands for one tag, or one kind of span. Where there are more of them than colours, several share one: the name beside the word says which it is.",
    "색 하나는 태그 하나 또는 구간의 종류 하나를 나타냅니다. 색보다 종류가 많으면 여러 종류가 같은 색을 씁니다. 무엇인지는 단어 옆의 이름으로 확인하세요."],
});
