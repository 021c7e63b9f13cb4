/** A row that sinks its body: why, and in which column if it is about one. Whoever knows the line number adds it. */
export class RowRefused extends Error {
  readonly column: string | undefined;

  constructor(reason: string, column?: string) {
    super(reason);
    this.name = "RowRefused";
    this.column = column;
  }
}
