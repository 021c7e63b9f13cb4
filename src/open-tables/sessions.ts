import { LRUCache } from "lru-cache";
import type { TableRecord } from "../catalog/catalog.ts";
import type { Clock } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { Metrics } from "../core/metrics.ts";
import { briefOf } from "../io/objectstore/s3/failure.ts";
import { factsOf } from "../io/objectstore/s3/facts.ts";
import { OPEN_TABLES_METRICS } from "./metrics.ts";

/** Keys that read one table until they expire. */
export type TableSession = { accessKeyId: string; secretAccessKey: string; sessionToken: string; expiresAtMs: number };

export type AssumeRole = (of: { name: string; policy: string; seconds: number }) => Promise<TableSession>;

/** The longest that a role gives to whoever comes by another role, as servers in the cloud do. */
const SESSION_SECS = 3_600;
const MOST_TABLES = 10_000;

type Held = {
  session: Promise<TableSession>;
  /** Until then others may have it too. */
  untilMs: number;
};

/**
 * Sessions that read one table each. All who load a table within half of its session's life share it, so nobody gets one
 * that soon ends, and the token service is asked about twice in an hour for a table that is loaded all the time.
 */
export class TableSessions {
  readonly #ports: { clock: Clock; log: Log; metrics: Metrics };
  readonly #assumeRole: AssumeRole;
  readonly #partition: string;
  readonly #held = new LRUCache<string, Held>({ max: MOST_TABLES });

  constructor(ports: { clock: Clock; log: Log; metrics: Metrics }, roleArn: string, assumeRole: AssumeRole) {
    this.#ports = ports;
    this.#assumeRole = assumeRole;
    this.#partition = partitionOf(roleArn);
  }

  /** A session for these places (`OpenTables.placesOf`). Rejects with `unavailable` when there is none to be had. */
  async of(table: Pick<TableRecord, "id" | "database" | "name">, places: readonly string[]): Promise<TableSession> {
    const policy = readPolicy(places, this.#partition);
    const known = this.#held.get(policy);
    if (known !== undefined && this.#ports.clock.nowMs() < known.untilMs) return await known.session;
    const held: Held = { session: this.#begin(table, policy), untilMs: Infinity };
    this.#held.set(policy, held);
    try {
      const session = await held.session;
      const nowMs = this.#ports.clock.nowMs();
      held.untilMs = nowMs + (session.expiresAtMs - nowMs) / 2;
      return session;
    } catch (error) {
      // The next one asks again.
      held.untilMs = -Infinity;
      throw error;
    }
  }

  async #begin(
    { id, database, name }: Pick<TableRecord, "id" | "database" | "name">,
    policy: string,
  ): Promise<TableSession> {
    const { log, metrics } = this.#ports;
    const { sessions } = OPEN_TABLES_METRICS.of(metrics);
    try {
      const session = await this.#assumeRole({ name: `engine-table-${id}`, policy, seconds: SESSION_SECS });
      sessions.inc({ outcome: "ok" });
      return session;
    } catch (error) {
      sessions.inc({ outcome: "failed" });
      const table = `${database}.${name}`;
      log.warn({ err: error, table }, "no session for the readers of a table");
      // What the service says may name accounts and roles, so clients get its code alone.
      const why = briefOf(factsOf(error));
      throw new EngineError(
        "unavailable",
        `there are no keys for table ${JSON.stringify(table)} now (${why}); try again`,
      );
    }
  }
}

/**
 * What a session may do: read the objects of these places, each of which ends with a slash. Clients know from the catalog
 * which objects there are, so it may not list them: what a place has besides (files of a table of the same name that was
 * dropped, rows that were deleted since) is not found by looking. Neither databases nor tables, prefixes or buckets have
 * one of the characters in their names that are wildcards here.
 */
export function readPolicy(places: readonly string[], partition: string): string {
  return JSON.stringify({
    Version: "2012-10-17",
    Statement: [
      {
        Effect: "Allow",
        Action: ["s3:GetObject"],
        Resource: places.map((place) => `arn:${partition}:s3:::${place.slice("s3://".length)}*`),
      },
    ],
  });
}

/** The part of the cloud that a role is of: its buckets are of the same. Other services know `aws` alone. */
export function partitionOf(roleArn: string): string {
  return /^arn:(aws(?:-[a-z]+)*):/.exec(roleArn)?.[1] ?? "aws";
}
