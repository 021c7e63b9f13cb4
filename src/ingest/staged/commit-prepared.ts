import type { Catalog, FlushOutcome, Lease } from "../../catalog/catalog.ts";
import { InvariantViolation } from "../../catalog/invariants.ts";
import { ExtentPendingDeletion, LeaseLost } from "../../catalog/refusals.ts";
import { EngineError } from "../../core/errors.ts";
import { INGEST_METRICS, countCommitted } from "../metrics.ts";
import { discardExtents } from "../upload.ts";
import type { Draft } from "./draft.ts";
import type { ListedObject } from "./listing.ts";
import type { Prepared, PreparePorts } from "./prepare.ts";

type CommitPorts = PreparePorts & { catalog: Catalog; maxExtents: number };

/** Who hears what becomes of single objects. */
type Told = {
  /** They are in. */
  done: (objects: readonly ListedObject[]) => void;
  failed: (draft: Draft, error: unknown) => void;
};

/** Lone commits that may fail one after the other without an answer: then it is the catalog, and no object. */
const MAX_FAILURES = 3;

/**
 * Commits what is prepared, in order, in snapshots of at most `maxExtents` extents, and deletes the staged objects that
 * are in. Resolves to the drafts that the catalog sends back. One that makes a commit fail is told of and keeps
 * no other from being committed. Rejects when the catalog is away or the lease is lost.
 *
 * Extents of what is not committed are deleted, except where a commit failed without saying whether it took effect.
 */
export async function commitPrepared(
  ports: CommitPorts,
  prepared: readonly Prepared[],
  lease: Lease | undefined,
  told: Told,
): Promise<Draft[]> {
  const commit = new CommitRun(ports, lease, told);
  const open = new Set(prepared);
  try {
    for (const group of groupsOf(prepared, ports.maxExtents)) {
      await commit.group(group);
      for (const one of group) open.delete(one);
    }
  } finally {
    for (const one of open) await commit.discard(one);
  }
  return commit.sentBack;
}

/** In order; a group has more extents than that only when it is a single draft. */
function groupsOf(prepared: readonly Prepared[], maxExtents: number): Prepared[][] {
  const groups: Prepared[][] = [];
  let extents = Infinity;
  for (const one of prepared) {
    extents += one.flush.extents.length;
    if (extents > maxExtents) {
      groups.push([]);
      extents = one.flush.extents.length;
    }
    groups.at(-1)?.push(one);
  }
  return groups;
}

/** Whether the catalog itself cannot do its work now; it has stored nothing. */
function isAway(error: unknown): boolean {
  return error instanceof EngineError && (error.code === "unavailable" || error.code === "insufficient_storage");
}

class CommitRun {
  readonly sentBack: Draft[] = [];
  readonly #ports: CommitPorts;
  readonly #lease: Lease | undefined;
  readonly #told: Told;
  #failures = 0;

  constructor(ports: CommitPorts, lease: Lease | undefined, told: Told) {
    this.#ports = ports;
    this.#lease = lease;
    this.#told = told;
  }

  async group(group: readonly Prepared[]): Promise<void> {
    try {
      await this.#conclude(group, await this.#commit(group));
      return;
    } catch (error) {
      if (error instanceof LeaseLost || isAway(error)) throw error;
      const isKnown = [EngineError, InvariantViolation, ExtentPendingDeletion].some(
        (refusal) => error instanceof refusal,
      );
      if (!isKnown) for (const one of group) one.maybeLive = true;
      const [only] = group;
      if (group.length === 1 && only !== undefined) {
        await this.#fail(only, error, isKnown);
        return;
      }
    }
    // One of them is the cause: alone, it is the only one that fails.
    for (const one of group) await this.group([one]);
  }

  async discard({ flush, maybeLive }: Prepared): Promise<void> {
    if (!maybeLive) await discardExtents(this.#ports, flush.extents);
  }

  async #fail(one: Prepared, error: unknown, isKnown: boolean): Promise<void> {
    this.#failures = isKnown ? 0 : this.#failures + 1;
    if (this.#failures >= MAX_FAILURES) throw error;
    await this.discard(one);
    this.#told.failed(one.draft, error);
  }

  async #commit(group: readonly Prepared[]): Promise<FlushOutcome[]> {
    const { catalog, clock, metrics } = this.#ports;
    const startedMs = clock.monotonicMs();
    try {
      return await catalog.commit(
        group.map(({ flush }) => flush),
        this.#lease,
      );
    } finally {
      INGEST_METRICS.of(metrics).commitDuration.observe((clock.monotonicMs() - startedMs) / 1000);
    }
  }

  async #conclude(group: readonly Prepared[], outcomes: readonly FlushOutcome[]): Promise<void> {
    this.#failures = 0;
    const done: ListedObject[] = [];
    for (const [index, one] of group.entries()) {
      const outcome = outcomes[index];
      if (outcome === undefined) throw new Error("the catalog gave no outcome for a flush");
      if (outcome.kind === "committed") this.#tellCommitted(one);
      else await this.discard(one);
      if (outcome.kind === "committed" || outcome.kind === "replayed") done.push(one.draft.listed);
      else this.#sendBack(one.draft, outcome);
    }
    await this.#deleteStaged(done);
  }

  #tellCommitted(one: Prepared): void {
    one.maybeLive = true;
    const { draft, flush } = one;
    const { clock, metrics } = this.#ports;
    const { acknowledgedAtMs, requests } = draft.object;
    const seconds = Math.max(0, (clock.nowMs() - acknowledgedAtMs) / 1000);
    for (const _ of requests) INGEST_METRICS.of(metrics).stagedFreshness.observe(seconds);
    INGEST_METRICS.of(metrics).extentsCommitted.inc(flush.extents.length);
    INGEST_METRICS.of(metrics).extentBytesCommitted.inc(
      flush.extents.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
    );
    countCommitted(metrics, flush);
  }

  #sendBack(draft: Draft, outcome: Exclude<FlushOutcome, { kind: "committed" | "replayed" }>): void {
    INGEST_METRICS.of(this.#ports.metrics).commitConflicts.inc({
      reason: outcome.kind === "schema_conflict" ? "schema" : "idempotency",
    });
    const keys = outcome.kind === "key_conflict" ? outcome.entries.map(({ key }) => key) : [];
    this.sentBack.push({ ...draft, taken: new Set([...draft.taken, ...keys]) });
  }

  /** What is not deleted now is found committed by the next round, and deleted then. */
  async #deleteStaged(objects: readonly ListedObject[]): Promise<void> {
    if (objects.length === 0) return;
    this.#told.done(objects);
    await this.#ports.store.delete(objects.map(({ key }) => key)).catch((error: unknown) => {
      this.#ports.log.warn({ err: error, objects: objects.length }, "could not delete committed staged objects yet");
    });
  }
}
