// The words of the tab Figures.

export const figuresEnglish = {
  figures: "Figures",
  figures_contents: "All figures",
  figures_choose: "Figure",
  figures_groups: {
    positions: "Positions",
    attention: "Attention",
    training: "Cost, training, decoding",
    run: "A trained run at work",
  },
  figures_encoding: "Encoding",
  figures_sentence: "Sentence",
  figures_sentence_show: "Show",
  figures_of_run: (run: string) => `Looks into the run ${run}.`,
  figures_by_hand: "Make it on your machine",
  figures_cannot: "cannot be made here",
  figures_data: "Numbers (CSV)",
  figures_picture: "Picture (SVG)",
  figures_busy: "Computing…",
  figures_previous: "Previous",
  figures_next: "Next",
  figures_inks: (most: string) => `blue +, orange −, deepest ±${most}`,
  figures_map: (title: string, rows: string, columns: string) =>
    `${title}: ${rows} rows, ${columns} columns. Arrow keys move the cell that is read out.`,
  figures_hops: (word: string, first: string, through: string, second: string) =>
    `“${word}” looked at ${first}; “${through}” had looked at ${second}.`,
};

export const figuresKorean: typeof figuresEnglish = {
  figures: "그림",
  figures_contents: "모든 그림",
  figures_choose: "그림",
  figures_groups: {
    positions: "위치 인코딩",
    attention: "어텐션",
    training: "비용, 학습, 디코딩",
    run: "학습된 모델의 실제 동작",
  },
  figures_encoding: "위치 인코딩",
  figures_sentence: "문장",
  figures_sentence_show: "적용",
  figures_of_run: (run) => `사용한 모델: ${run}`,
  figures_by_hand: "이 그림을 만드는 명령",
  figures_cannot: "여기서는 만들 수 없음",
  figures_data: "수치 (CSV)",
  figures_picture: "이미지 파일 (SVG)",
  figures_busy: "계산하는 중…",
  figures_previous: "이전",
  figures_next: "다음",
  figures_inks: (most) => `파란색 +, 주황색 −, 가장 진한 색 ±${most}`,
  figures_map: (title, rows, columns) =>
    `${title}: ${rows}행 ${columns}열. 화살표 키로 읽을 칸을 옮깁니다.`,
  figures_hops: (word, first, through, second) =>
    `“${word}” 단어가 본 것: ${first}. “${through}” 단어가 본 것: ${second}.`,
};
