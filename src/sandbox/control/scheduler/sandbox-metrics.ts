import type { RecordStore } from "../../../db/records.ts";
import { EngineError } from "../../../core/errors.ts";
import type { Metrics } from "../../../core/metrics.ts";
import { textOf } from "../../../fabric/job.ts";
import { SANDBOX_METRICS } from "../../contract/metrics.ts";
import type { TurnOutcome } from "../../contract/session-states.ts";
import { SANDBOX_STATES, type SandboxState } from "../../contract/states.ts";
import { IS_SILENT } from "../room.ts";
import type { Sandbox } from "./sandbox.ts";

/** Why a sandbox failed, as metrics tell it. */
type FailureReason = "no_room" | "making" | "ended" | "node_lost";

/** Counts what the control plane of this process does. */
export class SandboxMetrics {
  readonly #metrics: ReturnType<typeof SANDBOX_METRICS.of>;

  constructor(metrics: Pick<Metrics, "registry">) {
    this.#metrics = SANDBOX_METRICS.of(metrics);
  }

  /** Of a creation under way: how it ends. */
  async created<T>(creating: Promise<T>): Promise<T> {
    const { sandboxCreates } = this.#metrics;
    try {
      const made = await creating;
      sandboxCreates.inc({ outcome: "ok" });
      return made;
    } catch (error) {
      sandboxCreates.inc({ outcome: error instanceof EngineError ? error.code : "internal" });
      throw error;
    }
  }

  failed(reason: FailureReason): void {
    this.#metrics.sandboxFailures.inc({ reason });
  }

  /** The agent has answered a message, or never will. */
  turnEnded(outcome: TurnOutcome): void {
    this.#metrics.sandboxTurns.inc({ outcome });
  }

  /** A node said that the state has changed. */
  moved(before: Pick<Sandbox, "state" | "stateSinceMs">, after: Pick<Sandbox, "state" | "stateSinceMs">): void {
    if (after.state === before.state) return;
    const wasMade = before.state !== "pending" && before.state !== "creating";
    if (after.state === "failed") this.failed(wasMade ? "ended" : "making");
    if (after.state !== "running" || before.state !== "creating") return;
    // Both by the clock of the database.
    const tookMs = Math.max(0, after.stateSinceMs - before.stateSinceMs);
    this.#metrics.sandboxMakingDuration.observe(tookMs / 1_000);
  }

  /** All sandboxes and nodes, for the process that has the duty. */
  show({ states, nodes }: SandboxCounts): void {
    this.hide();
    const { sandboxesExisting, sandboxNodes } = this.#metrics;
    for (const state of SANDBOX_STATES) sandboxesExisting.set({ state }, states.get(state) ?? 0);
    sandboxNodes.set({ status: "live" }, nodes.live);
    sandboxNodes.set({ status: "silent" }, nodes.silent);
  }

  /** Another process tells from here on. */
  hide(): void {
    this.#metrics.sandboxesExisting.reset();
    this.#metrics.sandboxNodes.reset();
  }
}

export type SandboxCounts = {
  states: ReadonlyMap<SandboxState, number>;
  nodes: { live: number; silent: number };
};

export async function countSandboxes(records: RecordStore): Promise<SandboxCounts> {
  const rows = await records.rows("SELECT state, count(*) AS sandboxes FROM sandboxes GROUP BY state");
  const counted = new Map(rows.map((row) => [textOf(row, "state"), Number(row["sandboxes"])]));
  const [nodes] = await records.rows(
    `SELECT count(*) AS nodes, coalesce(sum(CASE WHEN ${IS_SILENT.sql} THEN 1 ELSE 0 END), 0) AS silent FROM sandbox_nodes`,
    [IS_SILENT.value],
  );
  const silent = Number(nodes?.["silent"] ?? 0);
  return {
    states: new Map(SANDBOX_STATES.map((state) => [state, counted.get(state) ?? 0])),
    nodes: { live: Number(nodes?.["nodes"] ?? 0) - silent, silent },
  };
}
