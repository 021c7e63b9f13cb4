import crypto from "node:crypto";
import { Session } from "node:inspector/promises";
import { syncBuiltinESMExports } from "node:module";
import { beforeAll, expect, test } from "vitest";
import { staticTokens } from "./static-tokens.ts";

/**
 * That a comparison takes as long for every wrong token is shown by what is executed, not by a clock: how often each
 * block of the module ran, as V8 counts it, and how often bytes were compared, which `timingSafeEqual` does in constant
 * time. Both must be the same wherever a token differs, and for a right one, whichever it is of.
 */
const KNOWN = ["aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", "cccccccccccccccc"];

const SHOWN = [
  "zzzzzzzzzzzzzzzz",
  "zaaaaaaaaaaaaaaa",
  "aaaaaaaazaaaaaaa",
  "aaaaaaaaaaaaaaaz",
  "bbbbbbbbbbbbbbbz",
  "cccccccccccccccz",
  "a",
  "aaaaaaaaaaaaaaaaa",
  "a".repeat(8_000),
];

type Ran = { comparisons: number; blocks: string };

/** What is executed while a token is judged. */
async function executed(token: string): Promise<Ran> {
  const backend = staticTokens(KNOWN.map((known) => ({ token: known, role: "read" })));
  const original = crypto.timingSafeEqual;
  let comparisons = 0;
  crypto.timingSafeEqual = (a, b) => {
    comparisons++;
    return original(a, b);
  };
  syncBuiltinESMExports();
  const session = new Session();
  session.connect();
  try {
    await session.post("Profiler.enable");
    await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
    // Loading and earlier tests are no part of it.
    await session.post("Profiler.takePreciseCoverage");
    await backend.authenticate(token, { address: "", requestId: "" });
    const { result } = await session.post("Profiler.takePreciseCoverage");
    const module = result.find(({ url }) => url.endsWith("/static-tokens.ts"));
    const blocks = (module?.functions ?? []).flatMap(({ functionName, ranges }) =>
      ranges.map(({ startOffset, endOffset, count }) => `${functionName} ${startOffset}-${endOffset}: ${count}`),
    );
    return { comparisons, blocks: blocks.filter((block) => !block.endsWith(": 0")).join("\n") };
  } finally {
    session.disconnect();
    crypto.timingSafeEqual = original;
    syncBuiltinESMExports();
  }
}

// The first run of a function is counted in other ranges than later ones.
beforeAll(async () => void (await executed("warm")));

// V8 counts a call twice now and then, while it compiles the function anew.
const MISCOUNTS = { retry: 3 };

test("a wrong token is judged by the same steps wherever it differs", MISCOUNTS, async () => {
  const first = await executed(SHOWN[0] ?? "");
  expect(first.comparisons).toBe(KNOWN.length);
  expect(first.blocks).toContain("authenticate");
  for (const token of SHOWN) expect({ token, ...(await executed(token)) }).toEqual({ token, ...first });
});

test("a right token is judged by the same steps whichever it is", MISCOUNTS, async () => {
  const first = await executed(KNOWN[0] ?? "");
  expect(first.comparisons).toBe(KNOWN.length);
  for (const token of KNOWN) expect({ token, ...(await executed(token)) }).toEqual({ token, ...first });
});
