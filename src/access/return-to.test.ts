import * as fc from "fast-check";
import { expect, test } from "vitest";
import { returnTo } from "./return-to.ts";

test.each([
  ["/ui/", "/ui/"],
  ["/ui/tables?x=1#y", "/ui/tables?x=1#y"],
  ["/ui/a/../b", "/ui/b"],
  ["/ui/a%20b", "/ui/a%20b"],
  ["/ui/sql?query=a%2Fb%0D", "/ui/sql?query=a%2Fb%0D"],
])("%s is a place to return to", (text, place) => {
  expect(returnTo(text)).toBe(place);
});

/** Characters that browsers, proxies and parsers of addresses read in ways of their own. */
const piece = fc.constantFrom(
  "/",
  "\\",
  ".",
  "..",
  "ui",
  "%2e",
  "%2F",
  "%5c",
  "%0d",
  "@",
  ":",
  "?",
  "#",
  "\t",
  "\r",
  "\n",
  "\0",
  "a",
  "//",
  "evil.example",
  "é",
);

test("whatever is asked for, a browser stays below /ui/ of this server", () => {
  const text = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(""));
  const stays = (asked: string): boolean => {
    const place = returnTo(asked);
    if (place === undefined) return true;
    // As a browser goes on from a redirect; what a server decodes once more must not lead out either.
    const url = new URL(place, "https://engine.example/v1/auth/web/callback");
    const decoded = decodeURIComponent(url.pathname);
    const again = new URL(decoded, "https://engine.example");
    return (
      [url, again].every(
        ({ origin, pathname }) => origin === "https://engine.example" && pathname.startsWith("/ui/"),
      ) && !/[\r\n\\]/.test(place + decoded)
    );
  };
  fc.assert(
    fc.property(
      fc.oneof(
        text,
        text.map((rest) => `/ui/${rest}`),
      ),
      stays,
    ),
    { numRuns: 20_000 },
  );
  expect(returnTo("/ui/..//evil.example")).toBeUndefined();
});
