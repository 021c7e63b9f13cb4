import type { RecordStore } from "../../../catalog/records.ts";
import type { Clock } from "../../../core/clock.ts";
import type { SandboxSignals } from "../signals.ts";
import { messageAt, type SessionMessage } from "../turns/messages.ts";

/** A turn as the one who waits for its end knows it. */
export type BegunTurn = {
  sessionId: string;
  turnId: string;
  /** Number of the message that will end it. */
  answerSeq: number;
  /** Number of the newest event of the sandbox before it. */
  eventSeq: number;
};

/** What the agent answered: `message.error` says why a turn failed. `gone`: its sandbox was deleted. */
export type EndedTurn = { type: "answered"; message: SessionMessage } | { type: "gone" };

/** Signals may be lost. */
const LOOK_EVERY_MS = 2_000;
/** Of a turn that was begun at this moment: whatever ends it before this process listens is hardly any. */
const FIRST_LOOK_MS = 50;

type Ports = { records: Pick<RecordStore, "rows">; signals: Pick<SandboxSignals, "onTurnEnded">; clock: Clock };

/**
 * How a turn ended, whichever process it was told; undefined when the signal is aborted first.
 *
 * @param isNew whether it was begun just now, and need not be looked up at once
 */
export async function turnEnd(
  { records, signals, clock }: Ports,
  { sessionId, answerSeq }: BegunTurn,
  { signal, isNew = false }: { signal: AbortSignal; isNew?: boolean },
): Promise<EndedTurn | undefined> {
  let news = Promise.withResolvers<void>();
  const wake = () => news.resolve();
  const newsWithin = async (ms: number): Promise<void> => {
    const timer = clock.after(ms, wake);
    await news.promise;
    timer.cancel();
  };
  const stop = signals.onTurnEnded((id) => (id === undefined || id === sessionId) && wake());
  signal.addEventListener("abort", wake);
  try {
    if (isNew && !signal.aborted) await newsWithin(FIRST_LOOK_MS);
    while (!signal.aborted) {
      news = Promise.withResolvers();
      const message = await messageAt(records, sessionId, answerSeq);
      if (message !== undefined) return { type: "answered", message };
      if (await isGone(records, sessionId)) return { type: "gone" };
      await newsWithin(LOOK_EVERY_MS);
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
