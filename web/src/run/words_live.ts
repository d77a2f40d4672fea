// The words of a training that is watched.

import { wordsWith } from "../page/preferences.svelte";

export const words = wordsWith({
  states: {
    preparing: ["Preparing", "준비 중"],
    training: ["Training", "학습 중"],
    stopping: ["Saving, then stopping", "저장하고 멈추는 중"],
    stopped: ["Stopped, saved", "멈춤 (저장됨)"],
    finished: ["Finished", "학습 완료"],
    ended: ["The program has ended", "프로그램이 끝났습니다"],
  },
  live_waits: ["The data is being read, and this machine is being measured. The first numbers appear here in a moment.",
    "데이터를 읽고 이 컴퓨터의 속도를 재고 있습니다. 곧 첫 값이 나타납니다."],
  live_update: ["update {done} of {all}", "업데이트 {done} / {all}"],
  live_left: ["{time} left", "{time} 남음"],
  live_rate: ["learning rate", "학습률"],
  live_stop: ["Stop", "멈추기"],
  live_stop_title: ["Save everything and stop, as Ctrl-C does", "Ctrl-C와 같이 모두 저장하고 멈춥니다"],
  live_resume: ["Resume", "이어서 학습"],
  live_own: ["Your sentence", "내 문장"],
  live_own_about: ["It is translated with the weights of each moment: from before the first update on, and at each validation to come.",
    "첫 업데이트 전부터 각 시점의 가중치로 번역하고, 앞으로도 검증할 때마다 번역합니다."],
  live_ask: ["Translate", "번역"],
  live_working: ["Being translated, beside the training…", "학습과 함께 번역하고 있습니다…"],
  live_heads: ["A head forming", "헤드가 만들어지는 과정"],
  live_heads_about: ["Where one head looks in your sentence while the newest translation is written. Drag the update to see how it came about.",
    "가장 최근의 번역을 쓰는 동안 헤드 하나가 내 문장의 어디를 보는지 나타냅니다. 업데이트를 끌어 보면 어떻게 생겨났는지 볼 수 있습니다."],
  live_layer: ["Layer", "층"],
  live_head: ["Head", "헤드"],
  live_moment: ["After update", "업데이트 이후"],
  live_samples: ["Samples of the last validation", "마지막 검증의 예문"],
});
