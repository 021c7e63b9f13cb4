import { describe, expect, it } from "vitest";
import { ManualClock } from "../core/clock.ts";
import { startOfIds, uuidV7Source, type IdSource } from "../core/ids.ts";
import { drawnSeed } from "../core/drawn-seed.test-kit.ts";
import { seededRandom } from "../core/random.ts";
import {
  DAY_MS,
  dayOf,
  FINISHED_BYTES,
  migratesAtMs,
  pickMerge,
  publishAfter,
  settlesAtMs,
  spansDays,
  TARGET_BYTES,
  type Candidate,
} from "./pick.ts";

const MIB = 1024 * 1024;
const HOUR_MS = 3_600_000;
const START_MS = Date.UTC(2026, 0, 5);
const ROW_BYTES = 300;
/** What rows take in Parquet, of what they take in `tlm`. */
const SHRINKS = 6;
const FILE_BYTES = 500;

type Load = { name: string; flushesPerSec: number; flushBytes: number; lateShare: number };

type Simulation = {
  amplification: number;
  mostLive: number;
  /** Unfinished extents of the first day in the end. */
  left: number;
  rowsIn: number;
  rowsOut: number;
  /** How long an extent waited at the most before it was merged for the first time. */
  lagMs: number;
  /** The most merges of one day that took what was fresh. */
  publications: number;
};

const SEED = drawnSeed();

/**
 * A day of one table, and what follows until it is settled: flushes arrive, merges happen at once. A late flush has one
 * row of up to three days before. Every ten seconds is a look, as by default. With `maxLagMs` nothing waits for longer.
 */
function simulate({ flushesPerSec, flushBytes, lateShare }: Load, minExtents: number, maxLagMs?: number): Simulation {
  const clock = new ManualClock(START_MS);
  const random = seededRandom(SEED);
  let made = 0;
  // A day has millions: their time and their order are all that counts.
  const newId = () => `${startOfIds(clock.nowMs())}-7${String(++made).padStart(9, "0")}`;
  const days = new Map<number, Candidate[]>();
  /** When a day is worth the next look: at once after a change, else when it has been quiet for long enough. */
  const looksAtMs = new Map<number, number>();
  let [written, mostLive, rowsIn, due, lagMs] = [0, 0, 0, 0, 0];
  const publications = new Map<number, number>();
  const put = (extent: Candidate): void => {
    const day = dayOf(extent.minAtNs);
    const own = days.get(day);
    if (own === undefined) days.set(day, [extent]);
    else own.push(extent);
    // There may be something to merge.
    looksAtMs.set(day, 0);
  };
  for (const stepMs = 10_000; clock.nowMs() < START_MS + DAY_MS + 3 * HOUR_MS;) {
    clock.advance(stepMs);
    if (clock.nowMs() <= START_MS + DAY_MS) due += (flushesPerSec * stepMs) / 1_000;
    const fresh: Candidate[] = [];
    for (; due >= 1; due--) {
      const rows = Math.max(1, Math.round((flushBytes / ROW_BYTES) * (0.5 + random.next())));
      const maxAtNs = BigInt(clock.nowMs() - 1) * 1_000_000n;
      const isLate = random.next() < lateShare;
      const minAtNs = isLate ? maxAtNs - BigInt(Math.floor(random.next() * 3 * DAY_MS)) * 1_000_000n : maxAtNs;
      fresh.push({
        id: newId(),
        isUnpublished: true,
        format: "tlm",
        rows,
        sizeBytes: rows * ROW_BYTES,
        minAtNs,
        maxAtNs,
      });
      rowsIn += rows;
    }
    for (const extent of fresh) put(extent);
    for (const day of days.keys()) {
      while (clock.nowMs() >= (looksAtMs.get(day) ?? 0)) {
        const open = days.get(day) ?? [];
        const nowMs = clock.nowMs();
        const publish = maxLagMs === undefined ? {} : { publish: publishAfter(maxLagMs, nowMs) };
        const inputs = pickMerge(open, { minExtents, nowMs, maxInputBytes: 1_024 * MIB, ...publish });
        const ages = inputs?.filter(({ format }) => format === "tlm").map(({ id }) => nowMs - madeAtMs(id)) ?? [];
        lagMs = Math.max(lagMs, ...ages);
        if (ages.length > 0) publications.set(day, (publications.get(day) ?? 0) + 1);
        if (inputs === undefined) {
          const later = open.length === 0 ? Infinity : Math.min(settlesAtMs(open), dueAtMs(open, maxLagMs));
          looksAtMs.set(day, later > clock.nowMs() ? later : Infinity);
          break;
        }
        const outputs = merged(inputs, newId);
        written += sizeOf(outputs);
        const gone = new Set(inputs);
        days.set(
          day,
          open.filter((extent) => !gone.has(extent)),
        );
        for (const output of outputs) put(output);
      }
    }
    mostLive = Math.max(mostLive, unfinished([...days.values()].flat()).length);
  }
  const live = [...days.values()].flat();
  return {
    amplification: written / sizeOf(live.filter(({ format }) => format === "parquet")),
    mostLive,
    left: unfinished(days.get(START_MS) ?? []).length,
    rowsIn,
    rowsOut: live.reduce((sum, { rows }) => sum + rows, 0),
    lagMs,
    publications: Math.max(...publications.values()),
  };
}

const madeAtMs = (id: string): number => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);

function dueAtMs(extents: readonly Candidate[], maxLagMs = Infinity): number {
  return Math.min(...extents.filter(({ isUnpublished }) => isUnpublished).map(({ id }) => madeAtMs(id) + maxLagMs));
}

function merged(inputs: readonly Candidate[], newId: IdSource): Candidate[] {
  const late = inputs.filter(spansDays);
  const rows = inputs.reduce((sum, extent) => sum + extent.rows, 0);
  const maxAtNs = inputs.reduce(
    (max, extent) => (extent.maxAtNs > max ? extent.maxAtNs : max),
    inputs[0]?.maxAtNs ?? 0n,
  );
  const outputs: Candidate[] = [];
  const add = (count: number, atNs: bigint): void => {
    const sizeBytes = (count * ROW_BYTES) / SHRINKS + FILE_BYTES;
    outputs.push({ id: newId(), format: "parquet", rows: count, sizeBytes, minAtNs: atNs, maxAtNs: atNs });
  };
  const lateRows = Math.min(late.length, rows - 1);
  if (lateRows > 0) add(lateRows, late[0]?.minAtNs ?? 0n);
  const perFile = Math.ceil(TARGET_BYTES / (ROW_BYTES / SHRINKS));
  for (let left = rows - lateRows; left > 0; left -= perFile) add(Math.min(left, perFile), maxAtNs);
  return outputs;
}

const sizeOf = (extents: readonly Candidate[]): number => extents.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
const unfinished = (extents: readonly Candidate[]): Candidate[] =>
  extents.filter(({ format, sizeBytes }) => format === "tlm" || sizeBytes < FINISHED_BYTES);

describe("over a day's load", () => {
  const loads: Load[] = [
    { name: "20 flushes a second of 1 MiB", flushesPerSec: 20, flushBytes: MIB, lateShare: 0.001 },
    { name: "20 flushes a second of 16 KiB", flushesPerSec: 20, flushBytes: 16 * 1024, lateShare: 0.01 },
    { name: "4 flushes a second of 4 KiB", flushesPerSec: 4, flushBytes: 4 * 1024, lateShare: 0.001 },
    { name: "8 flushes a second of 4 KiB", flushesPerSec: 8, flushBytes: 4 * 1024, lateShare: 0.001 },
    { name: "2 flushes a second of 200 KiB", flushesPerSec: 2, flushBytes: 200 * 1024, lateShare: 0 },
    { name: "1 flush a second of 64 KiB", flushesPerSec: 1, flushBytes: 64 * 1024, lateShare: 0.01 },
    { name: "1 flush a second of 1 KiB", flushesPerSec: 1, flushBytes: 1_024, lateShare: 0.01 },
    { name: "6 flushes a minute of 64 KiB", flushesPerSec: 0.1, flushBytes: 64 * 1024, lateShare: 0.05 },
    { name: "1 flush in 100 seconds of 1 KiB", flushesPerSec: 0.01, flushBytes: 1_024, lateShare: 0.2 },
  ];

  it.each(loads)("$name: bytes are written at most four times, and few extents are open", (load) => {
    const { amplification, mostLive, left, rowsIn, rowsOut } = simulate(load, 24);
    expect(rowsOut).toBe(rowsIn);
    expect(amplification).toBeLessThanOrEqual(4);
    expect(amplification).toBeGreaterThan(0.9);
    // In four days that get rows.
    expect(mostLive).toBeLessThanOrEqual(200);
    expect(left).toBeLessThanOrEqual(16);
  });

  it("fewer extents to a merge write more and leave less open", () => {
    const load: Load = { name: "", flushesPerSec: 0.2, flushBytes: 16 * 1024, lateShare: 0 };
    const [eager, patient] = [simulate(load, 4), simulate(load, 48)];
    expect(eager.amplification).toBeGreaterThan(patient.amplification);
    expect(eager.mostLive).toBeLessThan(patient.mostLive);
  });

  it.each(loads.slice(3))(
    "$name: with a bound nothing waits for longer, and bytes are written about once more",
    (load) => {
      const boundMs = 300_000;
      const [free, bound] = [simulate(load, 24), simulate(load, 24, boundMs)];
      expect(bound.rowsOut).toBe(bound.rowsIn);
      expect(bound.lagMs).toBeLessThanOrEqual(boundMs + 10_000);
      // Of small files their own size is a good part.
      expect(bound.amplification).toBeLessThanOrEqual(free.amplification + (load.flushBytes < MIB / 32 ? 2 : 1.2));
      expect(bound.mostLive).toBeLessThanOrEqual(200);
    },
  );

  it("a day is merged for the sake of a bound once per lag at the most", () => {
    const load: Load = { name: "", flushesPerSec: 0.05, flushBytes: 16 * 1024, lateShare: 0 };
    expect(simulate(load, 24, 300_000).publications).toBeLessThanOrEqual(DAY_MS / 300_000);
    expect(simulate(load, 24).lagMs).toBeGreaterThan(300_000);
  });
});

describe("picks", () => {
  const newId = uuidV7Source(new ManualClock(START_MS), seededRandom(1));
  const extent = (overrides: Partial<Candidate> = {}): Candidate => {
    const atNs = BigInt(START_MS) * 1_000_000n;
    return { id: newId(), format: "tlm", rows: 100, sizeBytes: 10_000, minAtNs: atNs, maxAtNs: atNs, ...overrides };
  };
  const times = (count: number, overrides: Partial<Candidate> = {}) =>
    Array.from({ length: count }, () => extent(overrides));
  const rules = { minExtents: 4, nowMs: START_MS, maxInputBytes: 1_024 * MIB };
  const rowsOf = (picked: readonly Candidate[] | undefined) => picked?.map(({ rows }) => rows).sort((a, b) => a - b);

  it("extents of one level when there are enough of them, and takes smaller ones along", () => {
    expect(pickMerge(times(3), rules)).toBeUndefined();
    expect(pickMerge(times(4), rules)).toHaveLength(4);
    const mixed = [...times(4), ...times(2, { rows: 10 }), ...times(2, { rows: 50_000 })];
    expect(rowsOf(pickMerge(mixed, rules))).toEqual([10, 10, 100, 100, 100, 100]);
  });

  it("no finished extent, but one that spans midnight", () => {
    const finished = { format: "parquet", sizeBytes: FINISHED_BYTES } as const;
    expect(pickMerge(times(10, finished), rules)).toBeUndefined();
    const nextDayNs = BigInt(START_MS + DAY_MS) * 1_000_000n;
    expect(pickMerge(times(4, { ...finished, maxAtNs: nextDayNs }), rules)).toHaveLength(4);
    expect(pickMerge(times(4, { ...finished, maxAtNs: nextDayNs - 1n }), rules)).toBeUndefined();
  });

  it("no more than one merge may read, those that are next to each other in time", () => {
    const all = Array.from({ length: 40 }, (_, i) => extent({ minAtNs: BigInt((i * 17) % 40), sizeBytes: 100 * MIB }));
    const picked = pickMerge(all, rules) ?? [];
    expect(picked.map(({ minAtNs }) => Number(minAtNs))).toEqual(Array.from({ length: 10 }, (_, i) => i));
    expect(pickMerge(times(3_000, { sizeBytes: 1 }), rules)).toHaveLength(1_000);
  });

  it("what is left of a day an hour after it has become quiet", () => {
    const small = times(2);
    const atMs = settlesAtMs(small);
    expect(atMs).toBe(START_MS + DAY_MS + HOUR_MS);
    expect(pickMerge(small, { ...rules, nowMs: atMs - 1 })).toBeUndefined();
    expect(pickMerge(small, { ...rules, nowMs: atMs })).toHaveLength(2);
    expect(pickMerge(times(1), { ...rules, nowMs: atMs })).toHaveLength(1);
    // Eight that have their final form are left alone; of more, the smallest are merged.
    const settled = times(8, { format: "parquet", rows: 1_000 });
    const patient = { ...rules, minExtents: 24, nowMs: atMs };
    expect(pickMerge(settled, patient)).toBeUndefined();
    const more = [...settled, ...times(3, { format: "parquet", rows: 900 })];
    expect(rowsOf(pickMerge(more, patient))).toEqual([900, 900, 900, 1_000]);
    // Not for the sake of a few late rows.
    const late = [...settled, ...times(1, { rows: 1 })];
    expect(rowsOf(pickMerge(late, patient))).toEqual([1]);
    expect(pickMerge([...settled, ...times(1, { format: "parquet", rows: 1 })], patient)).toBeUndefined();
  });

  it("what is left in tlm after an hour, where that is the format of the past", () => {
    const later = new ManualClock(START_MS + HOUR_MS);
    const lateId = uuidV7Source(later, seededRandom(3));
    const [first, second] = times(2);
    const fresh = extent({ id: lateId() });
    const parquet = times(2, { format: "parquet" });
    const all = [...parquet, ...[first, second].filter((one) => one !== undefined), fresh];
    const migrating = { ...rules, minExtents: 24, isTlmPast: true };
    expect(migratesAtMs(all)).toBe(START_MS + HOUR_MS);
    expect(migratesAtMs(parquet)).toBe(Infinity);
    // Long before the day is settled, which the fresh one puts off.
    expect(pickMerge(all, { ...migrating, nowMs: START_MS + HOUR_MS - 1 })).toBeUndefined();
    const picked = pickMerge(all, { ...migrating, nowMs: START_MS + HOUR_MS });
    expect(picked?.map(({ id }) => id)).toEqual([first?.id, second?.id]);
    expect(pickMerge(all, { ...migrating, nowMs: START_MS + HOUR_MS, isTlmPast: false })).toBeUndefined();
    // What a merge makes of them is left alone, however often one looks.
    const after = [...parquet, extent({ format: "parquet", rows: 200 }), fresh];
    expect(pickMerge(after, { ...migrating, nowMs: START_MS + HOUR_MS })).toBeUndefined();
    // Levels and bounds hold as ever.
    expect(pickMerge(times(24), { ...migrating, nowMs: START_MS })).toHaveLength(24);
    const many = times(3_000, { sizeBytes: 1 });
    expect(pickMerge(many, { ...migrating, minExtents: 5_000, nowMs: START_MS + 2 * HOUR_MS })).toHaveLength(1_000);
  });

  it("what is not published once some of it is due: all of it, nothing else, and finished files where they are asked for", () => {
    const later = (seconds: number) => {
      const id = uuidV7Source(new ManualClock(START_MS + seconds * 1_000), seededRandom(seconds))();
      return extent({ id, isUnpublished: true });
    };
    const [first, second] = [later(1), later(200)];
    const widened = extent({ format: "parquet", isUnpublished: true, rows: 5_000 });
    const published = times(3, { format: "parquet", isUnpublished: false });
    const finished = extent({ format: "parquet", isUnpublished: true, sizeBytes: FINISHED_BYTES });
    const all = [...published, first, second, finished];
    const patient = { ...rules, minExtents: 24 };
    const idsOf = (picked: readonly Candidate[] | undefined) => picked?.map(({ id }) => id).sort();
    const lagging = (nowMs: number) => ({ ...patient, publish: publishAfter(300_000, nowMs) });
    expect(pickMerge(all, patient)).toBeUndefined();
    expect(pickMerge(all, lagging(START_MS + 300_999))).toBeUndefined();
    expect(idsOf(pickMerge(all, lagging(START_MS + 301_000)))).toEqual([first.id, second.id].sort());
    expect(idsOf(pickMerge([second], lagging(START_MS + 499_999)))).toBeUndefined();
    // Alone, too; what is large and open goes before what is full.
    expect(idsOf(pickMerge([...published, widened], lagging(START_MS + 301_000)))).toEqual([widened.id]);
    expect(idsOf(pickMerge([...times(30), first], lagging(START_MS + 301_000)))).toEqual([first.id]);
    const asked = (withFinished: boolean) => ({ ...patient, publish: { isDue: () => true, withFinished } });
    expect(idsOf(pickMerge([...published, finished], asked(false)))).toBeUndefined();
    expect(idsOf(pickMerge([...published, finished], asked(true)))).toEqual([finished.id]);
    // What is due comes first where one merge cannot take all.
    const large = { isUnpublished: true, sizeBytes: 600 * MIB };
    const [a, b] = [extent(large), extent(large)];
    const one = { ...patient, publish: { isDue: ({ id }: Candidate) => id === b.id } };
    expect(idsOf(pickMerge([a, b], one))).toEqual([b.id]);
  });

  it("days that still get rows the less often the older they are", () => {
    const old = new ManualClock(START_MS + 29 * DAY_MS);
    const lateId = uuidV7Source(old, seededRandom(2));
    const settlesMs = settlesAtMs([extent({ id: lateId() })]);
    expect(settlesMs).toBe(START_MS + 29 * DAY_MS + (28 * DAY_MS) / 7);
  });

  it("days by UTC, rounding down", () => {
    expect([-1n, 0n, 1n, -86_400_000_000_000n, -86_400_000_000_001n].map(dayOf)).toEqual([
      -DAY_MS,
      0,
      0,
      -DAY_MS,
      -2 * DAY_MS,
    ]);
    expect(dayOf(BigInt(START_MS + DAY_MS) * 1_000_000n - 1n)).toBe(START_MS);
  });
});
