// One tab stop for many elements, as the ARIA practices have it.

import type { Attachment } from "svelte/attachments";

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
      const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: last }[event.key];
      if (event.key === "Enter" || event.key === " ") items[at]?.click();
      else if (to !== undefined) items[Math.max(0, Math.min(last, to))]?.focus();
      else return;
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
