import { NOW, type RecordStore, type RecordValue } from "../db/records.ts";
import { mayReachWithin, ownerFilterWithin, ownerOf, type Asker } from "../auth/owner.ts";
import { EngineError, messageOf } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import type { Log } from "../core/log.ts";
import { foldName } from "../core/names.ts";
import { ticksOf } from "./cron.ts";
import type { NewJob, PreparedJobs } from "./enqueue.ts";
import type { Fabric } from "./fabric.ts";
import { ownerValues, type Job, type JobOwner } from "./job.ts";
import { checkMayEnqueue } from "./kinds.ts";
import { dueAt, nextAfter, SCHEDULE_COLUMNS, toSchedule, type Due, type Schedule } from "./schedule.ts";

/** What a caller says of a schedule. */
export type ScheduleDefinition = Pick<
  Schedule,
  "name" | "kind" | "payload" | "database" | "timing" | "catchUp" | "jitterMs" | "enabled"
>;

/** What may be changed: what it is called and what it is about stay. */
export type ScheduleChange = Partial<Pick<Schedule, "payload" | "timing" | "catchUp" | "jitterMs" | "enabled">>;

/** The page after the schedule of a name or of an id, by name. */
export type SchedulePage = { limit: number; after?: string | undefined };

export type SchedulesOptions = {
  fabric: Pick<Fabric, "kinds" | "prepare" | "enqueue">;
  records: RecordStore;
  newId: IdSource;
  log: Log;
};

const DUE_AT_ONCE = 100;
/** Others may change a schedule, or fire it, at the same time. */
const ATTEMPTS = 10;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
/** Behind all ids. */
const LAST_ID = "g";

/**
 * Schedules, and what they make. Any number of nodes may fire what is due: a schedule's next time is moved on and the
 * job is stored in one transaction, which only one of them can make, so a tick makes its job once, whoever dies when.
 * Times are the database's.
 *
 * Whoever defines a schedule, or changes it, must be allowed to enqueue its jobs, and these run with their rights; where
 * an admin changes that of somebody else, with the rights that it had. From then on ticks count; those before are no
 * longer made up for.
 */
export class Schedules {
  readonly #options: SchedulesOptions;

  constructor(options: SchedulesOptions) {
    this.#options = options;
  }

  /**
   * Rejects with `conflict` for a name that is taken, `bad_request_body` for a timing that is not understood or never
   * comes, and as `Fabric.enqueue` does for its jobs.
   */
  async create(definition: ScheduleDefinition, owner: JobOwner): Promise<Schedule> {
    const id = this.#options.newId();
    const values = await this.#values(id, definition, owner);
    const [row] = await this.#options.records.write({
      sql:
        "INSERT INTO schedules (payload, timing, catch_up, jitter_ms, enabled, next_at_ms, updated_at_ms, subject, " +
        "caller_kind, role, databases, id, name, kind, database_name, owner, created_at_ms) VALUES " +
        `(${Array.from({ length: 17 }, () => "?").join(", ")}) ON CONFLICT DO NOTHING RETURNING ${SCHEDULE_COLUMNS}`,
      values: [...values, id, definition.name, this.#kindOf(definition), folded(definition), ownerOf(owner), NOW],
    });
    // The answer to storing it may have been lost.
    const stored = row === undefined ? await this.#stored(id) : toSchedule(row);
    if (stored === undefined) throw new EngineError("conflict", `there is a schedule ${definition.name} already`);
    return stored;
  }

  async list(asker: Asker, { limit, after = "" }: SchedulePage): Promise<Schedule[]> {
    const { databases } = asker;
    if (databases?.length === 0) return [];
    const owner = ownerFilterWithin(asker);
    const ofOwner = owner === undefined ? "" : "owner = ? AND ";
    const scope = databases === undefined ? "" : `AND database_name IN (${databases.map(() => "?").join(", ")}) `;
    // Several owners may have schedules of one name: an id says which of these was the last.
    const last = UUID.test(after) ? await this.#reached(after, asker) : undefined;
    const rows = await this.#options.records.rows(
      `SELECT ${SCHEDULE_COLUMNS} FROM schedules WHERE ${ofOwner}` +
        `(name > ? OR (name = ? AND id > ?)) ${scope}ORDER BY name, id LIMIT ?`,
      [
        ...(owner === undefined ? [] : [owner]),
        ...(last === undefined ? [after, after, LAST_ID] : [last.name, last.name, last.id]),
        ...(databases ?? []),
        limit,
      ],
    );
    return rows.map(toSchedule);
  }

  /** Rejects with `not_found` also for one that the asker may not reach. */
  async get(id: string, asker: Asker): Promise<Schedule> {
    const found = await this.#reached(id, asker);
    if (found === undefined) throw new EngineError("not_found", `there is no schedule ${id}`);
    return found;
  }

  /** Rejects as `get` and `create` do. */
  async change(id: string, change: ScheduleChange, by: JobOwner): Promise<Schedule> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const before = await this.get(id, by);
      const rights = rightsFor(before, by);
      const values = await this.#values(id, { ...before, ...definedOf(change) }, rights, before.updatedAtMs + 1);
      const [row] = await this.#options.records.write({
        sql:
          "UPDATE schedules SET payload = ?, timing = ?, catch_up = ?, jitter_ms = ?, enabled = ?, next_at_ms = ?, " +
          "updated_at_ms = ?, subject = ?, caller_kind = ?, role = ?, databases = ? WHERE id = ? AND updated_at_ms = ? " +
          `RETURNING ${SCHEDULE_COLUMNS}`,
        values: [...values, id, before.updatedAtMs],
      });
      if (row !== undefined) return toSchedule(row);
    }
    throw new EngineError("unavailable", `schedule ${id} is being changed by others: try again`);
  }

  /** Jobs that it made stay. Rejects as `get` does. */
  async remove(id: string, by: Asker): Promise<void> {
    await this.get(id, by);
    await this.#options.records.write({ sql: "DELETE FROM schedules WHERE id = ?", values: [id] });
  }

  /**
   * A job as the schedule would make it, at once and with the rights of the caller, or of the owner where that is another
   * one; its ticks stay as they are.
   */
  async run(id: string, caller: JobOwner): Promise<Job> {
    const schedule = await this.get(id, caller);
    const { fabric } = this.#options;
    const rights = rightsFor(schedule, caller);
    checkMayEnqueue(fabric.kinds.get(schedule.kind), rights);
    return (await fabric.enqueue(jobOf(schedule), rights)).job;
  }

  /** Makes the jobs of all ticks that have come. Returns how many. Any number of nodes may do so at once. */
  async fireDue(): Promise<number> {
    let made = 0;
    for (;;) {
      const rows = await this.#options.records.rows(
        `SELECT ${SCHEDULE_COLUMNS}, ? AS now_ms FROM schedules WHERE enabled = 1 AND next_at_ms <= ? ` +
          "ORDER BY next_at_ms LIMIT ?",
        [NOW, NOW, DUE_AT_ONCE],
      );
      for (const row of rows) made += await this.#fire(toSchedule(row), Number(row["now_ms"]));
      if (rows.length < DUE_AT_ONCE) return made;
    }
  }

  async #fire(schedule: Schedule, nowMs: number): Promise<number> {
    const due = this.#dueAt(schedule, nowMs);
    const jobs = this.#jobsOf(schedule, due);
    const outcome = await this.#options.records.transact([
      {
        sql:
          "UPDATE schedules SET next_at_ms = ?, last_at_ms = ?, last_job_id = coalesce(?, last_job_id) " +
          "WHERE id = ? AND next_at_ms = ? AND updated_at_ms = ? AND enabled = 1 RETURNING id",
        values: [
          due.nextAtMs ?? null,
          due.lastAtMs ?? null,
          jobs?.ids.at(-1) ?? null,
          schedule.id,
          schedule.nextAtMs ?? null,
          schedule.updatedAtMs,
        ],
        mustReturn: 1,
      },
      ...(jobs === undefined ? [] : [jobs.statement]),
    ]);
    // Another node was first, or somebody changed it.
    if (!outcome.done || jobs === undefined) return 0;
    jobs.stored();
    return jobs.ids.length;
  }

  /** One whose time is not understood any more rests until it is changed: it must not keep others from being fired. */
  #dueAt(schedule: Schedule, nowMs: number): Due {
    try {
      return dueAt(schedule, ticksOf(schedule.timing), nowMs);
    } catch (error) {
      const { id: scheduleId, name, lastAtMs } = schedule;
      this.#options.log.error(
        { err: error, scheduleId, name },
        "a schedule fires no more: its timing is not understood",
      );
      return { ticks: [], lastAtMs, nextAtMs: undefined };
    }
  }

  /** Undefined when there are none to make: an owner may have lost a kind or a database since. */
  #jobsOf(schedule: Schedule, { ticks }: Due): PreparedJobs | undefined {
    if (ticks.length === 0) return undefined;
    try {
      const requests = ticks.map((tick) => ({ ...jobOf(schedule), dedupKey: tickKey(schedule, tick) }));
      return this.#options.fabric.prepare(requests, schedule.owner);
    } catch (error) {
      const { id: scheduleId, name } = schedule;
      this.#options.log.warn({ reason: messageOf(error), scheduleId, name }, "a schedule could not make its job");
      return undefined;
    }
  }

  /**
   * What is the same for a new schedule and one that is changed: the columns in the order of `change`. Each change has a
   * time of its own, by which the next knows that it came between.
   */
  async #values(id: string, definition: ScheduleDefinition, owner: JobOwner, earliestMs = 0): Promise<RecordValue[]> {
    const { fabric, records } = this.#options;
    checkMayEnqueue(fabric.kinds.get(definition.kind), owner);
    fabric.prepare([jobOf(definition)], owner);
    const { timing, payload, jitterMs, enabled, catchUp } = definition;
    const [row] = await records.rows("SELECT ? AS now_ms", [NOW]);
    const nowMs = Math.max(earliestMs, Number(row?.["now_ms"]));
    const nextAtMs = nextAfter({ id, jitterMs }, ticksOf(timing), nowMs);
    if (nextAtMs === undefined) throw new EngineError("bad_request_body", "timing: this time never comes");
    const next = enabled ? nextAtMs : null;
    const texts = [JSON.stringify(payload ?? null), JSON.stringify(timing), catchUp];
    return [...texts, jitterMs, enabled ? 1 : 0, next, nowMs, ...ownerValues(owner)];
  }

  #kindOf({ kind }: Pick<ScheduleDefinition, "kind">): string {
    return this.#options.fabric.kinds.get(kind).name;
  }

  async #reached(id: string, asker: Asker): Promise<Schedule | undefined> {
    const found = id.includes("\0") ? undefined : await this.#stored(id);
    if (found === undefined || !mayReachWithin(asker, ownerOf(found.owner))) return undefined;
    const { databases } = asker;
    const isSeen = databases === undefined || (found.database !== undefined && databases.includes(found.database));
    return isSeen ? found : undefined;
  }

  async #stored(id: string): Promise<Schedule | undefined> {
    const [row] = await this.#options.records.rows(`SELECT ${SCHEDULE_COLUMNS} FROM schedules WHERE id = ?`, [id]);
    return row === undefined ? undefined : toSchedule(row);
  }
}

/** What an admin does with somebody else's schedule must not lend its payload the admin's rights. */
function rightsFor({ owner }: Schedule, by: JobOwner): JobOwner {
  return ownerOf(by) === ownerOf(owner) ? by : owner;
}

/** In the form in which names are compared. */
function folded({ database }: Pick<Schedule, "database">): string | null {
  return database === undefined ? null : foldName(database);
}

function jobOf({ kind, payload, database }: Pick<Schedule, "kind" | "payload" | "database">): NewJob {
  return { kind, payload, database };
}

/** Says which tick of which schedule a job is of. */
function tickKey({ id }: Schedule, tick: number): string {
  return `schedule/${id}/${new Date(tick).toISOString()}`;
}

function definedOf(change: ScheduleChange): ScheduleChange {
  return Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
}
