// One tab stop for many elements, as the ARIA practices have it.

import type { Attachment } from "svelte/attachments";

/** Arrows, Home and End move the focus among the elements of a selector, Enter and Space click the one that has it.
    `columns`: how many stand in a row, where there are rows. */
export function roving(selector: string, columns?: number): Attachment<HTMLElement> {
  return (node) => {
    const all = (): HTMLElement[] => [...node.querySelectorAll<HTMLElement>(selector)];
    const key = (event: KeyboardEvent): void => {
      const items = all();
      const at = items.indexOf(event.target as HTMLElement);
      if (at < 0) return;
      const row = columns ?? 1;
      const to = { ArrowRight: at + 1, ArrowDown: at + row, ArrowLeft: at - 1, ArrowUp: at - row, Home: 0, End: items.length - 1 }[event.key];
      const isEdge = columns && { ArrowRight: (at + 1) % columns === 0, ArrowLeft: at % columns === 0 }[event.key];
      if (event.key === "Enter" || event.key === " ") items[at]?.click();
      else if (to === undefined) return;
      else if (!isEdge) items[to]?.focus();
      event.preventDefault();
    };
    const focus = (event: FocusEvent): void => {
      const items = all();
      if (items.includes(event.target as HTMLElement)) for (const one of items) one.tabIndex = one === event.target ? 0 : -1;
    };
    node.addEventListener("keydown", key);
    node.addEventListener("focusin", focus);
    return () => {
      node.removeEventListener("keydown", key);
      node.removeEventListener("focusin", focus);
    };
  };
}
