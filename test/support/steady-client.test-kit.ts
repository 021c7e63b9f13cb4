import { delay } from "../../src/core/waiting.test-kit.ts";
import { ingest } from "./client.ts";

/** Names are an id, which is also the key of the request: one is sent until it is acknowledged, then the next. */
export type SteadyClient = {
  /** Rows that were acknowledged; the table has just these. */
  readonly acknowledged: number;
  /** Of tries that failed, what was answered. */
  readonly failures: readonly string[];
  stop(): Promise<void>;
};

const PAUSE_MS = 20;
const TRY_MS = 20_000;

/** Sends one row after the other to the table `t` of a server that may be away, each under a key of its own. */
export function keepSending(urlOf: () => string, name: string): SteadyClient {
  const state = { isRunning: true, acknowledged: 0, failures: [] as string[] };
  const sendOnce = async (id: string): Promise<boolean> => {
    const key = { "X-Idempotency-Key": id };
    const answer = await ingest(urlOf(), "t", `${JSON.stringify({ id })}\n`, key, TRY_MS).catch(String);
    if (typeof answer !== "string" && answer.status === 200) return true;
    state.failures.push(typeof answer === "string" ? answer : `${answer.status} ${answer.text}`);
    await delay(PAUSE_MS);
    return false;
  };
  const done = (async () => {
    while (state.isRunning) {
      const id = `${name}-${state.acknowledged}`;
      // What was sent may be stored: it is repeated to its end.
      while (!(await sendOnce(id))) continue;
      state.acknowledged++;
    }
  })();
  return {
    get acknowledged() {
      return state.acknowledged;
    },
    get failures() {
      return state.failures;
    },
    stop: () => ((state.isRunning = false), done),
  };
}
