import { describe } from "vitest";
import { findLauncher } from "./open-runtime.ts";
import { describeAsRoot } from "./root.test-kit.ts";

const problem = await findLauncher({ runtime: "runsc" }).then(
  () => undefined,
  (error: unknown) => String(error),
);
if (problem !== undefined) process.stdout.write(`tests of sandboxes by runsc are skipped: ${problem}\n`);

/** Tests of machines by runsc; where that is not installed they are skipped, with a line that says so. */
export const describeWithRunsc = problem === undefined ? describeAsRoot : describe.skip;
