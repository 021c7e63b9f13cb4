import type { Caller } from "../../auth/caller.ts";

/** An observation, as the firehose has it. */
export type ObservedEvent = {
  /** Tells the events of a database apart, for ever. */
  id: string;
  /** RFC 3339. */
  at: string;
  /** A JSON object: the row, with its secrets masked. */
  text: string;
};

export type EventPage<Position> = { rows: readonly { id: string; text: string }[]; position: Position; isEnd: boolean };

export type EventRequest = {
  caller: Caller;
  database: string;
  table: string;
  /** Where the page before ended, as it was given; undefined for the first one. */
  position: unknown;
  rows: number;
  bytes: number;
  signal: AbortSignal;
};

/** Reads the rows that came to a table, each once, with the rights of the caller. */
export type EventSource = { read(request: EventRequest): Promise<EventPage<unknown>> };
