// The words of the gallery of figures.

import { both } from "../page/texts";

export const figures = both({
  figures: ["Figures", "그림"],
  figures_contents: ["All figures", "모든 그림"],
  figures_choose: ["Figure", "그림"],
  figures_groups: {
    positions: ["Positions", "위치 인코딩"],
    attention: ["Attention", "어텐션"],
    training: ["Cost, training, decoding", "비용, 학습, 디코딩"],
    run: ["A trained run at work", "학습된 모델의 실제 동작"],
  },
  figures_encoding: ["Encoding", "위치 인코딩"],
  figures_sentence: ["Sentence", "문장"],
  figures_sentence_show: ["Show", "적용"],
  figures_of_run: ["Looks into the run {run}.", "사용한 모델: {run}"],
  figures_by_hand: ["Make it on your machine", "이 그림을 만드는 명령"],
  figures_cannot: ["Not of this run", "이 모델로는 만들 수 없음"],
  figures_busy: ["Computing…", "계산하는 중…"],
  figures_previous: ["Previous", "이전"],
  figures_next: ["Next", "다음"],
  figures_inks: ["blue +, orange −, deepest ±{most}", "파란색 +, 주황색 −, 가장 진한 색 ±{most}"],
  figures_map: ["{title}: {rows} rows, {columns} columns. Arrow keys move the cell that is read out.",
    "{title}: {rows}행 {columns}열. 화살표 키로 읽을 칸을 옮깁니다."],
  figures_hops: ["“{word}” looked at {first}; “{through}” had looked at {second}.", "“{word}” 단어가 본 것: {first}. “{through}” 단어가 본 것: {second}."],
});
