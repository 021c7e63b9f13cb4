import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ANONYMOUS, type Caller } from "../../auth/caller.ts";
import type { Additions, AdditionsRequest, PlannedExtent, Resolution } from "../../catalog/catalog.ts";
import { CommitSignals } from "../../catalog/commit-signals.ts";
import { snapshotExpired } from "../../catalog/refusals.ts";
import { ManualClock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import { silentLog } from "../../core/log.ts";
import { createMetrics } from "../../core/metrics.ts";
import { eventually } from "../../core/waiting.test-kit.ts";
import { localSignals } from "../../db/signals.ts";
import type { QueryRequest, QueryResult } from "../contract/query.ts";
import { TAG_COLUMN } from "../parse/row-condition.ts";
import { placeOf } from "../scan/numbered-rows.ts";
import type { Tail, TailItem } from "./tail.ts";
import { Tails, type TailRequest } from "./tails.ts";

/** All of a node's tails over a catalog and queries that are made up, and a clock that stands. */

/** One table; each commit is one extent of so many rows. */
class World {
  readonly clock = new ManualClock();
  readonly signals = localSignals();
  readonly commits = new CommitSignals(this.signals, this.clock, 0);
  readonly extents: PlannedExtent[] = [];
  newest = 10;
  tableId = 1;
  oldestKept = 0;
  /** Of each row. */
  pad = "";
  /** Budgets of scans, as they were asked for. */
  readonly wallMs: (number | undefined)[] = [];
  /** Filters of each scan, in order. */
  readonly scans: string[][] = [];
  /** Fails or delays a scan. */
  onScan: (filters: readonly string[]) => void | Promise<void> = () => {};
  readonly tails = new Tails({
    catalog: this,
    query: { run: (request) => this.#run(request) },
    signals: this.signals,
    clock: this.clock,
    log: silentLog,
    metrics: createMetrics(),
    newId: () => "id",
  });

  commit(rows: number, { isHeard = true } = {}): number {
    const beginSnapshot = ++this.newest;
    const plain = {
      key: "k",
      format: "tlm",
      formatVersion: 1,
      sizeBytes: rows,
      checksum: "",
      schemaVersion: 1,
    } as const;
    this.extents.push({
      ...plain,
      id: `e${beginSnapshot}`,
      rows,
      beginSnapshot,
      tableId: 1,
      columns: [],
      minAtNs: 0n,
      maxAtNs: 0n,
    });
    const snapshot = { id: beginSnapshot, committedAtMs: 0 };
    const flush = { tableId: 1, schemaVersion: 1, newColumns: [], extents: [], ledger: [] };
    if (isHeard) this.commits.committed([flush], [{ kind: "committed", snapshot, schemaVersion: 1 }]);
    return beginSnapshot;
  }

  async resolve(database: string, [name = ""]: readonly string[]): Promise<Resolution | undefined> {
    if (database !== "default") return undefined;
    const table = { id: this.tableId, databaseId: 1, database, name, schemaVersion: 1, columns: [], clusterBy: [] };
    const head = { id: this.newest, committedAtMs: 0 };
    return { database: { id: 1, name: database }, head, tables: [name === "t" ? table : undefined] };
  }

  additions = async ({ from, upTo }: AdditionsRequest): Promise<Additions> => {
    if (from - 1 < this.oldestKept) throw snapshotExpired(from - 1, { id: this.oldestKept, committedAtMs: 0 });
    const extents = this.extents.filter(({ beginSnapshot: begin }) => begin >= from && begin <= upTo);
    return { extents, upTo };
  };

  readonly head = async () => ({ id: this.newest, committedAtMs: 0 });
  readonly databases = async () => [];
  readonly tables = async () => [];

  async #run({ text, tailing, budget }: QueryRequest): Promise<QueryResult> {
    const { extents = [], from = 0, selection } = tailing ?? {};
    const filters = [text, ...(selection?.more ?? [])];
    if (extents.length === 0)
      return { rows: 0, isTruncated: false, columns: [], snapshot: this.newest, body: bytesOf("") };
    this.scans.push(filters);
    this.wallMs.push(budget?.wallMs);
    await this.onScan(filters);
    const all = extents.flatMap(({ rows }, i) => Array.from({ length: rows }, (_, row) => placeOf(i, row)));
    const marks = filters.length === 1 ? "" : filters.map((_, i) => ` ${i}`).join("");
    const lines = all
      .filter((place) => place >= from)
      .slice(0, selection?.limit)
      .map((place) => `{"${TAG_COLUMN}":"${place}${marks}","p":${place},"pad":"${this.pad}"}\n`);
    return {
      rows: lines.length,
      isTruncated: false,
      columns: [],
      snapshot: this.newest,
      body: bytesOf(lines.join("")),
    };
  }
}

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(() => world.tails.close());

const request = (filter = "true", more: Partial<TailRequest> = {}): TailRequest => ({
  caller: ANONYMOUS,
  authenticateAgain: () => Promise.resolve(ANONYMOUS),
  address: "",
  requestId: "r",
  signal: new AbortController().signal,
  database: "default",
  table: "t",
  filter,
  position: undefined,
  ...more,
});

/** A reader that takes what comes. */
function follow(tail: Tail): TailItem[] {
  const items: TailItem[] = [];
  void (async () => {
    for await (const item of tail) items.push(item);
  })();
  return items;
}

async function open(filter?: string, more?: Partial<TailRequest>): Promise<TailItem[]> {
  return follow((await world.tails.open(request(filter, more))).tail);
}

const idsOf = (items: readonly TailItem[]) => items.map((item) => (item.kind === "end" ? item.code : item.id));
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Polls come each second. */
async function pass(seconds: number): Promise<void> {
  for (let i = 0; i < seconds; i++) {
    world.clock.advance(1_000);
    await settled();
    await settled();
  }
}

test("a commit wakes its tails, and a poll finds one that no signal told of", async () => {
  const items = await open();
  world.commit(2);
  await eventually(() => items.length === 2);
  world.commit(1, { isHeard: false });
  await settled();
  expect(items).toHaveLength(2);
  await pass(1);
  await eventually(() => items.length === 3);
  expect(idsOf(items)).toEqual(["11.1", "11.2", "12.1"]);
});

describe("filters of one table", () => {
  test("share a scan, equal ones as one", async () => {
    const all = await Promise.all([open("a"), open("b"), open("a"), open("c")]);
    world.commit(2);
    await eventually(() => all.every((items) => items.length === 2));
    expect(world.scans).toEqual([["a", "b", "c"]]);
  });

  test("are tried alone when a scan fails, and only one whose fault it is ends", async () => {
    world.onScan = (filters) => {
      if (filters.includes("bad")) throw new EngineError("execution_error", "no number");
    };
    const [good, bad, other] = await Promise.all([open("good"), open("bad"), open("other")]);
    world.commit(1);
    await eventually(() => [good, bad, other].every((items) => items.length === 1));
    expect(idsOf([...good, ...bad, ...other])).toEqual(["11.1", "execution_error", "11.1"]);
    expect(world.scans).toEqual([["good", "bad", "other"], ["good"], ["bad"], ["other"]]);
    world.commit(1);
    await eventually(() => good.length + other.length === 4);
    expect(world.scans.at(-1)).toEqual(["good", "other"]);
  });

  test("that kill their processes end alone, and a process that dies once is nobody's fault", async () => {
    let deaths = 1;
    world.onScan = (filters) => {
      const dies = filters.includes("deadly") || (filters[0] === "unlucky" && filters.length === 1 && deaths-- > 0);
      if (dies) throw new EngineError("query_failed", "the query process ended with SIGSEGV");
    };
    const [good, deadly, unlucky] = await Promise.all([open("good"), open("deadly"), open("unlucky")]);
    world.commit(1);
    await eventually(() => [good, deadly, unlucky].every((items) => items.length === 1));
    expect(idsOf([...good, ...deadly, ...unlucky])).toEqual(["11.1", "query_failed", "11.1"]);
    expect(deadly[0]).toMatchObject({ reconnect: false });
    expect(world.scans).toEqual([
      ["good", "deadly", "unlucky"],
      ["good"],
      ["deadly"],
      ["deadly"],
      ["unlucky"],
      ["unlucky"],
    ]);
    world.commit(1);
    await eventually(() => good.length + unlucky.length === 4);
  });

  test("may take five seconds together, and thirty alone", async () => {
    world.onScan = (filters) => {
      if (filters.length > 1 || filters[0] === "endless") throw new EngineError("budget_exceeded", "took too long");
    };
    const [good, endless] = await Promise.all([open("good"), open("endless")]);
    world.commit(1);
    await eventually(() => good.length === 1 && endless.length === 1);
    expect(world.wallMs).toEqual([5_000, 30_000, 30_000]);
    expect(endless).toMatchObject([{ kind: "end", code: "budget_exceeded", reconnect: false }]);
  });

  test("that are slow get scans of their own, which hold up nobody", async () => {
    const gate = Promise.withResolvers<void>();
    world.onScan = async (filters) => {
      if (filters.length > 1 && filters.includes("slow")) throw new EngineError("budget_exceeded", "took too long");
      if (filters[0] === "slow" && world.newest === 11) world.clock.advance(3_000);
      if (filters[0] === "slow" && world.newest > 11) await gate.promise;
    };
    const [quick, slow] = await Promise.all([open("quick"), open("slow")]);
    world.commit(1);
    await eventually(() => quick.length === 1 && slow.length === 1);
    world.commit(1);
    world.commit(1);
    await eventually(() => quick.length === 3);
    expect(slow).toHaveLength(1);
    gate.resolve();
    await eventually(() => slow.length === 3);
    expect(idsOf(slow)).toEqual(idsOf(quick));
  });

  test("are not blamed for what the server lacks: it is tried again", async () => {
    const items = await open("a");
    const away = () => {
      throw new EngineError("unavailable", "the store is away");
    };
    let failures = 3;
    world.onScan = () => {
      if (failures-- > 0) away();
    };
    const until = (holds: () => boolean) =>
      eventually(async () => {
        await pass(1);
        return holds();
      });
    world.commit(2);
    await until(() => items.filter(({ kind }) => kind === "row").length === 2);
    world.onScan = away;
    world.commit(1);
    await until(() => items.at(-1)?.kind === "end");
    expect(items.at(-1)).toMatchObject({ code: "unavailable", reconnect: true });
  });
});

describe("a reader", () => {
  test("that does not take its rows is not read for, and goes on from there", async () => {
    const { tail } = await world.tails.open(request());
    world.commit(1);
    await eventually(() => !tail.isReady);
    world.commit(2);
    world.commit(1);
    await settled();
    expect(world.scans).toHaveLength(1);
    const items = follow(tail);
    await eventually(() => items.length === 4);
    expect(idsOf(items)).toEqual(["11.1", "12.1", "12.2", "13.1"]);
    expect(world.scans).toHaveLength(2);
  });

  test("that would need what is gone is told", async () => {
    const { tail } = await world.tails.open(request());
    world.commit(1);
    await eventually(() => !tail.isReady);
    world.commit(1);
    world.oldestKept = 12;
    const items = follow(tail);
    await eventually(() => items.length === 2);
    expect(items.at(-1)).toMatchObject({ kind: "end", code: "snapshot_expired", reconnect: false });
    await expect(world.tails.open(request("true", { position: { snapshot: 12, row: 0 } }))).rejects.toMatchObject({
      code: "snapshot_expired",
    });
  });

  test("learns where it is while other tables get rows", async () => {
    const items = await open();
    world.newest += 5;
    await pass(6);
    await eventually(() => items.length === 1);
    expect(items).toEqual([{ kind: "position", id: "16.0" }]);
  });

  test.each<[string, () => Promise<Caller>, string | undefined]>([
    ["is refused", () => Promise.reject(new EngineError("unauthorized", "revoked")), "unauthorized"],
    ["has another role", () => Promise.reject(new EngineError("forbidden", "needs read")), "forbidden"],
    ["lost the database", () => Promise.resolve({ ...ANONYMOUS, databases: ["other"] }), "forbidden"],
    ["cannot be checked now", () => Promise.reject(new EngineError("unavailable", "away")), undefined],
    ["may still read", () => Promise.resolve({ ...ANONYMOUS, databases: ["default"] }), undefined],
  ])("who %s", async (_what, authenticateAgain, code) => {
    const items = await open("true", { authenticateAgain });
    await pass(5);
    expect(items).toMatchObject(code === undefined ? [] : [{ kind: "end", code, reconnect: false }]);
  });
});

test("a table of the name that is another ends its tails", async () => {
  const items = await open();
  world.tableId = 2;
  world.commit(1);
  await eventually(() => items.length === 1);
  expect(items[0]).toMatchObject({ kind: "end", code: "table_not_found", reconnect: false });
});

test("a node that stops ends its tails, and begins none", async () => {
  const items = await open();
  world.tails.close();
  await eventually(() => items.length === 1);
  expect(items[0]).toMatchObject({ kind: "end", code: "unavailable", reconnect: true });
  await expect(world.tails.open(request())).rejects.toMatchObject({ code: "unavailable" });
});

describe("at a time there are at most", () => {
  const openAll = (requests: readonly TailRequest[]) =>
    Promise.allSettled(requests.map((one) => world.tails.open(one)));
  const of = (subject: string): Partial<TailRequest> => ({ caller: { ...ANONYMOUS, kind: "static", subject } });
  const many = (count: number, more: (i: number) => Partial<TailRequest>) =>
    Array.from({ length: count }, (_, i) => request("true", more(i)));

  test("64 of a node, those that are about to begin among them", async () => {
    const opened = await openAll(many(70, (i) => (i < 10 ? of("somebody") : {})));
    expect(opened.filter(({ status }) => status === "fulfilled")).toHaveLength(64);
    const [first] = opened;
    if (first?.status === "fulfilled") await first.value.tail.return();
    await world.tails.open(request("true", of("another")));
    await expect(world.tails.open(request("true", of("another")))).rejects.toMatchObject({ code: "too_many_requests" });
  });

  test("16 of a caller, who takes no place from others", async () => {
    const opened = await openAll(many(20, () => of("greedy")));
    expect(opened.filter(({ status }) => status === "fulfilled")).toHaveLength(16);
    expect(opened.at(-1)).toMatchObject({
      reason: { code: "too_many_requests", details: { headers: { "Retry-After": "5" } } },
    });
    await world.tails.open(request("true", of("modest")));
    // A request that is refused gives its place back.
    const [first] = opened;
    if (first?.status === "fulfilled") await first.value.tail.return();
    await expect(world.tails.open(request("true", { ...of("greedy"), table: "none" }))).rejects.toMatchObject({
      code: "table_not_found",
    });
    await world.tails.open(request("true", of("greedy")));
  });
});

test("a reader holds two megabytes and a row at most, and is read for on from there", async () => {
  const pad = "é".repeat(100_000);
  world.pad = pad;
  const { tail } = await world.tails.open(request());
  world.commit(100);
  await eventually(() => !tail.isReady);
  // Eleven rows of 200 kB are more than 2 MiB.
  expect(tail.position).toEqual({ snapshot: 11, row: 11 });
  const items = follow(tail);
  await eventually(() => items.length === 100);
  expect(idsOf(items)).toEqual(Array.from({ length: 100 }, (_, i) => `11.${i + 1}`));
});
