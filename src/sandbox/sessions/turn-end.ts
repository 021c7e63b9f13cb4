import type { RecordStore } from "../../catalog/records.ts";
import type { Clock } from "../../core/clock.ts";
import type { SandboxSignals } from "../scheduler/signals.ts";
import { messageAt, type SessionMessage } from "./messages.ts";

/** A turn as the one who waits for its end knows it. */
export type BegunTurn = {
  sessionId: string;
  turnId: string;
  /** Number of the message that will end it. */ answerSeq: number;
};

/** What the agent answered: `message.error` says why a turn failed. `gone`: its sandbox was deleted. */
export type EndedTurn = { type: "answered"; message: SessionMessage } | { type: "gone" };

/** Signals may be lost. */
const LOOK_EVERY_MS = 2_000;

type Ports = { records: Pick<RecordStore, "rows">; signals: Pick<SandboxSignals, "onTurnEnded">; clock: Clock };

/** How a turn ended, whichever process it was told; undefined when the signal is aborted first. */
export async function turnEnd(
  { records, signals, clock }: Ports,
  { sessionId, answerSeq }: BegunTurn,
  signal: AbortSignal,
): Promise<EndedTurn | undefined> {
  let news = Promise.withResolvers<void>();
  const wake = () => news.resolve();
  const stop = signals.onTurnEnded((id) => (id === undefined || id === sessionId) && wake());
  signal.addEventListener("abort", wake);
  try {
    while (!signal.aborted) {
      news = Promise.withResolvers();
      const message = await messageAt(records, sessionId, answerSeq);
      if (message !== undefined) return { type: "answered", message };
      if (await isGone(records, sessionId)) return { type: "gone" };
      const timer = clock.after(LOOK_EVERY_MS, wake);
      await news.promise;
      timer.cancel();
    }
    return undefined;
  } finally {
    signal.removeEventListener("abort", wake);
    stop();
  }
}

async function isGone(records: Pick<RecordStore, "rows">, sessionId: string): Promise<boolean> {
  return (await records.rows("SELECT id FROM sandbox_sessions WHERE id = ?", [sessionId])).length === 0;
}
