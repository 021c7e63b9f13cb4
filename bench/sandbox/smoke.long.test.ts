import { expect, test } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { cageProblem } from "../../src/sandbox/runtime/cage.test-kit.ts";
import { keepPrinted } from "../support/printed.test-kit.ts";
import { main as measureAgents } from "./agents.ts";

const printed = keepPrinted();

/** Sandboxes are measured with limits that hold; the kit prints why there are none. */
const hasCage = cageProblem === undefined;

test.skipIf(!hasCage || lacks("/usr/bin/node"))("agents are measured", { timeout: 120_000 }, async () => {
  await measureAgents(["--prompts", "2", "--deltas", "100", "--listeners", "2", "--rounds", "1"]);
  const text = printed.join("\n");
  expect(text).toMatch(/^on top( +-?[0-9.]+){2}$/m);
  expect(text).toMatch(/^100 pieces of text to one who listens: [0-9.]+\/s$/m);
  expect(text).toMatch(/none lost: [0-9.]+\/s in all$/m);
  expect(
    text.match(/^launch of a workspace, .*: running after [0-9.]+ ms, first answer after [0-9.]+ ms$/gm),
  ).toHaveLength(2);
  expect(text).toMatch(/^an image of 16 MiB: built in [0-9.]+ ms; /m);
});
