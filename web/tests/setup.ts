// What a browser has and Node lacks, as far as the logic of the page touches it. Letters are as wide as a monospaced
// font makes them.

import { vi } from "vitest";

const kept = new Map<string, string>();
const paper = { font: "", measureText: (text: string) => ({ width: [...text].length * 0.6 * parseFloat(paper.font.split(" ")[1] ?? "0") }) };
vi.stubGlobal("localStorage", { getItem: (name: string) => kept.get(name) ?? null, setItem: (name: string, value: string) => kept.set(name, value) });
vi.stubGlobal("location", { hash: "" });
vi.stubGlobal("navigator", { language: "en" });
vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => {} }));
vi.stubGlobal("getComputedStyle", () => ({ getPropertyValue: () => "#123456", fontFamily: "monospace" }));
vi.stubGlobal("document", { documentElement: { dataset: {}, lang: "" }, createElement: () => ({ getContext: () => paper }) });
