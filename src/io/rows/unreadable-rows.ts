/** Input that cannot be read as rows, for a reason of its own: others may go on. The message says where and why. */
export class UnreadableRows extends Error {
  /** 1-based line (or row) of the input, where one is to blame. */
  readonly line: number | undefined;
  /** The column that is to blame. */
  readonly column: string | undefined;
  /** Its reader died of it, or of something else on this machine. */
  readonly isCrash: boolean;

  constructor(
    message: string,
    {
      cause,
      line,
      column,
      isCrash = false,
    }: { cause?: unknown; line?: number; column?: string; isCrash?: boolean } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "UnreadableRows";
    this.line = line;
    this.column = column;
    this.isCrash = isCrash;
  }
}
