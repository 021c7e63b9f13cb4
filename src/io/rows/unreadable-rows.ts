/** Input that cannot be read as rows, for a reason of its own: others may go on. The message says where and why. */
export class UnreadableRows extends Error {
  /** 1-based line (or row) of the input, where one is to blame. */
  readonly line: number | undefined;
  /** The column that is to blame. */
  readonly column: string | undefined;

  constructor(message: string, { cause, line, column }: { cause?: unknown; line?: number; column?: string } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "UnreadableRows";
    this.line = line;
    this.column = column;
  }
}
