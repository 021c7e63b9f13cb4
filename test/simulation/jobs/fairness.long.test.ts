import { expect, test } from "vitest";
import { longestWait } from "./fairness.ts";

test("no kind and database waits for more claims than there are such groups", async () => {
  for (let seed = 1; seed <= 30; seed++) {
    const { claims, groups } = await longestWait(seed);
    expect({ seed, isFair: claims < groups }, `${claims} claims`).toEqual({ seed, isFair: true });
  }
});
