import { canonicalHost } from "./host-names.ts";

const MAX_CHARS = 2_048;

/**
 * The URL of a repository as git is given it: `https:`, or `http:` (which an operator has to allow). Undefined for every
 * other way of git's: local files, programs (`ext::`), SSH; and for URLs that carry a secret or are cut off.
 */
export function toRepositoryUrl(text: string): string | undefined {
  if (text.length > MAX_CHARS || !/^https?:\/\/[^\s\p{Cc}\\]+$/iu.test(text) || !text.isWellFormed()) return undefined;
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || canonicalHost(url.hostname) === undefined) return undefined;
  const { username, password, search, hash, pathname, href } = url;
  if (username !== "" || password !== "" || pathname === "/" || search !== "" || hash !== "") return undefined;
  return /[?#]/.test(href) ? undefined : href;
}

/** The last part of its path, as git names a clone. */
export function repositoryName(url: string): string {
  const last = new URL(url).pathname.replace(/\/+$/, "").split("/").at(-1) ?? "";
  return last.replace(/\.git$/, "");
}

/** The host of such a URL, as rules of hosts are compared with it. */
export function repositoryHost(url: string): string {
  return canonicalHost(new URL(url).hostname) ?? "";
}
