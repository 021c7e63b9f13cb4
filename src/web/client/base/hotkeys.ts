/** Keys are written as in lists of keys: `Mod-K`, `?`, `g q` (one after the other). `Mod` is ⌘ on a Mac, else Ctrl. */

const isMac = (): boolean => /mac|iphone|ipad/i.test(navigator.platform);

/** One press as text, in the same way. */
export function pressOf(event: KeyboardEvent): string {
  const isMod = isMac() ? event.metaKey : event.ctrlKey;
  const key = event.key.length === 1 ? (isMod || event.altKey ? event.key.toUpperCase() : event.key) : event.key;
  // Of a character it is part of the key already.
  const isShift = event.shiftKey && (event.key.length > 1 || isMod);
  return [...(isMod ? ["Mod"] : []), ...(event.altKey ? ["Alt"] : []), ...(isShift ? ["Shift"] : []), key].join("-");
}

/** As it is printed on the keys of this machine. */
export function shownKeys(keys: string): string[] {
  const names: Readonly<Record<string, string>> = isMac()
    ? { Mod: "⌘", Alt: "⌥", Shift: "⇧", Enter: "↩", Escape: "Esc" }
    : { Mod: "Ctrl", Escape: "Esc" };
  return keys.split(/-(?=.)| /).map((key) => names[key] ?? key);
}

/** Whether the press belongs to what is typed into a field. */
export function isTyping(event: KeyboardEvent): boolean {
  const { target } = event;
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}
