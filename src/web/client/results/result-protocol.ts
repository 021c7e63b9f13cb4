import type { CellRange, CopyFormat, ResultColumn, ShownCell } from "./result-store.ts";

/** What a query asks the server, by the worker that keeps its rows. */
export type RunRequest = {
  path: string;
  headers: Readonly<Record<string, string>>;
  body: string;
};

/** To the worker. Each ask is answered under its number. */
export type Ask =
  | { kind: "run"; request: RunRequest }
  | { kind: "stop" }
  | { kind: "window"; ask: number; from: number; to: number; columns: readonly number[] }
  | { kind: "cell"; ask: number; row: number; column: number }
  | { kind: "row"; ask: number; row: number }
  | { kind: "sort"; ask: number; column: number | undefined; isDescending: boolean }
  | { kind: "filter"; ask: number; text: string }
  | { kind: "copy"; ask: number; range: CellRange; format: CopyFormat }
  | { kind: "numbers"; ask: number; columns: readonly number[]; most: number };

/** What an answer's head says. */
export type ResultHead = {
  isTruncated: boolean;
  /** What `render` of a KQL query asks for. */
  render: string | undefined;
};

/** From the worker. */
export type Told =
  | { kind: "head"; head: ResultHead }
  | { kind: "columns"; columns: readonly ResultColumn[] }
  /** The first rows, with all their columns, come without being asked for: nothing is painted sooner. */
  | { kind: "progress"; received: number; shown: number; bytes: number; first?: ShownCell[][] }
  | { kind: "end" }
  /** The server's error, or what went wrong on the way. */
  | { kind: "failed"; status: number; text: string; headers: readonly (readonly [string, string])[] }
  | { kind: "broken"; message: string }
  | { kind: "answer"; ask: number; value: unknown };

export type Answers = {
  window: ShownCell[][];
  cell: { text: string | null; json: string };
  row: string;
  sort: number;
  filter: number;
  copy: string;
  numbers: (number | null)[][];
};
