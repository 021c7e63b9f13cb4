import { CliContext, type ContextDeps } from "../client/context.ts";
import type { FeatureParts } from "../feature/feature.ts";
import { describeError, exitCodeOf } from "../client/failure.ts";
import { styleFor } from "../client/text.ts";

/** What the command line needs of the world around it. */
export type CliDeps = Omit<ContextDeps, "rows"> & {
  /** What the program consists of: their options and commands join those of the command line; none unless given. */
  features?: () => Promise<readonly FeatureParts[]>;
};

/**
 * Runs one command line (without `node` and the script) and resolves to its exit code: 0 done, 1 failed, 2 wrong usage
 * or configuration, 4 the server wants another token. Never rejects: errors go to standard error as `error: …`.
 *
 * Commands and their dependencies are loaded when they run, and `--version` loads none of them.
 */
export async function runCli(argv: readonly string[], deps: CliDeps): Promise<number> {
  if (argv.length === 1 && (argv[0] === "--version" || argv[0] === "-V")) {
    deps.stdout.write(`${deps.version}\n`);
    return 0;
  }
  const features = async () => (await deps.features?.()) ?? [];
  const context = new CliContext({
    ...deps,
    rows: async () => (await import("../feature/collect.ts")).optionRowsOf(await features()),
  });
  try {
    const { runProgram } = await import("./program.ts");
    await runProgram(argv, context, await features());
    if (deps.stderr.isTTY === true && argv[0] !== "update") {
      await (await import("../install/update/nudge.ts")).nudge(context);
    }
    return context.exitCode;
  } catch (error) {
    const { message, detail } = describeError(error);
    context.note(`${styleFor(deps.stderr, deps.env)("red", "error:")} ${message}`);
    if (detail !== undefined) context.note(detail);
    return exitCodeOf(error);
  }
}
