import type { TurnEnds } from "../turns/turn-ends.ts";
import type { SandboxPorts } from "./ports.ts";

/** Counts turns that have ended, and tells those who wait for them. */
export function tellOfTurns(
  { metrics, signals }: Pick<SandboxPorts, "metrics" | "signals">,
  { ended }: TurnEnds,
): void {
  for (const { sessionId, outcome } of ended) {
    metrics.turnEnded(outcome);
    signals.turnEnded(sessionId);
  }
}
