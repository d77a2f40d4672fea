// What the server finds of a run that has hardly learned its task, in Korean: it says it in English.

/** What a task is called (by the server, as a verb, and in Korean), and, in Korean, other work of its runs. */
export interface TaskNames {
  task: { name: string; verb: string; korean: string };
  works?: Record<string, string>;
}

/** Why it is said. */
const REASONS: [RegExp, (...found: string[]) => string][] = [
  [
    /^(.+?) ([\d.,]+(?:\s?%)?) on (dev|the test set), below the (.+) of a model that has begun to learn$/,
    (name, value, where, least) =>
      `${where === "dev" ? "검증" : "테스트"} 데이터의 ${name} 점수는 ${value}입니다. 조금이라도 학습한 모델의 점수는 적어도 ${least}입니다`,
  ],
  [
    /^its loss on dev is (\S+) nats a token, and token frequencies alone give (\S+)$/,
    (loss, guess) => `검증 손실이 토큰당 ${loss} nat인데, 토큰의 빈도만으로 예측해도 ${guess} nat입니다`,
  ],
  [/^it gives every text the label '?(.+?)'?$/, (label) => `모든 글에 “${label}” 레이블을 붙입니다`],
  [
    /^accuracy (.+), and always answering the most frequent tag of each word gives (.+)$/,
    (accuracy, share) => `정확도가 ${accuracy}인데, 단어마다 가장 흔한 태그로만 답해도 ${share}입니다`,
  ],
  [
    /^accuracy (.+), and always answering '?(.+?)'? gives (.+)$/,
    (accuracy, label, share) => `정확도가 ${accuracy}인데, 늘 “${label}” 레이블로만 답해도 ${share}입니다`,
  ],
];

const SENTENCES: [RegExp, (...found: string[]) => string][] = [
  [
    /This run has hardly learned to ([^:]+): (.+?)\.(?= [A-Z]|$)/,
    (task, why) => `이 모델은 아직 ${task} 과제를 거의 배우지 못했습니다. ${reason(why ?? "")}.`,
  ],
  [
    /About ([\d,]+) more minutes? of training would help: train again with --minutes (\d+), or raise training\.updates in its recipe\.toml and resume it\./,
    (minutes, all) =>
      `${minutes}분쯤 더 학습시키면 도움이 됩니다. --minutes ${all} 옵션으로 새로 학습시키거나, recipe.toml의 training.updates 값을 늘려 이어서 학습시키세요.`,
  ],
  [
    /It has seen its \w+ (\d+) times and knows them by heart \(loss (\S+) on them, (\S+) on dev\): more of them would help, more minutes would not\./,
    (times, own, dev) =>
      `학습 데이터를 ${times}번 반복해 학습하여 외워 버렸습니다(학습 손실 ${own}, 검증 손실 ${dev}). 시간을 늘리기보다 데이터를 늘려야 합니다.`,
  ],
  [
    /It writes much the same words whatever it reads, such as “(.+?)”\./,
    (such) => `무엇을 읽든 비슷한 말만 씁니다. 예: “${such}”`,
  ],
];

function reason(why: string): string {
  for (const [pattern, told] of REASONS) {
    const found = pattern.exec(why);
    if (found) return told(...found.slice(1)).replace(/\s%/g, "%");
  }
  return why;
}

/** A text with those of its sentences in Korean that are known; `views` say what its task is called. */
export function verdictKorean(text: string, views: TaskNames[]): string {
  const named = text.replace(/(has hardly learned to )(\w+)/, (_, before: string, verb: string) => {
    return before + (views.find((one) => one.task.verb === verb)?.task.korean ?? verb);
  });
  return SENTENCES.reduce((said, [pattern, told]) => said.replace(pattern, (_, ...found: string[]) => told(...found)), named);
}
