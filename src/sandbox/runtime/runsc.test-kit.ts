import { describe } from "vitest";
import { lacking } from "../../core/capabilities.test-kit.ts";
import { describeInCage } from "./cage.test-kit.ts";
import { findLauncher } from "./open-runtime.ts";

/** Why machines cannot be made by runsc here; undefined where they can. */
const runscProblem = lacking("runsc") ?? (await findLauncher({ runtime: "runsc" }).then(() => undefined, String));
if (runscProblem !== undefined) process.stdout.write(`sandboxes by runsc are not tested: ${runscProblem}\n`);

/** Tests of machines that runsc makes. */
export const describeByRunsc = runscProblem === undefined ? describeInCage : describe.skip;
