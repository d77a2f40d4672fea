// The texts of the lesson, in English and in Korean. What is true of one run alone comes from its numbers.

import { wordsWith } from "../page/preferences.svelte";

export const words = wordsWith({
  titles: [["Pieces", "Positions", "Query and key", "Values", "Heads", "Add, norm, feed-forward", "The masked decoder", "Memory and cross-attention", "The next word", "How it learned this"],
    ["서브워드", "위치", "쿼리와 키", "값", "헤드", "더하기, 정규화, 피드포워드", "마스크가 있는 디코더", "인코더의 기억과 교차 어텐션", "다음 단어", "이렇게 배웠습니다"]],
  /** What the title of a step speaks of. */
  meanings: {
    1: ["A token is a word or a piece of one: the unit that the model reads and writes.", "토큰은 단어나 그 조각으로, 모델이 읽고 쓰는 단위입니다."],
    2: ["The encoder reads all tokens of the source at once. A vector for the position is added to each.", "인코더는 원문의 토큰을 한꺼번에 읽습니다. 토큰마다 위치 벡터를 더합니다."],
    3: ["A query says what a token looks for, a key what a token offers. Softmax turns their scores into weights with a sum of 1.", "쿼리는 토큰이 찾는 것, 키는 토큰이 내놓는 것입니다. 소프트맥스는 점수를 합이 1인 가중치로 바꿉니다."],
    5: ["A head is one attention, with its own queries, keys and values. A layer has several side by side.", "헤드는 쿼리, 키, 값을 따로 갖는 어텐션입니다. 한 층에 여러 개가 나란히 있습니다."],
    6: ["A layer has sub-layers: attention, and a feed-forward network for each token alone. The norm evens out sizes.", "층에는 하위 층이 있습니다. 어텐션, 그리고 토큰마다 따로 계산하는 피드포워드 신경망입니다. 정규화는 크기를 고르게 합니다."],
    7: ["The decoder writes the translation, one token after the other.", "디코더는 번역문을 토큰 하나씩 차례로 씁니다."],
    8: ["The memory is what the encoder made of the source: one vector for each token.", "기억은 인코더가 원문으로 만든 것으로, 토큰마다 벡터 하나입니다."],
    10: ["The loss is small where the right token gets much probability. An update changes all parameters a little.", "올바른 토큰의 확률이 높으면 손실이 작습니다. 업데이트마다 모든 파라미터가 조금씩 바뀝니다."],
  },
  about: ["A lesson in ten steps: how a run turns your sentence into a translation, computed from that run.",
    "열 단계로 배웁니다. 모델이 문장을 번역하는 과정을 그 모델에서 계산한 값으로 보여 줍니다."],
  again: ["The same step elsewhere:", "다른 모델에서 같은 단계:"],
  show_me: ["Show me", "답 보기"],
  is_right: [", right", ", 정답"],
  more: ["More in a figure", "그림에서 더 보기"],
  yes: ["Yes", "네"],
  no: ["No", "아니요"],
  waiting: ["The run computes its lesson…", "모델이 수업 내용을 계산하고 있습니다…"],
  stage: ["The sentence and the run", "문장과 모델"],
  steps: ["Steps", "단계"],
  keys_help: ["← → lead from step to step.", "← → 키로 단계를 오갑니다."],
  translation: ["Translation", "번역문"],
  is_own: ["This run reads {language}, so the lesson is about a sentence of its own test data.",
    "이 모델이 읽는 언어는 {language}입니다. 그래서 모델의 테스트 데이터에 있는 문장을 씁니다."],
  is_cut: ["The run did not end this translation; it was cut.", "모델이 번역을 끝내지 못해 중간에 잘랐습니다."],
  served: ["The lesson computes with exact numbers. The server rounds them, and writes: {text}", "수업은 정확한 값으로 계산합니다. 값을 반올림하는 서버의 번역: {text}"],
  schematic: ["This run: encoder layers: {encoder}, decoder layers: {decoder}, heads: {heads}, width: {width}",
    "이 모델: 인코더 {encoder}층, 디코더 {decoder}층, 헤드 {heads}개, 너비 {width}"],
  encoder_of: ["Encoder × {layers}", "인코더 × {layers}"],
  decoder_of: ["Decoder × {layers}", "디코더 × {layers}"],
  million: ["{count} parameters", "파라미터 {count}개"],
  self_attention: ["Self-attention", "셀프 어텐션"],
  cross_attention: ["Cross-attention", "교차 어텐션"],
  feed_forward: ["Feed-forward", "피드포워드"],
  position_row: ["position", "위치"],
  encoder: ["encoder", "인코더"],
  decoder: ["decoder", "디코더"],
  of: ["{part} of {whole}", "{whole}번 중 {part}번"],
  head: ["Head", "헤드"],
  head_of: ["head {head} of layer {layer}", "{layer}층 {head}번 헤드"],
  merges: ["Merges", "병합"],
  pieces_ask: ["How many pieces does “{word}” become?", "“{word}” 단어는 서브워드 몇 개가 되나요?"],
  pieces_answer: [(count: string, all: string, ids: string, isOne: boolean, unknown: string | 0) =>
      unknown
        ? `${count}, ${unknown} of them unknown to this run. The model reads only their numbers: ${ids}.`
        : isOne
          ? `One of the ${all} pieces that this run knows. The model reads only its number: ${ids}.`
          : `${count} of the ${all} pieces that this run knows. The model reads only their numbers: ${ids}.`,
    (count, all, ids, _, unknown) => unknown
      ? `${count}개입니다. 그중 ${unknown}개는 모델이 모르는 것을 나타냅니다. 모델은 그 번호만 읽습니다: ${ids}`
      : `이 모델이 아는 서브워드 ${all}개 중 ${count}개입니다. 모델은 그 번호만 읽습니다: ${ids}`],
  pieces_numbers: ["E: {vocabulary} × {width}, s = {scale}", "E: {vocabulary} × {width}, s = {scale}"],
  positions_ask: ["“{a}” and “{b}” change places. Without positions, does the translation change?",
    "“{a}”, “{b}” 두 단어의 자리를 바꿉니다. 위치가 없어도 번역이 달라지나요?"],
  positions_answer: [(isSame: boolean, isSameWith: boolean, difference: string) =>
      (isSame ? "No: the encoder then reads a bag of words" : "Yes") +
      `; their vectors differ by ${difference} of their length. With positions, the translation ${isSameWith ? "does not change either" : "changes"}.`,
    (isSame, isSameWith, difference) =>
      `${isSame ? "아니요. 그때 인코더는 순서 없는 단어 모음을 읽습니다." : "네."} 단어 벡터의 차이는 그 길이의 ${difference}입니다. 위치가 있으면 번역이 ${isSameWith ? "역시 그대로입니다." : "달라집니다."}`],
  position_kind: ["this run: {kind}", "이 모델: {kind}"],
  positions_hint: ["Drag a word onto another, or click both: they change places.", "단어를 다른 단어 위로 끌거나 두 단어를 차례로 누르면 자리가 바뀝니다."],
  changed: ["Changed sentence", "바꾼 문장"],
  with_positions: ["With positions", "위치 있음"],
  without_positions: ["Without", "위치 없음"],
  unchanged_without: ["Unchanged, without", "원래 문장, 위치 없음"],
  encoding: ["Encoding", "인코딩"],
  encodings: {
    index: ["index", "순번"],
    normalised: ["÷ length", "÷ 길이"],
    binary: ["binary", "이진수"],
    sinusoidal: ["sines", "사인파"],
    learned: ["learned", "학습"],
    marian: ["sines (Marian)", "사인파(Marian)"],
    none: ["off", "없음"],
  },
  keys_ask: ["Which token fits “{word}” best in {head}?", "{head}에서 “{word}” 토큰에 가장 잘 맞는 토큰은 무엇인가요?"],
  keys_answer: [(best: string, share: string, guess: string, guessed: string, isRight: boolean) =>
      `“${best}”, with ${share}${guess && !isRight ? `; “${guess}” gets ${guessed}` : ""}. A hash table returns one entry; attention mixes all entries, by weight.`,
    (best, share, guess, guessed, isRight) =>
      `“${best}” 토큰이 ${share}입니다.${guess && !isRight ? ` “${guess}” 토큰은 ${guessed}입니다.` : ""} 해시 테이블은 항목 하나만 꺼내지만, 어텐션은 모든 항목을 가중치대로 섞습니다.`],
  query: ["q of “{word}”", "“{word}” 쿼리 q"],
  key: ["k of “{word}”", "“{word}” 키 k"],
  weights: ["Scores and weights", "점수와 가중치"],
  pull: ["Pull the score of “{word}”", "“{word}” 점수 당기기"],
  scaled: ["divide by √d_k", "√d_k로 나누기"],
  hash_table: ["hash table: the best key takes all", "해시 테이블: 가장 잘 맞는 키가 전부 차지"],
  values_ask: [(word: string, best: string) => `How much of what “${word}” takes along in this head comes from ${best ? `“${best}”` : "the token that fits it best"}?`,
    (word, best) => `이 헤드에서 “${word}” 토큰이 가져가는 것 가운데 ${best ? `“${best}”` : "가장 잘 맞는"} 토큰에서 온 것은 얼마나 되나요?`],
  values_answer: [(best: string, weight: string, share: string, width: string) =>
      `“${best}” has a weight of ${weight}. By size, its value, ${width} numbers, is ${share} of what is added.`,
    (best, weight, share, width) => `“${best}” 토큰의 가중치는 ${weight}입니다. 크기로 보면 더해지는 것의 ${share}가 그 값(수 ${width}개)입니다.`],
  values_numbers: ["sizes behind W^O: {one} of {all}", "W^O를 거친 크기: {all} 중 {one}"],
  values_hint: ["Click tokens to leave them out of the mix.", "토큰을 누르면 섞을 때 빠집니다."],
  values_mixed: ["Your mix", "섞은 결과"],
  values_whole: ["All tokens", "모든 토큰"],
  values_missing: ["Distance of your mix from the whole: {share}", "모두 섞은 것과의 차이: {share}"],
  heads_ask: ["Switch off {head}. After the same beginning, which token is then most probable in place of “{word}”?", "{head}를 끕니다. 앞부분이 같을 때 “{word}” 자리에서 확률이 가장 높은 토큰은 무엇인가요?"],
  heads_answer: [(word: string, there: string, isSame: boolean, before: string, after: string, isAllSame: boolean) =>
      `“${there}”${there === word ? ", with" : `; the probability of “${word}” is`} ${after} instead of ${before}. ` +
      `The translation ${isSame ? "stays" : "changes"}; without all heads of the encoder, it ${isAllSame ? "stays" : "changes"}${isAllSame === isSame ? " too" : ""}.`,
    (word, there, isSame, before, after, isAllSame) =>
      `“${there}” 토큰입니다. “${word}” 확률: ${before} → ${after}. 번역이 ${isSame ? "그대로입니다" : "달라집니다"}. ` +
      `인코더의 헤드를 모두 끄면 번역이 ${isAllSame ? "그대로입니다" : "달라집니다"}.`],
  another: ["another token", "다른 토큰"],
  switch_off: ["Switch off", "끄기"],
  head_off: ["head {head}", "{head}번 헤드"],
  layer_off: ["all of layer {layer}", "{layer}층 전체"],
  all_off: ["all of the encoder", "인코더 전체"],
  probability_of: ["Probability of “{word}”: {before} → {after}", "“{word}” 확률: {before} → {after}"],
  norms_ask: ["Each sub-layer adds to what enters it. Which adds most, in proportion?", "하위 층은 저마다 들어온 것에 무언가를 더합니다. 들어온 것에 비해 가장 많이 더하는 하위 층은 어느 것인가요?"],
  norms_answer: [(name: string, share: string, after: string, norm: string) =>
      `${name}: what it adds is ${share} times the size of what enters. ` +
      (norm === "post" ? `The norm then makes it ${after}.` : norm === "pre" ? `Its norm stands before it; the sum has size ${after}.` : `This run has no norm; the sum has size ${after}.`),
    (name, share, after, norm) =>
      `${name}: 들어온 것의 ${share}배 크기를 더합니다. ` +
      (norm === "post" ? `층 정규화를 거치면 크기가 ${after}입니다.` : norm === "pre" ? `층 정규화는 하위 층 앞에 있고, 합의 크기는 ${after}입니다.` : `이 모델에는 층 정규화가 없고, 합의 크기는 ${after}입니다.`)],
  norms_numbers: ["x: {stream}, Sublayer: {added}, result: {after}", "x: {stream}, Sublayer: {added}, 결과: {after}"],
  measure: ["Size", "크기"],
  measures: {
    share: ["added ÷ x", "더한 것 ÷ x"],
    stream: ["x", "x"],
    added: ["added", "더한 것"],
    after: ["result", "결과"],
  },
  sorted: ["largest first", "큰 것부터"],
  mask_ask: ["A mask hides words that are not yet written. Without it, how much attention would they get?", "마스크는 아직 쓰지 않은 단어를 가립니다. 마스크가 없다면 어텐션이 얼마나 향하나요?"],
  mask_answer: [(future: string, isEmpty: boolean) =>
      isEmpty
        ? "None here: this translation has a single token."
        : `${future} on average, in the first layer. Training guesses all words at once; the mask hides the answers: their scores become −∞.`,
    (future, isEmpty) =>
      isEmpty ? "여기서는 없습니다. 번역문이 토큰 하나뿐입니다." : `첫 층의 헤드 평균으로 ${future}입니다. 학습할 때는 모든 단어를 한꺼번에 맞히므로 답이 보이게 됩니다. 마스크는 그 점수를 −∞로 만듭니다.`],
  mask_numbers: ["masked scores: −∞", "가린 점수: −∞"],
  lift: ["Lift the mask", "마스크 걷기"],
  mask_map: ["Self-attention of the decoder, layer 1", "디코더의 셀프 어텐션, 1층"],
  masked: ["masked", "가려짐"],
  forcing: ["Teacher forcing", "교사 강요(teacher forcing)"],
  forcing_about: [(isReference: boolean, count: string) => `One pass guesses all ${count} tokens of the ${isReference ? "reference" : "run's own translation"}; each step reads the right tokens before it.`,
    (isReference, count) => `${isReference ? "참조 번역" : "모델이 쓴 번역"}의 토큰 ${count}개를 한 번에 맞힙니다. 각 단계는 앞의 올바른 토큰을 읽습니다.`],
  generating: ["Generating", "생성"],
  after_mistake: ["The run reads what it wrote. With “{wrong}” in place of “{right}”, it goes on so:",
    "모델은 스스로 쓴 것을 읽습니다. “{right}” 자리에 “{wrong}” 토큰을 두면 이렇게 이어 씁니다."],
  memory_ask: ["To write “{word}”, where does {head} of the decoder look?", "“{word}” 토큰을 쓸 때 디코더의 {head}는 어디를 보나요?"],
  memory_answer: [(best: string, share: string, hurt: string, word: string, before: string, after: string, falls: boolean) =>
      `At “${best}”, with ${share}. ` + (falls ? `Hiding “${hurt}” hurts most: “${word}” falls from ${before} to ${after}.` : `No single hidden word makes “${word}” clearly less probable.`),
    (best, share, hurt, word, before, after, falls) =>
      `“${best}” 토큰을 ${share} 봅니다. ` + (falls ? `“${hurt}” 단어를 가릴 때 가장 많이 떨어집니다. “${word}” 확률: ${before} → ${after}.` : `단어를 하나만 가려서는 “${word}” 확률이 뚜렷이 떨어지지 않습니다.`)],
  memory_numbers: ["q: decoder; k, v: encoder", "q: 디코더, k와 v: 인코더"],
  hide: ["Hide", "가리기"],
  next_ask: ["How sure is the run of “{word}”?", "모델은 “{word}” 토큰을 얼마나 확신하나요?"],
  next_answer: [(p: string, epsilon: number, told: string, wanted: string, second: string, runnerUp: string, isUnsure: boolean) =>
      isUnsure
        ? `${p}. “${second}” has ${runnerUp}.${epsilon ? ` Label smoothing asks for ${wanted}, never for 100 %.` : ""}`
        : epsilon
          ? `${p}. Label smoothing (ε = ${told}) asks for ${wanted}, never for 100 %.`
          : `${p}. Without label smoothing, training asks for 100 %.`,
    (p, epsilon, told, wanted, second, runnerUp, isUnsure) =>
      isUnsure
        ? `${p}입니다. “${second}” 토큰은 ${runnerUp}입니다.${epsilon ? ` 레이블 스무딩의 목표는 ${wanted}이고, 100%가 아닙니다.` : ""}`
        : epsilon
          ? `${p}입니다. 레이블 스무딩(ε = ${told})의 목표는 ${wanted}이고, 100%가 아닙니다.`
          : `${p}입니다. 레이블 스무딩이 없으므로 학습의 목표는 100%입니다.`],
  next_numbers: ["ε = {epsilon}, V = {vocabulary}: q = {wanted}", "ε = {epsilon}, V = {vocabulary}: q = {wanted}"],
  temperature: ["Temperature", "온도"],
  all_others: ["all others", "나머지 모두"],
  length_penalty: ["Length penalty", "길이 페널티"],
  hypothesis: ["Hypothesis", "가설"],
  tokens: ["Tokens", "토큰"],
  score: ["Score", "점수"],
  learned_ask: ["After the same beginning, from which snapshot on is “{word}” the most probable token?", "앞부분이 같을 때, 어느 스냅샷부터 “{word}” 토큰의 확률이 가장 높나요?"],
  learned_answer: [(update: string, before: string, word: string, p: string) =>
      before ? `From update ${update} on (${p}). In the snapshot before, it was “${before}”.` : `From its first snapshot on, update ${update}; “${word}” then had ${p}.`,
    (update, before, word, p) =>
      before ? `업데이트 ${update}부터입니다(${p}). 그 앞의 스냅샷에서는 “${before}” 토큰이었습니다.` : `첫 스냅샷인 업데이트 ${update}부터입니다. 그때 “${word}” 확률은 ${p}였습니다.`],
  learned_never: [(update: string, word: string) => `At none of them: in the last, of update ${update}, it is “${word}”.`,
    (update, word) => `없습니다. 마지막 스냅샷(업데이트 ${update})에서는 “${word}” 토큰입니다.`],
  learned_half_ask: ["Half of the way from the first loss to the last: by which update?", "첫 손실에서 마지막 손실까지 절반은 몇 번째 업데이트에 지났나요?"],
  learned_half: ["By update {update} of {last}. This run keeps no snapshots, so only its loss is shown.",
    "업데이트 {last}번 중 {update}번에 지났습니다. 이 모델에는 스냅샷이 없어 손실만 보여 줍니다."],
  never: ["none", "없음"],
  learned_numbers: ["in nats per token, without label smoothing", "토큰당 nat, 레이블 스무딩 제외"],
  no_record: ["The training of this run left no record.", "이 모델의 학습 기록이 없습니다."],
  time: ["Update", "업데이트"],
  update: ["update", "업데이트"],
  nats: ["nats per token", "토큰당 nat"],
  loss: ["Loss", "손실"],
  training: ["training", "학습"],
  development: ["development", "검증"],
  snapshot: ["Snapshot of update {update}", "업데이트 {update}의 스냅샷"],
  no_snapshot: ["No snapshot yet", "아직 스냅샷이 없습니다"],
  validation: ["Validation, update {update}", "검증, 업데이트 {update}"],
  as_reference: ["(as the reference)", "(참조 번역과 같음)"],
  teacher: ["Teacher's sheet", "교사용 자료"],
  teacher_about: ["All answers of the run {run}. Ask, let the class guess, then open the step. The last line of each step is for you.",
    "{run} 모델의 답을 모두 담았습니다. 묻고, 학생들이 짐작한 다음 단계를 여세요. 각 단계의 마지막 줄은 교사를 위한 것입니다."],
  watch: [[
      "Pieces are no syllables: they were chosen by how often they occur in texts.",
      "Only the encoder loses its positions here; the decoder keeps its own.",
      "A weight tells where a head looked, not why. Let the class try another head.",
      "Query and keys decide how much is taken; values are what is taken.",
      "Other heads often stand in for one that is off. Compare one head, a layer, and all of them.",
      "A large addition is not an important one: what is needed shows when it is switched off, as heads are in step 5.",
      "The mask stays when the run is used, though the future is not there yet: training and use compute the same.",
      "Hiding shows what the run needs; attention shows where it looked. The two may differ.",
      "A probability is the run's own belief: a sure run can be wrong.",
      "On the whole, the loss changes little by little; the most probable token can change between two snapshots.",
    ],
    [
      "서브워드는 음절이 아닙니다. 텍스트에 나오는 빈도에 따라 고른 것입니다.",
      "여기서는 인코더만 위치를 잃습니다. 디코더의 위치는 그대로입니다.",
      "가중치는 헤드가 본 곳을 알려 줄 뿐, 이유를 알려 주지 않습니다. 다른 헤드도 골라 보세요.",
      "얼마나 가져갈지는 쿼리와 키가 정하고, 무엇을 가져갈지는 값이 정합니다.",
      "헤드 하나를 끄면 다른 헤드가 대신할 때가 많습니다. 헤드 하나, 한 층, 전체를 견주어 보세요.",
      "많이 더한다고 중요한 것은 아닙니다. 무엇이 필요한지는 5단계의 헤드처럼 꺼 보아야 압니다.",
      "쓸 때도 마스크는 그대로입니다. 미래가 아직 없어도 학습할 때와 똑같이 계산합니다.",
      "가리기는 모델에 필요한 것을, 어텐션은 모델이 본 곳을 보여 줍니다. 둘은 다를 수 있습니다.",
      "확률은 모델 자신의 믿음입니다. 확신해도 틀릴 수 있습니다.",
      "손실은 대체로 조금씩 바뀌지만, 확률이 가장 높은 토큰은 두 스냅샷 사이에서 바뀔 수 있습니다.",
    ]],
});
