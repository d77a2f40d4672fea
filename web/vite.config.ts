import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// Where `dragoman serve` runs while the page is worked on: make web-dev
const server = process.env.DRAGOMAN_SERVER ?? "http://127.0.0.1:5050";
const api = ["/v1", "/docs", "/docs.css", "/openapi.json"];

export default defineConfig({
  plugins: [svelte()],
  base: "./",
  build: {
    outDir: "../src/dragoman/serving/web",
    emptyOutDir: true,
    target: "es2022",
    // The policy allows nothing inline, and everything is small: files, never data in the page.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { proxy: Object.fromEntries(api.map((path) => [path, server])) },
});
