// All views that are for runs of one task, in the order of their tabs. A view is two lines here.

import { classify, label } from "./classification/view";
import { boxes } from "./detection/view";
import { write } from "./language_model/view";
import { fill } from "./masked/view";
import { paint } from "./painting/view";
import { parse } from "./parsing/view";
import { tag } from "./tagging/view";
import { transcribe } from "./transcription/view";
import { lines, translate } from "./translation/view";
import type { TaskView } from "./page/view";

export const views: TaskView[] = [translate, write, classify, fill, parse, tag, label, transcribe, boxes, lines, paint];
