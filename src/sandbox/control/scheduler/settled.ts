import type { Asker } from "../../../auth/owner.ts";
import type { Clock } from "../../../core/clock.ts";
import { pause } from "../../../core/clock.ts";
import { EngineError } from "../../../core/errors.ts";
import { SANDBOX_ACTIONS, type SandboxAction } from "../../contract/states.ts";
import { getSandbox } from "./find.ts";
import type { SandboxPorts } from "./ports.ts";
import type { Sandbox } from "./sandbox.ts";

/** Signals may be lost. */
const LOOK_EVERY_MS = 500;

export type Wait = { action: SandboxAction; asker: Asker; timeoutMs: number; signal: AbortSignal };

/**
 * The sandbox when it is where an action leads, or cannot get there any more: it failed, was deleted, or somebody wants
 * something else of it by now; or as it is when the time is over or the asker has gone.
 */
export async function settled(
  ports: Pick<SandboxPorts, "records" | "signals"> & { clock: Clock },
  sandbox: Sandbox,
  { action, asker, timeoutMs, signal }: Wait,
): Promise<Sandbox> {
  const { clock, signals, records } = ports;
  const endsAtMs = clock.monotonicMs() + timeoutMs;
  let news = new AbortController();
  const stop = signals.onEvents((id) => (id === undefined || id === sandbox.id) && news.abort());
  try {
    let seen = sandbox;
    for (;;) {
      const leftMs = endsAtMs - clock.monotonicMs();
      if (isSettled(seen, action) || leftMs <= 0 || signal.aborted) return seen;
      await pause(clock, Math.min(leftMs, LOOK_EVERY_MS), AbortSignal.any([news.signal, signal]));
      news = new AbortController();
      const found = await getSandbox(records, sandbox.id, asker).catch(orGone);
      if (found === undefined) return seen;
      seen = found;
    }
  } finally {
    stop();
  }
}

function isSettled({ state, wanted }: Sandbox, action: SandboxAction): boolean {
  const { rests, wanted: asked } = SANDBOX_ACTIONS[action];
  return state === rests || state === "failed" || wanted !== asked;
}

function orGone(error: unknown): undefined {
  if (error instanceof EngineError && error.code === "sandbox_not_found") return undefined;
  throw error;
}
