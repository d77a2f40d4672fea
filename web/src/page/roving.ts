// One tab stop for many elements, as the ARIA practices have it.

import type { Attachment } from "svelte/attachments";

/** The nearest element of the next line, down (1) or up (-1); the next element where there is no such line. */
function across(items: HTMLElement[], at: number, step: 1 | -1): number {
  const boxes = items.map((item) => item.getBoundingClientRect());
  const here = boxes[at];
  let best = at + step;
  let least = Infinity;
  boxes.forEach((box, i) => {
    if (!here) return;
    const lines = Math.round(((box.top - here.top) * step) / here.height);
    const distance = lines * 1e4 + Math.abs(box.left - here.left);
    if (lines > 0 && distance < least) [best, least] = [i, distance];
  });
  return best;
}

/** Arrows, Home and End move the focus among the elements of a selector, Enter and Space click the one that has it;
    from what holds them, arrows lead inside. */
export function roving(selector: string): Attachment<HTMLElement> {
  return (node) => {
    const all = (): HTMLElement[] => [...node.querySelectorAll<HTMLElement>(selector)];
    const key = (event: KeyboardEvent): void => {
      const items = all();
      const at = items.indexOf(event.target as HTMLElement);
      if (at < 0 && event.target !== node) return;
      const last = items.length - 1;
      const to =
        { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last }[event.key] ??
        { ArrowDown: across(items, at, 1), ArrowUp: across(items, at, -1) }[event.key];
      if (event.key === "Enter" || event.key === " ") items[at]?.click();
      else if (to !== undefined) items[Math.max(0, Math.min(last, to))]?.focus();
      else return;
      event.preventDefault();
    };
    const focus = (event: FocusEvent): void => {
      const items = all();
      if (items.includes(event.target as HTMLElement)) for (const one of items) one.tabIndex = one === event.target ? 0 : -1;
    };
    // Where other elements have come, one can be reached by Tab.
    const changes = new MutationObserver(() => {
      const items = all();
      if (items[0] && items.every((one) => one.tabIndex)) items[0].tabIndex = 0;
    });
    changes.observe(node, { childList: true, subtree: true });
    node.addEventListener("keydown", key);
    node.addEventListener("focusin", focus);
    return () => {
      changes.disconnect();
      node.removeEventListener("keydown", key);
      node.removeEventListener("focusin", focus);
    };
  };
}
