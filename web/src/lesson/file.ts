// The lesson as one file that is read without a server: the data stand in it (`dragoman lesson`).

import { mount } from "svelte";
import "../page/words_places";
import "../style.css";
import File from "./File.svelte";

const target = document.getElementById("app");
if (target) mount(File, { target });
