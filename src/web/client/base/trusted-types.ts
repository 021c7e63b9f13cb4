/**
 * The one Trusted Types policy of the pages: only this server's own files become scripts, and there is no way from text to
 * HTML. The page's Content Security Policy allows no other policy.
 */
type Policy = { createScriptURL(url: string): unknown };
type PolicyFactory = { createPolicy(name: string, rules: { createScriptURL(url: string): string }): Policy };

let policy: Policy | undefined;

/** The address of a worker, for `new Worker`. Throws for one that is not among the files of the pages. */
export function scriptUrl(url: string | URL): URL {
  const checked = ownScript(String(url));
  const { trustedTypes } = globalThis as { trustedTypes?: PolicyFactory };
  if (trustedTypes === undefined) return new URL(checked);
  policy ??= trustedTypes.createPolicy("engine", { createScriptURL: ownScript });
  // A `TrustedScriptURL`, which TypeScript's DOM does not know; `new Worker` takes it in the place of a URL.
  return policy.createScriptURL(checked) as URL;
}

function ownScript(text: string): string {
  const url = new URL(text, location.href);
  const isOwn = url.origin === location.origin && url.pathname.startsWith("/ui/assets/");
  if (!isOwn) throw new TypeError(`${url.href} is not a script of this server`);
  return url.href;
}
