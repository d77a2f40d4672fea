// The words of a training that is watched.

import type { Texts } from "../page/words";

const english = {
  states: {
    preparing: "Preparing", training: "Training", stopping: "Saving, then stopping",
    stopped: "Stopped, saved", finished: "Finished", ended: "The program has ended",
  },
  live_waits: "The data is being read, and this machine is being measured. The first numbers appear here in a moment.",
  live_update: (done: string, all: string) => `update ${done} of ${all}`,
  live_left: (time: string) => `${time} left`,
  live_rate: "learning rate",
  live_stop: "Stop",
  live_stop_title: "Save everything and stop, as Ctrl-C does",
  live_resume: "Resume",
  live_own: "Your sentence",
  live_own_about: "It is translated with the weights of each moment: from before the first update on, and at each validation to come.",
  live_ask: "Translate",
  live_working: "Being translated, beside the training…",
  live_heads: "A head forming",
  live_heads_about: "Where one head looks in your sentence while the newest translation is written. Drag the update to see how it came about.",
  live_layer: "Layer",
  live_head: "Head",
  live_moment: "After update",
  live_samples: "Samples of the last validation",
};

const korean: typeof english = {
  states: {
    preparing: "준비 중", training: "학습 중", stopping: "저장하고 멈추는 중",
    stopped: "멈춤 (저장됨)", finished: "학습 완료", ended: "프로그램이 끝났습니다",
  },
  live_waits: "데이터를 읽고 이 컴퓨터의 속도를 재고 있습니다. 곧 첫 값이 나타납니다.",
  live_update: (done, all) => `업데이트 ${done} / ${all}`,
  live_left: (time) => `${time} 남음`,
  live_rate: "학습률",
  live_stop: "멈추기",
  live_stop_title: "Ctrl-C와 같이 모두 저장하고 멈춥니다",
  live_resume: "이어서 학습",
  live_own: "내 문장",
  live_own_about: "첫 업데이트 전부터 각 시점의 가중치로 번역하고, 앞으로도 검증할 때마다 번역합니다.",
  live_ask: "번역",
  live_working: "학습과 함께 번역하고 있습니다…",
  live_heads: "헤드가 만들어지는 과정",
  live_heads_about: "가장 최근의 번역을 쓰는 동안 헤드 하나가 내 문장의 어디를 보는지 나타냅니다. 업데이트를 끌어 보면 어떻게 생겨났는지 볼 수 있습니다.",
  live_layer: "층",
  live_head: "헤드",
  live_moment: "업데이트 이후",
  live_samples: "마지막 검증의 예문",
};

export const texts: Texts<typeof english> = { en: english, ko: korean };
