/** What happens and cannot be seen by everybody: read out by screen readers, and shown for a moment where it is said so. */
export type Notice = { id: number; text: string; tone: "info" | "good" | "bad"; isShown: boolean };

type Listener = (notice: Notice) => void;

const listeners = new Set<Listener>();
let count = 0;

/** Has a screen reader say it. */
export function announce(text: string): void {
  tell({ text, tone: "info", isShown: false });
}

/** Shows it for some seconds, too. */
export function toast(text: string, tone: Notice["tone"] = "info"): void {
  tell({ text, tone, isShown: true });
}

function tell(notice: Omit<Notice, "id">): void {
  count++;
  for (const listener of listeners) listener({ ...notice, id: count });
}

export function onNotice(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
