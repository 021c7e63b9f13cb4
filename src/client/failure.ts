import { EngineError, StartupError, messageOf, systemCodeOf } from "../core/errors.ts";

/** Exit codes, as `gh` has them: done; failed; wrong usage or configuration; the server wants another token. */
export const EXIT = { ok: 0, failed: 1, usage: 2, auth: 4 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** A command failed, and says in one sentence what happened and what to do next. */
export class CliError extends Error {
  readonly exitCode: ExitCode;
  /** Lines below the message, printed as they are (the place in a query). */
  readonly detail: string | undefined;

  constructor(message: string, exitCode: ExitCode = EXIT.failed, options: { cause?: unknown; detail?: string } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "CliError";
    this.exitCode = exitCode;
    this.detail = options.detail;
  }
}

/** The exit code of anything a command may throw. */
export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof CliError || error instanceof StartupError) return error.exitCode;
  return error instanceof EngineError && error.code === "invalid_name" ? EXIT.usage : EXIT.failed;
}

/** What standard error says after `error: `: one line, and `detail` below it. A mistake of ours brings its stack. */
export function describeError(error: unknown): { message: string; detail?: string } {
  const message = messageOf(error).replace(/\s*\n\s*/g, " ");
  const detail = error instanceof CliError ? error.detail : isBug(error) ? error.stack : undefined;
  return detail === undefined ? { message } : { message, detail };
}

/** Nothing that anybody threw on purpose, and nothing that the system said. */
function isBug(error: unknown): error is Error {
  if (error instanceof StartupError || error instanceof EngineError) return false;
  return error instanceof Error && systemCodeOf(error) === undefined;
}
