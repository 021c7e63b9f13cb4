import { useEffect, useReducer, useRef } from "preact/hooks";
import { request } from "../../base/api.ts";
import { ApiError } from "../../base/api-error.ts";
import { clock, pause } from "../../base/clock.ts";
import { parseExactly } from "../../base/exact-number.ts";
import type { Row } from "./paging.ts";
import { readServerEvents, type ServerEvent } from "./server-events.ts";
import { TailBuffer } from "./tail-buffer.ts";

export type TailState = "connecting" | "open" | "waiting" | "ended";

export type Tail = {
  buffer: TailBuffer;
  state: TailState;
  /** Why it waits or has ended. */
  error: unknown;
  pause: () => void;
  resume: () => void;
  clear: () => void;
  restart: () => void;
};

/** What is followed; another one begins anew. */
export type TailSource = { database: string; table: string; filter: string | undefined };

const DRAW_EVERY_MS = 100;
const FIRST_WAIT_MS = 1_000;
const MOST_WAIT_MS = 15_000;

/** Follows a table: after a failure it goes on from the row where it was. */
export function useTail(source: TailSource): Tail {
  const [attempt, restart] = useReducer((count: number) => count + 1, 0);
  const [, draw] = useReducer((count: number) => count + 1, 0);
  const now = useRef<Pick<Tail, "buffer" | "state" | "error">>({
    buffer: new TailBuffer(),
    state: "connecting",
    error: undefined,
  });
  const key = JSON.stringify(source);
  useEffect(() => {
    const { current } = now;
    current.buffer = new TailBuffer();
    const aborter = new AbortController();
    let isDrawn = true;
    const changed = (): void => {
      if (!isDrawn) return;
      isDrawn = false;
      clock.after(DRAW_EVERY_MS, () => {
        isDrawn = true;
        if (!aborter.signal.aborted) draw(undefined);
      });
    };
    const tell = (state: TailState, error?: unknown): void => {
      Object.assign(current, { state, error });
      changed();
    };
    void follow(source, { buffer: current.buffer, signal: aborter.signal, tell, changed });
    return () => aborter.abort();
  }, [key, attempt]);
  const { buffer, state, error } = now.current;
  const change = (act: () => void) => () => {
    act();
    draw(undefined);
  };
  return {
    buffer,
    state,
    error,
    pause: change(() => buffer.pause()),
    resume: change(() => buffer.resume()),
    clear: change(() => buffer.clear()),
    restart: () => restart(undefined),
  };
}

type Following = {
  buffer: TailBuffer;
  signal: AbortSignal;
  tell: (state: TailState, error?: unknown) => void;
  changed: () => void;
};

async function follow({ database, table, filter }: TailSource, following: Following): Promise<void> {
  const { buffer, signal, tell, changed } = following;
  let lastId: string | undefined;
  let waitMs = FIRST_WAIT_MS;
  while (!signal.aborted) {
    tell("connecting");
    const failure = await readOnce();
    if (signal.aborted) return;
    if (failure instanceof ApiError && failure.code === "snapshot_expired") {
      buffer.gap("Rows are missing here: the tail can no longer read them. Run a query to see them.");
      lastId = undefined;
    } else if (!(failure instanceof ApiError && failure.isTemporary)) {
      tell("ended", failure);
      return;
    }
    tell("waiting", failure);
    await pause(failure instanceof ApiError ? (failure.details.retryAfterMs ?? waitMs) : waitMs, signal);
    waitMs = Math.min(waitMs * 2, MOST_WAIT_MS);
  }

  /** Resolves to why the stream ended. */
  async function readOnce(): Promise<unknown> {
    try {
      const response = await request("/v1/tail", {
        query: { table, filter },
        headers: { "X-Database": database, ...(lastId !== undefined && { "Last-Event-ID": lastId }) },
        signal,
      });
      if (response.body === null) throw new Error("the answer has no body");
      tell("open");
      for await (const events of readServerEvents(response.body)) {
        waitMs = FIRST_WAIT_MS;
        buffer.add(events.flatMap(rowOf));
        lastId = events.findLast(({ id }) => id !== undefined)?.id ?? lastId;
        changed();
        const end = events.find(({ event }) => event === "end");
        if (end !== undefined) return endOf(end);
      }
    } catch (error) {
      return error instanceof ApiError ? error : brokenOff(error);
    }
    return brokenOff(undefined);
  }
}

function rowOf({ event, data }: ServerEvent): Row[] {
  return event === "message" && data !== undefined ? [parseExactly(data) as Row] : [];
}

function endOf({ data = "{}" }: ServerEvent): ApiError {
  const { code, message, reconnect } = JSON.parse(data) as { code: string; message: string; reconnect: boolean };
  return new ApiError(reconnect ? 503 : 400, { code, message });
}

function brokenOff(cause: unknown): ApiError {
  return new ApiError(0, { code: "broken_off", message: "the connection to the server broke off" }, { cause });
}
