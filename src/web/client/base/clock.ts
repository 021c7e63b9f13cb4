/** The browser's clock and timers, for all of the pages: nothing else reaches for them, so that tests can stand in. */
export const clock = {
  nowMs: (): number => Date.now(),
  /** Never goes back. */
  monotonicMs: (): number => performance.now(),
  /** Runs `action` once. Returns what cancels it. */
  after: (delayMs: number, action: () => void): (() => void) => {
    const timer = setTimeout(action, delayMs);
    return () => clearTimeout(timer);
  },
  /** Runs `action` again and again. Returns what ends it. */
  every: (periodMs: number, action: () => void): (() => void) => {
    const timer = setInterval(action, periodMs);
    return () => clearInterval(timer);
  },
};

/** Resolves after that time, or at once when `signal` aborts. */
export function pause(delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal.removeEventListener("abort", end);
      resolve();
    };
    const cancel = clock.after(delayMs, end);
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });
}

/** A new UUID, for requests that the server is to know by a name of ours. */
export function newId(): string {
  // Pages over plain HTTP of another host have no `randomUUID`.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
