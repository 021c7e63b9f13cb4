import { useEffect, useState } from "preact/hooks";
import { storage } from "./storage.ts";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const CHANGED = "engine:theme";

/** What was chosen; `system` unless something was. */
export function chosenTheme(): Theme {
  const stored = storage.get("theme");
  return THEMES.find((theme) => theme === stored) ?? "system";
}

export function chooseTheme(theme: Theme): void {
  storage.set("theme", theme === "system" ? undefined : theme);
  applyTheme();
  dispatchEvent(new Event(CHANGED));
}

/** Before anything is drawn: styles look at `data-theme`, and at the system where there is none. */
export function applyTheme(theme: Theme = chosenTheme()): void {
  const { dataset } = document.documentElement;
  if (theme === "system") delete dataset["theme"];
  else dataset["theme"] = theme;
}

/** Whether the page is dark now; changes with the choice and with the system. */
export function useIsDark(): boolean {
  const [isDark, setDark] = useState(readIsDark);
  useEffect(() => {
    const system = matchMedia(DARK);
    const read = () => setDark(readIsDark());
    system.addEventListener("change", read);
    addEventListener(CHANGED, read);
    return () => {
      system.removeEventListener("change", read);
      removeEventListener(CHANGED, read);
    };
  }, []);
  return isDark;
}

export function useTheme(): Theme {
  const [theme, setTheme] = useState(chosenTheme);
  useEffect(() => {
    const read = () => setTheme(chosenTheme());
    addEventListener(CHANGED, read);
    return () => removeEventListener(CHANGED, read);
  }, []);
  return theme;
}

const DARK = "(prefers-color-scheme: dark)";

function readIsDark(): boolean {
  const theme = chosenTheme();
  return theme === "system" ? matchMedia(DARK).matches : theme === "dark";
}
