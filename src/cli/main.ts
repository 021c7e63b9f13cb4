import { CliContext, type CliDeps } from "./context.ts";
import { describeError, exitCodeOf } from "./failure.ts";
import { styleFor } from "./text.ts";

export type { CliDeps, ServeOptions } from "./context.ts";

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
  const context = new CliContext(deps);
  try {
    const { runProgram } = await import("./program.ts");
    await runProgram(argv, context);
    return context.exitCode;
  } catch (error) {
    const { message, detail } = describeError(error);
    context.note(`${styleFor(deps.stderr, deps.env)("red", "error:")} ${message}`);
    if (detail !== undefined) context.note(detail);
    return exitCodeOf(error);
  }
}
