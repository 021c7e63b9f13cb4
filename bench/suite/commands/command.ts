/** A command of `npm run bench`: one file, and one line in `bench/main.ts`. */
export type Command = {
  /** What may follow its name, and what it is for, as the help shows them. */
  usage: string;
  doc: string;
  /**
   * Resolves to the exit code: 0, 1 for what it was asked to find, or 3 where the machine was too noisy for a result.
   * Throws a `UsageError` for arguments that it does not take.
   */
  run: (args: readonly string[], signal: AbortSignal) => Promise<number>;
};

/** The machine was too noisy for a result. */
export const TOO_NOISY = 3;

/** A sentence about the arguments, which the help follows. */
export class UsageError extends Error {}
