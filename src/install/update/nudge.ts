import { spawn } from "node:child_process";
import type { CliContext } from "../../client/context.ts";
import { valuesOf } from "../../config/option.ts";
import { distribution, programCommand, type DistributionKind } from "../../core/distribution.ts";
import { StartupError, systemCodeOf } from "../../core/errors.ts";
import { compareVersions } from "../release/version-order.ts";
import { readMemory, writeMemory } from "./memory.ts";
import { UPDATE_OPTIONS } from "./options.ts";

const PERIOD_MS = 24 * 60 * 60 * 1000;

/**
 * Tells whoever sits at a terminal of a newer release that an earlier look has found, and looks anew in a process of its
 * own, whose answer the next command finds. Once a day, and never in CI; nothing waits for it.
 */
export async function nudge(context: CliContext, program: Program = thisProgram()): Promise<void> {
  const { env, stderr, clock, random, version } = context.deps;
  if (stderr.isTTY !== true || (env["CI"] ?? "") !== "" || (env["ENGINE_NO_UPDATE_CHECK"] ?? "") !== "") return;
  try {
    const config = valuesOf(UPDATE_OPTIONS, (await context.loadConfigQuietly({})).config);
    if (config.noUpdateCheck !== undefined || config.updateUrl === undefined) return;
    if (program.kind === "checkout") return;
    const memory = await readMemory(config.home);
    const nowMs = clock.nowMs();
    // A clock that was set back does not silence it for ever.
    if (Math.abs(nowMs - (memory.nudgedAtMs ?? 0)) < PERIOD_MS) return;
    await writeMemory(config.home, { ...memory, nudgedAtMs: nowMs }, random);
    const { newest } = memory;
    if (newest !== undefined && compareVersions(newest.version, version) > 0) {
      context.note(`engine ${newest.version} is available (this is ${version}): engine update`);
    }
    lookInBackground(program.command, env);
  } catch (error) {
    // A command that did its work does not fail for this: a home that is read-only, options that are wrong.
    if (!(error instanceof StartupError) && systemCodeOf(error) === undefined) throw error;
  }
}

type Program = { kind: DistributionKind; command: readonly string[] };

function thisProgram(): Program {
  return { kind: distribution().kind, command: programCommand() };
}

function lookInBackground(command: readonly string[], env: Readonly<Record<string, string | undefined>>): void {
  const [program = "", ...words] = command;
  const child = spawn(program, [...words, "update", "--check"], { detached: true, stdio: "ignore", env });
  // Whether it could be started shows tomorrow.
  child.once("error", () => undefined);
  child.unref();
}
