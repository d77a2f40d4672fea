// Attention of a run's samples: choose an attention, a layer and a head, point at a word.
// Reads the records from the page itself (#attention-records) and asks nobody for anything.
"use strict";
(() => {
  const holder = document.getElementById("attention-records");
  const root = document.getElementById("look");
  if (!holder || !root) return;
  const records = JSON.parse(holder.textContent);
  const NUMBERED = 16; // cells carry numbers up to this many columns
  const DENSE = 24; // beyond, the map's cells and letters shrink
  const MAPPED = 80; // beyond, there is no map, only words and heads

  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };

  // One byte a weight, row after row, head after head, layer after layer.
  const unpack = (packed) => {
    const bytes = Uint8Array.from(atob(packed.weights), (c) => c.charCodeAt(0));
    const size = packed.rows * packed.columns;
    const heads = [];
    for (let layer = 0; layer < packed.layers; layer++) {
      const row = [];
      for (let head = 0; head < packed.heads; head++) {
        const start = (layer * packed.heads + head) * size;
        row.push(Float32Array.from(bytes.subarray(start, start + size), (b) => b / 255));
      }
      const mean = new Float32Array(size);
      for (const weights of row) for (let i = 0; i < size; i++) mean[i] += weights[i] / row.length;
      heads.push([mean, ...row]);
    }
    return { ...packed, heads };
  };

  // Those that the model has; the last is what people want to see first.
  const kinds = Object.fromEntries(
    Object.entries({ encoder: "Encoder", decoder: "Decoder", cross: "Cross-attention" }).filter(
      ([kind]) => records[0][kind].layers,
    ),
  );
  const first = Object.keys(kinds).at(-1) ?? "cross";
  const state = { record: 0, kind: first, layer: 0, head: 0, asked: 0, pointed: null };
  let unpacked = {};

  const sides = () => {
    const { source, target, begin } = records[state.record];
    if (state.kind === "encoder") return [source, source, "Reading: this source word …", "… looked at"];
    if (state.kind === "decoder")
      return [target, [begin, ...target.slice(0, -1)], "Writing this word …", "… it looked back at"];
    return [target, source, "Writing this word …", "… it looked at"];
  };
  const attention = () => {
    const key = `${state.record} ${state.kind}`;
    return (unpacked[key] ??= unpack(records[state.record][state.kind]));
  };
  const weights = () => attention().heads[state.layer][state.head];
  const percent = (weight) => `${Math.round(weight * 100)} %`;
  const named = (head) => (head ? `head ${head}` : "mean of the heads");

  const controls = make("div", { className: "controls" });
  const heads = make("div", { className: "heads" });
  const headsScroll = make("div", { className: "scroll", tabIndex: 0 }, heads);
  const looking = make("div", { className: "tokens" });
  const lookedAt = make("div", { className: "tokens" });
  const lookingName = make("p", { className: "side" });
  const lookedAtName = make("p", { className: "side" });
  const told = make("p", { className: "told" });
  told.setAttribute("aria-live", "polite");
  const map = make("div", { className: "scroll", tabIndex: 0 });
  root.replaceChildren(
    controls,
    headsScroll,
    make("div", {}, lookingName, looking),
    make("div", {}, lookedAtName, lookedAt),
    told,
    map,
  );

  const shade = (element, weight) => {
    element.style.setProperty("--weight", weight.toFixed(3));
    element.classList.toggle("strong", weight > 0.7);
  };

  // Colours of the row that is pointed at, or else of the one that was chosen.
  const shadeTokens = () => {
    const { columns, rows } = attention();
    const all = weights();
    const [from, to] = sides();
    const column = state.pointed?.column;
    const row = state.pointed?.row ?? state.asked;
    [...looking.children].forEach((token, i) => {
      shade(token, column === undefined ? 0 : all[i * columns + column]);
      token.classList.toggle("asked", column === undefined && i === row);
    });
    [...lookedAt.children].forEach((token, j) => {
      shade(token, column === undefined ? all[row * columns + j] : 0);
      token.classList.toggle("asked", j === column);
    });
    map.querySelectorAll("tbody tr").forEach((line, i) => line.classList.toggle("asked", i === row));
    const one = column === undefined;
    const strongest = Array.from({ length: one ? columns : rows }, (_, i) => i)
      .map((i) => [one ? all[row * columns + i] : all[i * columns + column], one ? to[i] : from[i]])
      .sort((a, b) => b[0] - a[0])
      .slice(0, 3)
      .filter(([weight]) => weight >= 0.005)
      .map(([weight, word]) => `${word} ${percent(weight)}`)
      .join(", ");
    told.textContent = one ? `${from[row]} → ${strongest}` : `${to[column]} ← ${strongest}`;
  };

  const drawTokens = () => {
    const [from, to, fromName, toName] = sides();
    lookingName.textContent = fromName;
    lookedAtName.textContent = toName;
    const tokens = (words, place, choose) =>
      words.map((word, i) => {
        const token = make("button", { type: "button", textContent: word });
        token.onpointerenter = token.onfocus = () => {
          state.pointed = { [place]: i };
          shadeTokens();
        };
        token.onpointerleave = token.onblur = () => {
          state.pointed = null;
          shadeTokens();
        };
        token.onclick = () => choose(i);
        return token;
      });
    looking.replaceChildren(
      ...tokens(from, "row", (i) => {
        state.asked = i;
        shadeTokens();
      }),
    );
    lookedAt.replaceChildren(...tokens(to, "column", () => {}));
  };

  const drawMap = () => {
    const { rows, columns } = attention();
    const [from, to] = sides();
    if (Math.max(rows, columns) > MAPPED) {
      map.replaceChildren(make("p", { className: "told", textContent: "Too long for a map of all words." }));
      return;
    }
    const all = weights();
    const head = make("tr", {}, make("td", { ariaHidden: "true" }));
    for (const word of to) head.append(make("th", { scope: "col" }, make("div", { textContent: word })));
    const body = make("tbody");
    from.forEach((word, i) => {
      const line = make("tr", {}, make("th", { scope: "row", textContent: word }));
      to.forEach((other, j) => {
        const weight = all[i * columns + j];
        const cell = make("td", { title: `${word} → ${other}: ${percent(weight)}` });
        if (columns <= NUMBERED && weight >= 0.05) cell.textContent = Math.round(weight * 100);
        shade(cell, weight);
        cell.onpointerenter = () => {
          state.pointed = { row: i };
          shadeTokens();
        };
        line.append(cell);
      });
      body.append(line);
    });
    const table = make("table", { className: columns > DENSE ? "map dense" : "map" });
    const longest = Math.max(...to.map((word) => word.length));
    table.style.setProperty("--tall", `${Math.min(9, 1 + longest * 0.42).toFixed(2)}rem`);
    const name = `layer ${state.layer + 1}, ${named(state.head)}`;
    table.setAttribute("aria-label", `${kinds[state.kind]}, ${name}`);
    table.append(make("thead", {}, head), body);
    table.onpointerleave = () => {
      state.pointed = null;
      shadeTokens();
    };
    head.firstChild.style.background = "none";
    map.replaceChildren(table);
  };

  const thumbnail = (canvas, all, rows, columns) => {
    canvas.width = columns;
    canvas.height = rows;
    const ink = getComputedStyle(root).getPropertyValue("--series-0").trim();
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(ink.slice(at, at + 2), 16));
    const context = canvas.getContext("2d");
    const image = context.createImageData(columns, rows);
    all.forEach((weight, i) => image.data.set([red, green, blue, Math.round(weight * 255)], i * 4));
    context.putImageData(image, 0, 0);
  };

  const drawHeads = () => {
    const { heads: all, rows, columns } = attention();
    heads.style.gridTemplateColumns = `auto repeat(${all[0].length}, max-content)`;
    heads.replaceChildren();
    all.forEach((layer, l) => {
      heads.append(make("span", { className: "layer", textContent: `layer ${l + 1}` }));
      layer.forEach((head, h) => {
        const canvas = make("canvas");
        thumbnail(canvas, head, rows, columns);
        const button = make("button", { type: "button", title: `layer ${l + 1}, ${named(h)}` }, canvas);
        button.setAttribute("aria-label", button.title);
        button.setAttribute("aria-pressed", l === state.layer && h === state.head);
        button.onclick = () => {
          heads.querySelector('[aria-pressed="true"]')?.setAttribute("aria-pressed", "false");
          button.setAttribute("aria-pressed", "true");
          Object.assign(state, { layer: l, head: h });
          drawMap();
          shadeTokens();
        };
        heads.append(button);
      });
    });
  };

  const draw = () => {
    const { heads: all, rows } = attention();
    state.layer = Math.min(state.layer, all.length - 1);
    state.head = Math.min(state.head, all[0].length - 1);
    state.asked = Math.min(state.asked, rows - 1);
    drawHeads();
    drawTokens();
    drawMap();
    shadeTokens();
  };

  const drawControls = () => {
    const choice = make("span", { className: "choice" });
    for (const [kind, name] of Object.entries(kinds)) {
      const button = make("button", { type: "button", textContent: name });
      button.setAttribute("aria-pressed", kind === state.kind);
      button.onclick = () => {
        choice.querySelector('[aria-pressed="true"]').setAttribute("aria-pressed", "false");
        button.setAttribute("aria-pressed", "true");
        Object.assign(state, { kind, pointed: null });
        draw();
      };
      choice.append(button);
    }
    controls.append(choice);
    if (records.length > 1) {
      const select = make("select", { ariaLabel: "Sentence" });
      const short = (text) => (text.length > 60 ? `${text.slice(0, 59)}…` : text);
      for (const { source } of records)
        select.append(make("option", { textContent: short(source.join(" ")) }));
      select.onchange = () => {
        Object.assign(state, { record: select.selectedIndex, pointed: null, asked: 0 });
        unpacked = {};
        draw();
      };
      controls.append(select);
    }
  };

  state.layer = records[0][state.kind].layers - 1;
  state.asked = records[0].asked ?? 0;
  drawControls();
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawHeads);
})();
