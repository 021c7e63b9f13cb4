/** Folders in which the agent works; the first one is its home, the second is made where it is used. */
export const AGENT_ROOTS = ["/home/agent", "/workspace"] as const;

/**
 * The absolute path of a folder in one of `AGENT_ROOTS`, the folder itself included; undefined for one that is not, or is
 * written in a way that leads anywhere else. A relative path is one below `base`.
 */
export function folderInside(path: string, base?: string): string | undefined {
  if (path === "" || path.startsWith("-") || !path.isWellFormed() || /\p{Cc}/u.test(path)) return undefined;
  if (!path.startsWith("/") && base === undefined) return undefined;
  const whole = path.startsWith("/") ? path : `${base}/${path}`;
  const [, ...parts] = whole.split("/");
  if (parts.some((part) => part === "" || part === "." || part === "..")) return undefined;
  return AGENT_ROOTS.some((root) => whole === root || whole.startsWith(`${root}/`)) ? whole : undefined;
}
