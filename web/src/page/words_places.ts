// Adds the texts of the places How it works and Run, which import this file.

import { figures } from "../figures/words";
import { look } from "../look/words";
import { run } from "../run/words";
import { languages } from "./words";

Object.assign(languages.en, figures.en, look.en, run.en);
Object.assign(languages.ko, figures.ko, look.ko, run.ko);
