// The words of the place Run, and what the server says of a run, in Korean.

import { both } from "../page/texts";
import { doubtKorean } from "./words_doubts";
import { type TaskNames, verdictKorean } from "./words_verdict";

export const run = both({
  run_beside: ["Beside", "비교할 모델"],
  run_columns: {
    name: ["Run", "모델"],
    does: ["Task", "과제"],
    size: ["Parameters", "파라미터"],
    score: ["Score", "점수"],
  },
  run_scores: ["Scores", "점수"],
  run_not_measured: ["not measured on this test set", "이 테스트 데이터로는 평가하지 않음"],
  run_signature: ["Signature", "평가 서명"],
  run_facts: ["Facts", "개요"],
  run_curves: ["Training", "학습 과정"],
  run_smooth: ["Smoothing", "평활화"],
  run_as_measured: ["as measured", "원래 값"],
  run_log: ["Logarithmic axis", "로그 축"],
  run_samples: ["Sentences it never saw", "학습할 때 보지 못한 문장"],
  run_data: ["Data", "데이터"],
  run_recipe: ["Recipe", "레시피"],
  run_limits: ["What not to trust it with", "이 모델을 믿으면 안 되는 경우"],
  recipe_about: ["Everything about this run in one file. Trained again with it, it comes out the same.",
    "이 학습의 모든 설정이 담긴 파일입니다. 이 파일로 다시 학습하면 같은 결과가 나옵니다."],
  source: ["Source", "원문"],
  person_wrote: ["Reference", "참조 번역"],
  measured_on: ["Measured on", "평가에 쓴 데이터"],
  no_scores: ["This run has not been measured yet: dragoman evaluate does it.", "아직 평가하지 않았습니다. dragoman evaluate 명령으로 평가할 수 있습니다."],
  chart_label: ["{title}. Last: {last}. Arrow keys go from point to point.", "{title}. 마지막 값: {last}. 화살표 키로 점 사이를 이동합니다."],
  /** What terms mean, for those who point at them. */
  terms: {
    BLEU: ["How many runs of one to four words the translations share with those of people, 0 to 100. Only scores of one test set and one signature can be compared.",
      "모델의 번역과 사람의 번역이 연속한 단어 1–4개의 묶음(n-gram)을 얼마나 공유하는지 나타냅니다(0–100). 테스트 데이터와 평가 서명이 같은 점수끼리만 비교할 수 있습니다."],
    chrF: ["The same for runs of letters: kinder to other forms of the right word.", "글자의 묶음을 같은 방식으로 셉니다. 단어의 형태만 다른 번역에는 BLEU보다 덜 엄격합니다."],
    "chrF++": ["chrF with runs of one and two words as well.", "chrF에 단어 1–2개의 묶음을 더해 센 점수입니다."],
    TER: ["How much a person would have to edit, in percent of the words: less is better.", "사람이 고쳐야 하는 양이 단어 수의 몇 %인지 나타냅니다. 낮을수록 좋습니다."],
    WER: ["Words that were heard wrong, left out or added, in percent of the words that were said: less is better.",
      "잘못 들었거나 빠뜨렸거나 덧붙인 단어가 실제로 말한 단어 수의 몇 %인지 나타냅니다. 낮을수록 좋습니다."],
    CER: ["The same of characters: kinder to small mistakes.", "같은 방식으로 글자를 셉니다. 작은 실수에는 덜 엄격합니다."],
    loss: ["The mean of −log P of what is right (natural logarithm): less is better.", "정답의 −log P(밑이 e인 로그)의 평균입니다. 낮을수록 좋습니다."],
    accuracy: ["How many of a hundred the model got right.", "모델이 맞힌 비율(%)입니다."],
    macro_f1: ["F1 of each label, the harmonic mean of its precision and its recall, and of those the plain mean: a label with few texts counts as much as one with many.",
      "레이블마다 정밀도와 재현율의 조화평균인 F1을 구해 그대로 평균한 값입니다. 글 수가 적은 레이블도 글 수가 많은 레이블과 같은 비중으로 셉니다."],
    precision: ["How many of a hundred brackets that the model set stand in the treebank's tree too.", "모델이 만든 괄호 가운데 트리뱅크의 트리에도 있는 괄호의 백분율입니다."],
    recall: ["How many of a hundred brackets of the treebank's tree the model set.", "트리뱅크의 트리에 있는 괄호 가운데 모델이 만든 괄호의 백분율입니다."],
    f1: ["The harmonic mean of precision and recall over all brackets.", "모든 괄호에서 구한 정밀도와 재현율의 조화평균입니다."],
    "tagging accuracy": ["How many of a hundred words got the right tag.", "태그를 맞힌 단어의 백분율입니다."],
    "tagging known": ["The same of words that stand in the training text.", "학습 데이터에 있는 단어만 센 정확도입니다."],
    "tagging unknown": ["The same of words that do not stand in the training text: what the model makes of their letters and of the words around them.",
      "학습 데이터에 없는 단어만 센 정확도입니다. 모델은 철자와 앞뒤 단어만 보고 맞혀야 합니다."],
    "tagging precision": ["How many of a hundred spans that the model found are there, from the right first to the right last word and of the right kind.",
      "모델이 찾은 구간 가운데 첫 단어, 마지막 단어, 종류가 모두 맞은 구간의 백분율입니다."],
    "tagging recall": ["How many of a hundred spans that are there the model found.", "실제로 있는 구간 가운데 모델이 찾은 구간의 백분율입니다."],
    "tagging f1": ["The harmonic mean of precision and recall over all spans, as conlleval counts them.",
      "모든 구간에서 구한 정밀도와 재현율의 조화평균입니다. conlleval과 같은 방식으로 셉니다."],
    ap50: ["The mean area under precision over recall of the boxes of each category, as COCO counts it: a box is right if it overlaps a true one by half of both together.",
      "범주마다 재현율에 따른 정밀도 곡선의 아래 넓이를 COCO 방식으로 구해 평균한 값입니다. 실제 상자와 겹친 넓이가 두 상자를 합한 넓이의 절반 이상이면 맞은 것으로 봅니다."],
    ap: ["The same, as a mean over overlaps from 50 to 95 percent: it also counts how exactly boxes lie.",
      "겹침 기준을 50%에서 95%까지 바꿔 가며 구한 값의 평균으로, 상자의 위치가 얼마나 정확한지도 반영합니다."],
    exact: ["How many of a hundred trees have all brackets right.", "모든 괄호가 맞은 트리의 백분율입니다."],
    tags: ["How many of a hundred words got the right part of speech.", "품사를 맞힌 단어의 백분율입니다."],
    f1_40: ["F1 of the sentences of at most 40 words, as parsers have long been compared.", "40단어 이하인 문장만의 F1입니다. 구문 분석기를 비교할 때 오래전부터 쓰는 기준입니다."],
    exact_40: ["How many of a hundred sentences of at most 40 words have all brackets right.", "40단어 이하인 문장 가운데 모든 괄호가 맞은 문장의 백분율입니다."],
    pseudo_perplexity: ["Every token masked in turn and guessed from all others: among how many equally probable ones the model would be as unsure. Only those of one vocabulary compare.",
      "토큰을 하나씩 가리고 나머지를 보고 맞힐 때의 혼란도(perplexity)입니다. 어휘가 같은 모델끼리만 비교할 수 있습니다."],
    perplexity: ["Among how many equally probable tokens the model would be as unsure. Only those of one vocabulary compare.",
      "모델이 확률이 같은 토큰 몇 개 중에서 고를 때만큼 망설이는지를 나타냅니다. 어휘가 같은 모델끼리만 비교할 수 있습니다."],
    bits_per_byte: ["Bits that a code by this model needs for each byte of the text: less is better. They compare across vocabularies.",
      "이 모델로 글을 압축할 때 1바이트마다 드는 비트 수입니다. 작을수록 좋고, 어휘가 달라도 비교할 수 있습니다."],
    "nats per masked token": ["−log P of the token that was masked (natural logarithm): less is better.", "가린 토큰의 −log P(밑이 e인 로그)입니다. 낮을수록 좋습니다."],
    "nats per text": ["−log P of the right label (natural logarithm): less is better.", "정답 레이블의 −log P(밑이 e인 로그)입니다. 낮을수록 좋습니다."],
    "nats per word": ["−log P of the right tag (natural logarithm): less is better.", "정답 태그의 −log P(밑이 e인 로그)입니다. 낮을수록 좋습니다."],
    "nats per target token": ["−log P of the right token (natural logarithm). With label smoothing it does not reach 0.",
      "정답 토큰의 −log P(밑이 e인 로그)입니다. 레이블 스무딩을 쓰면 0까지 내려가지 않습니다."],
    "before clipping": ["The length of the gradient as it was, before it was cut to the greatest that the recipe allows.",
      "레시피가 허용하는 최댓값으로 자르기 전의 기울기 노름입니다."],
    RMS: ["Root mean square: the square root of the mean of the squares, the usual size of a number of the row.",
      "제곱평균제곱근입니다. 제곱의 평균에 제곱근을 씌운 값으로, 벡터 성분의 대표적인 크기입니다."],
    "log P": ["The logarithm of a probability, to the base e: 0 is certain, −0.7 is one half, −2.3 one tenth.",
      "확률의 자연로그입니다. 0이면 확실하고, −0.7이면 1/2, −2.3이면 1/10입니다."],
  },
});

/** What the server says of a run in English. */
const NAMED: Record<string, string> = {
  Loss: "손실",
  "Development scores": "검증 데이터 점수",
  "Learning rate": "학습률",
  "Gradient norm": "기울기 노름",
  "target token": "토큰",
  "target tokens": "번역문 토큰",
  "masked token": "가린 토큰",
  "masked tokens": "가린 토큰",
  word: "단어",
  "before clipping": "클리핑 전",
  "bits per byte": "바이트당 비트",
  Speed: "속도",
  training: "학습 데이터",
  development: "검증 데이터",
  best: "최고",
  update: "업데이트",
  updates: "업데이트",
  parameters: "파라미터",
  vocabulary: "어휘",
  "masked tokens seen": "가려서 학습한 토큰",
  time: "시간",
  weights: "저장된 가중치",
  unknown: "알 수 없음",
  "Sentence pairs": "문장 쌍",
  Pairs: "문장 쌍",
  Texts: "글",
  Corpora: "말뭉치",
  Cleaning: "정제",
  "What looks wrong": "문제가 있어 보이는 것",
  part: "구분",
  pairs: "문장 쌍",
  texts: "글",
  Sentences: "문장",
  sentences: "문장",
  "Tag by tag": "태그별 점수",
  tag: "태그",
  words: "단어",
  Spans: "구간",
  spans: "구간",
  span: "구간의 종류",
  "Confused most often": "가장 자주 혼동한 것",
  "taken for": "모델의 답",
  "Surest mistakes": "가장 확신한 오답",
  line: "줄",
  probability: "확률",
  "of the tag": "정답 태그의 확률",
  Trees: "트리",
  trees: "트리",
  text: "글",
  what: "내용",
  lines: "줄",
  name: "이름",
  weight: "비중",
  filter: "필터",
  dropped: "제외",
  "first examples": "첫 예시",
  "SHA-256 (first 16 digits)": "SHA-256 (앞 16자리)",
  train: "학습",
  dev: "검증",
  test: "테스트",
  invalid_utf8: "잘못된 UTF-8",
  control_characters: "제어 문자",
  empty: "빈 줄",
  length: "길이",
  length_ratio: "길이 비율",
  identical: "원문과 같은 번역문",
  duplicates: "중복",
  language: "다른 언어",
  "BLEU, lower-cased Moses tokens": "BLEU, 소문자 Moses 토큰",
  "the demo's test set": "데모의 테스트 데이터",
  "the held-out test set": "따로 떼어 둔 테스트 데이터",
  "The demo corpus is synthetic: a small grammar generated it. High scores only show that the program works; they say nothing about real text.":
    "데모 말뭉치는 작은 문법으로 만든 합성 데이터입니다. 점수가 높다는 것은 프로그램이 제대로 작동한다는 뜻일 뿐, 실제 글에 대해서는 아무것도 말해 주지 않습니다.",
  "It knows about 300 words and a few kinds of sentences.":
    "아는 단어가 300개 남짓이고, 문장의 종류도 몇 가지뿐입니다.",
  "It translates each sentence without knowing the sentences around it.":
    "문장을 하나씩 따로 번역하며, 앞뒤 문장은 알지 못합니다.",
  "It knows the voices, accents and microphones of its training data best.":
    "학습 데이터와 비슷한 목소리, 억양, 마이크일 때 가장 정확합니다.",
  "It may leave out or invent words, especially in silence and noise.":
    "단어를 빠뜨리거나 지어낼 수 있습니다. 조용한 부분이나 잡음에서 특히 그렇습니다.",
  "It may leave out, add or invent; check numbers and names.":
    "내용을 빠뜨리거나 덧붙이거나 지어낼 수 있습니다. 숫자와 이름은 다시 확인하세요.",
  "The text is generated: nothing is cleaned.": "프로그램이 만든 글이므로 정제하지 않습니다.",
  "It writes what its training text makes likely, whether it is true or not.":
    "학습 데이터에 비추어 그럴듯한 것을 쓸 뿐이며, 사실인지는 알지 못합니다.",
  accuracy: "정확도",
  "macro F1": "매크로 F1",
  perplexity: "혼란도(perplexity)",
  "pseudo-perplexity": "유사 혼란도(pseudo-perplexity)",
  loss: "손실",
  "It fills in what its training text makes likely, whether it is true or not.":
    "학습한 글에서 그럴듯한 내용으로 빈칸을 채웁니다. 사실인지는 따지지 않습니다.",
  "It chooses among the labels that it was trained on, even if none of them fits.":
    "학습한 레이블 가운데에서만 고르며, 알맞은 것이 없어도 하나를 고릅니다.",
  "It chooses among the tags that it was trained on, even if none of them fits.":
    "학습한 태그 가운데에서만 고르며, 알맞은 것이 없어도 하나를 고릅니다.",
  "It tags words as in its training text, separated by spaces.":
    "학습 데이터와 같은 방식으로, 공백으로 나눈 단어에 태그를 붙입니다.",
  "It finds only the categories that it was trained on, and at most boxes.most boxes.":
    "학습한 범주만 찾으며, 상자를 boxes.most개까지만 찾습니다.",
  "It does not see what is cut off when a picture is resized.":
    "이미지를 읽는 크기에 맞출 때 잘려 나간 부분은 보지 못합니다.",
  "It works for pictures like those in its training; others become blurred or wrong.":
    "학습한 것과 비슷한 이미지만 제대로 나타냅니다. 다른 이미지는 흐려지거나 틀리게 나옵니다.",
  "It paints only what its training captions describe, in pictures of one size.":
    "학습한 설명에 나오는 것만 그리며, 이미지 크기는 한 가지입니다.",
  "It shows no more detail than its codes can represent.":
    "코드로 표현할 수 있는 것보다 자세히는 그리지 못합니다.",
  RMSE: "RMSE",
  "codebook perplexity": "코드북 혼란도(perplexity)",
  "codes used": "쓰인 코드 수",
  "bits per code": "코드당 비트",
  "exact pictures": "완전히 일치한 이미지",
  "codes right": "맞은 코드",
  "RMSE of the true codes": "실제 코드의 RMSE",
  "judged right": "판정 모델이 맞다고 본 비율",
  "judged right, of the true codes": "판정 모델이 맞다고 본 비율(실제 코드)",
  "judged right, of the true pictures": "판정 모델이 맞다고 본 비율(실제 이미지)",
  "squared error per picture": "이미지당 제곱 오차",
  Pictures: "이미지",
  pictures: "이미지",
  Recordings: "녹음",
  recordings: "녹음",
  picture: "이미지",
  recording: "녹음",
  frame: "프레임",
  column: "세로줄",
  patch: "패치",
  AP: "AP",
  AP50: "AP50",
  "AP (small)": "AP (작은 상자)",
  "AP (medium)": "AP (중간 상자)",
  "AP (large)": "AP (큰 상자)",
  "accuracy (known words)": "정확도 (학습한 단어)",
  "accuracy (unknown words)": "정확도 (처음 보는 단어)",
  precision: "정밀도",
  recall: "재현율",
  exact: "완전 일치",
  "exact (≤ 40 words)": "완전 일치 (40단어 이하)",
  "F1 (≤ 40 words)": "F1 (40단어 이하)",
  tags: "품사 정확도",
  "It parses sentences that are split into words as in its treebank.":
    "단어를 학습한 트리뱅크와 같은 방식으로 나눈 문장의 구문을 분석합니다.",
  "Each parse is a tree over all words, even if the sentence makes no sense.":
    "문장이 말이 되지 않아도 모든 단어를 묶은 트리를 만듭니다.",
};

const PATTERNS: [RegExp, (...found: string[]) => string][] = [
  [/^(.+) \(moving average\)$/, (curve) => `${runKorean(curve)} (가중치의 이동 평균)`],
  [/^(.+) \(mean of the last\)$/, (curve) => `${runKorean(curve)} (마지막 가중치들의 평균)`],
  [/^(.+), ([\d,]+) sentences?$/, (test, count) => `${runKorean(test ?? "")}, 문장 ${count}개`],
  [/^(.+), ([\d,]+) texts?$/, (test, count) => `${runKorean(test ?? "")}, 글 ${count}개`],
  [/^(.+), ([\d,]+) trees?$/, (test, count) => `${runKorean(test ?? "")}, 트리 ${count}개`],
  [/^(.+), ([\d,]+) (picture|recording)s?$/, (test, count, what) => `${runKorean(test ?? "")}, ${runKorean(what ?? "")} ${count}개`],
  [/^([\d,]+) numbers a (\w+); ([\d,]+) labels?$/, (count, row, labels) => `${runKorean(row ?? "")}마다 숫자 ${count}개, 레이블 ${labels}개`],
  [/^([\d,]+) numbers a (\w+); ([\d,]+) target (\S+) tokens$/, (count, row, tokens, kind) => `${runKorean(row ?? "")}마다 숫자 ${count}개, 글의 ${kind} 토큰 ${tokens}개`],
  [/^([\d,]+) (\S+) tokens(, shared)?$/, (count, kind, shared) => `${kind} 토큰 ${count}개${shared ? ", 두 언어가 함께 사용" : ""}`],
  [/^([\d,]+) (\S+) tokens; ([\d,]+) labels?$/, (count, kind, labels) => `${kind} 토큰 ${count}개, 레이블 ${labels}개`],
  [/^([\d,]+) (\S+) tokens; ([\d,]+) tags?$/, (count, kind, tags) => `${kind} 토큰 ${count}개, 태그 ${tags}개`],
  [/^([\d,]+) (\S+) tokens, ([\d,]+) symbols of trees$/, (count, kind, symbols) => `${kind} 토큰 ${count}개, 트리 기호 ${symbols}개`],
  [/^([\d,]+) source, ([\d,]+) target (\S+) tokens$/, (s, t, kind) => `${kind} 토큰, 원문 ${s}개, 번역문 ${t}개`],
  [/^([\d,]+) of ([\d,]+)$/, (done, all) => `${done} / ${all}`],
  [/^([\d.,]+) minutes, ([\d,]+) (.+)\/s$/, (minutes, speed, what) => `${minutes}분, 초당 ${runKorean(what ?? "")} ${speed}개`],
  [/^(.+), %$/, (score) => `${runKorean(score ?? "")}, %`],
  [/^nats per (.+)$/, (what) => `${runKorean(what ?? "")}당 nat`],
  [/^(.+) per second$/, (what) => `초당 ${runKorean(what ?? "")}`],
  [/^([^,]+) seen$/, (what) => `학습한 ${runKorean(what ?? "")}`],
  [/^best, update ([\d,]+)$/, (update) => `검증에서 가장 좋았을 때 (업데이트 ${update})`],
  [/^last, update ([\d,]+)$/, (update) => `마지막 (업데이트 ${update})`],
  [/^average, update ([\d,]+)$/, (update) => `평균 (업데이트 ${update})`],
  [
    /^Nearly all sentences that it has learned from have at most ([\d,]+) words?; it may leave out parts of longer ones\.$/,
    (words) => `학습한 문장은 거의 모두 ${words}단어 이하입니다. 더 긴 문장은 일부를 빠뜨릴 수 있습니다.`,
  ],
  [/^([\d,]+) (?:pair|text|tree|sentence|picture|recording)s? read, ([\d,]+) kept$/, (read, kept) => `읽은 것 ${read}개, 남긴 것 ${kept}개`],
  [/^(of .+ may flatter); (of .+)$/, (one, other) => `${runKorean(one ?? "")}; ${runKorean(other ?? "")}`],
  [/^of ([\d,]+) (dev|test) pairs?, training also has (.+) \(lines ([\d, ]+), …\): scores on \w+ may flatter$/, (count, part, shared, lines) => {
    const named = runKorean(part ?? "");
    return `${named} 문장 쌍 ${count}개 가운데 ${sharedKorean(shared ?? "")} 학습 데이터에도 있어(${lines}번째 줄 등) ${named} 점수가 실제보다 높을 수 있습니다`;
  }],
];

/** What training has of held-out pairs: “the source of 3, the target of 2 and the whole pair of 1”. */
function sharedKorean(text: string): string {
  const named: Record<string, string> = { source: "원문", target: "번역문", "whole pair": "문장 쌍 전체" };
  const found = [...text.matchAll(/the (source|target|whole pair) of ([\d,]+)/g)];
  return `${found.map(([, what, count]) => `${named[what ?? ""] ?? ""} ${count}개`).join(", ")}가`;
}

/** In Korean, or as it is where there is no word for it (names, numbers, texts of others). */
export function runKorean(text: string, views: TaskNames[] = []): string {
  if (Object.hasOwn(NAMED, text)) return NAMED[text] ?? text;
  for (const [pattern, told] of PATTERNS) {
    const found = pattern.exec(text);
    if (found) return told(...found.slice(1));
  }
  const doubt = doubtKorean(text);
  if (doubt !== null) return doubt;
  const notice = Object.keys(NAMED).find((one) => text.startsWith(`${one} `) && one.endsWith("."));
  return verdictKorean(notice ? `${NAMED[notice]}${text.slice(notice.length)}` : text, views);
}
