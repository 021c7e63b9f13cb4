/** What the browser keeps for this server, as text. A browser that keeps nothing (private windows) changes nothing else. */
export const storage = {
  get(name: string): string | undefined {
    try {
      return localStorage.getItem(PREFIX + name) ?? undefined;
    } catch {
      return undefined;
    }
  },
  set(name: string, value: string | undefined): void {
    try {
      if (value === undefined) localStorage.removeItem(PREFIX + name);
      else localStorage.setItem(PREFIX + name, value);
    } catch {
      // Full, or switched off: the choice holds until the page is closed.
    }
  },
};

const PREFIX = "engine.";
