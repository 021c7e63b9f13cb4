import { afterEach, beforeEach, vi } from "vitest";

/** What each test of the file prints, line by line; nothing reaches the terminal. */
export function keepPrinted(): readonly string[] {
  const printed: string[] = [];
  beforeEach(() => {
    printed.length = 0;
    vi.spyOn(console, "log").mockImplementation((text: unknown) => {
      printed.push(String(text));
    });
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });
  return printed;
}
