import { spawn } from "node:child_process";
import { once } from "node:events";

/**
 * Asks the desktop to show an address; false where there is no program for that. What the browser does then is not known,
 * so the caller prints the address too. The program gets no `ENGINE_` variables: they may hold secrets.
 */
export async function openInBrowser(url: URL, env: Readonly<Record<string, string | undefined>>): Promise<boolean> {
  const program = process.platform === "darwin" ? "open" : "xdg-open";
  const passed = Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("ENGINE_")));
  const child = spawn(program, [url.href], { detached: true, stdio: "ignore", env: passed });
  child.unref();
  try {
    await once(child, "spawn");
    return true;
  } catch {
    return false;
  }
}
