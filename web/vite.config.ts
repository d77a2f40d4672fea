import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

// Where `dragoman serve` runs while the page is worked on: make web-dev
const server = process.env.DRAGOMAN_SERVER ?? "http://127.0.0.1:5050";
const api = ["/v1", "/docs", "/docs.css", "/openapi.json"];

/** What `dragoman lesson` puts into its file: the lesson as one script and one style sheet. */
const lesson = {
  emptyOutDir: false,
  lib: { entry: "src/lesson/file.ts", formats: ["iife" as const], name: "lesson", fileName: () => "lesson.js", cssFileName: "lesson" },
};

export default defineConfig(({ mode }) => ({
  plugins: [svelte()],
  base: "./",
  define: mode === "lesson" ? { "process.env.NODE_ENV": '"production"' } : {},
  build: {
    outDir: "../src/dragoman/serving/web",
    emptyOutDir: true,
    target: "es2022",
    // The policy allows nothing inline, and everything is small: files, never data in the page.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    ...(mode === "lesson" ? lesson : {}),
  },
  test: { include: ["tests/*.test.ts"], setupFiles: ["tests/setup.ts"] },
  server: { proxy: Object.fromEntries(api.map((path) => [path, server])) },
}));
