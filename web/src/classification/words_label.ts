// The words of runs that label files, which show labels as those that label texts.

import { both } from "../page/texts";
import { texts as classify } from "./words";

const own = both({
  label_sure_1: ["The model spreads its belief over the labels that it was trained on, also where none of them fits. A low figure says so; a high one promises nothing about files unlike those of the training.",
    "모델은 학습한 레이블에만 확률을 나누어 주며, 알맞은 레이블이 없어도 그렇게 합니다. 숫자가 낮으면 확신이 없다는 뜻이지만, 학습 데이터와 다른 파일에서는 숫자가 높아도 믿을 수 없습니다."],
  label_drop: ["Drop the file to label it", "파일을 놓으면 인식합니다"],
  label_draw_area: ["Draw here with a mouse, a pen or a finger", "마우스나 펜, 손가락으로 그리는 곳"],
  label_draw_hint: ["Draw what the run has learned: the answer changes as you draw.", "모델이 학습한 것을 그리세요. 그리는 대로 결과가 바뀝니다."],
  label_dark: ["Black on white", "흰 바탕에 검게"],
  label_centred: ["Centred and scaled, as in MNIST", "MNIST처럼 크기와 위치를 맞추기"],
  label_answer: ["The label of the file", "파일의 레이블"],
  label_empty: ["The label appears here, with how probable the model holds each one.", "레이블이 여기에 나타나고, 모델이 레이블마다 준 확률도 함께 표시됩니다."],
  label_seen: ["What the model reads", "모델이 읽는 것"],
  label_seen_picture: ["The picture in {width} × {height} pixels, as the model reads it.", "모델이 읽는 이미지입니다. 크기는 {width} × {height} 픽셀입니다."],
  label_seen_recording: ["The bands of the spectrum, time from left to right, low sounds at the bottom; the louder, the lighter.",
    "스펙트럼의 대역입니다. 시간은 왼쪽에서 오른쪽으로 흐르고, 낮은 소리가 아래에 있으며, 클수록 밝습니다."],
  label_where: ["Where it looked", "모델이 본 곳"],
  label_change: ["{label}: {before} for the whole, {now} without the hidden parts.", "{label}: 전체에서 {before}, 가린 뒤 {now}입니다."],
  label_heads: ["Where each head looked", "헤드마다 본 곳"],
  label_reading: ["How it reads the picture, step by step", "이미지를 읽는 과정"],
  label_reading_note: ["The picture is cut into patches; the pixels of each are a row; a linear map or convolutions make it as wide as the model, and its place is added; in each layer, rows look at each other; the label is read from them. Blue is above zero, orange below.",
    "이미지를 패치로 자르고, 패치마다 픽셀을 늘어놓아 벡터 하나를 만듭니다. 선형 변환이나 합성곱으로 벡터의 길이를 모델의 폭에 맞추고 위치를 더합니다. 층마다 벡터들이 서로를 보고, 그 벡터들에서 레이블을 정합니다. 파란색은 0보다 큰 성분, 주황색은 0보다 작은 성분입니다."],
  label_reading_large: ["This run reads more than 256 patches, too many to be drawn.", "이 모델은 256개가 넘는 패치를 읽어 모두 그릴 수 없습니다."],
  label_heads_note: ["Of each head, the share of its attention that each part gets, from all rows that the label is read from. Click a part of the picture to see where the heads looked from there.",
    "레이블을 정하는 모든 벡터에서 각 부분으로 향한 어텐션의 비율을 헤드마다 보여 줍니다. 이미지의 한 부분을 누르면 그곳에서 각 헤드의 어텐션이 향한 곳을 보여 줍니다."],
  label_heads_at: ["Of each head, the share of its attention that each part gets, from the part that you clicked. Click it again to go back.",
    "누른 부분에서 각 부분으로 향한 어텐션의 비율을 헤드마다 보여 줍니다. 다시 누르면 돌아갑니다."],
  label_from: ["Parts to look from", "어텐션의 출발점"],
  label_layer: ["Layer {layer}", "{layer}층"],
  label_head_sound: ["Layer {layer}, head {head}: most at {time} of the time, {share}", "{layer}층 헤드 {head}, 어텐션이 가장 큰 지점: 전체 시간의 {time} ({share})"],
  label_head: ["Layer {layer}, head {head}: most in row {row}, column {column}, {share}",
    "{layer}층 헤드 {head}, 어텐션이 가장 큰 곳: {row}행 {column}열 ({share})"],
  label_most: ["The patch that counted most is in row {row}, column {column}: {share}.", "비중이 가장 큰 패치는 {row}행 {column}열입니다({share})."],
  label_most_sound: ["What counted most is {time} of the way through the recording: {share} of the attention.",
    "비중이 가장 큰 곳은 전체 시간의 {time} 지점입니다({share})."],
  label_rollout: ["By attention rollout: the weights of all layers multiplied, which is not the reason for a label.",
    "어텐션 롤아웃, 곧 모든 층의 어텐션을 곱한 값이며, 레이블을 고른 이유는 아닙니다."],
  label_cut: ["The recording is longer than what the model reads at once: the rest was not read.", "녹음이 모델이 한 번에 읽는 길이보다 깁니다. 나머지는 읽지 않았습니다."],
});

export const texts = { en: { ...classify.en, ...own.en }, ko: { ...classify.ko, ...own.ko } };
