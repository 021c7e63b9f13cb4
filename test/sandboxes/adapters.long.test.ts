import { afterAll, beforeAll, expect, it } from "vitest";
import { describeInCage } from "../../src/sandbox/runtime/cage.test-kit.ts";
import { RealAgentLab } from "./real-agents.ts";
import { TIMEOUT_MS } from "./server.test-kit.ts";

/** The smallest to install; `scripts/adapters.ts` has all. */
const PROVIDER = "gemini-cli";

describeInCage("a real agent in a real sandbox, behind the gateway", () => {
  let lab: RealAgentLab;
  beforeAll(async () => {
    lab = await RealAgentLab.open([PROVIDER]);
  }, TIMEOUT_MS);
  afterAll(() => lab.close(), TIMEOUT_MS);

  it("uses what it may and nothing else, and never has the key", { timeout: TIMEOUT_MS }, async () => {
    const { problems, requests } = await lab.run(PROVIDER);
    expect(problems).toEqual([]);
    expect(requests).toBeGreaterThanOrEqual(4);
  });
});
