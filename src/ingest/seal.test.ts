import { tmpdir } from "node:os";
import { join } from "node:path";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { DuckDBInstance } from "@duckdb/node-api";
import { afterAll, describe, expect, it } from "vitest";
import { silentLog } from "../core/log.ts";
import { checksumOf } from "../format/checksum.ts";
import { mayHold } from "../format/filter/filter.ts";
import { probeValues } from "../format/filter/probes.ts";
import { decodeTlm } from "../format/tlm-decode.ts";
import { DEFAULT_SHAPE } from "../format/types.ts";
import { createSealPool } from "./seal-pool.ts";
import { seal } from "./seal-thread.ts";
import { columnToSeal, type SealBody, type SealTask } from "./seal.ts";

const AT_NS = 1_704_067_200_000_000_000n;

function body(text: string, options: Partial<SealBody> = {}): SealBody {
  return { bytes: new TextEncoder().encode(text), evolve: true, arrivedAtNs: AT_NS, ...options };
}

function task(bodies: SealBody[], format: SealTask["format"] = "tlm"): SealTask {
  return { columns: DEFAULT_SHAPE, bodies, format };
}

const MIXED = [
  body('{"label":"a","x":1}\n{"label":"b","at":"2024-01-02T00:00:00Z"}'),
  body('{"label":"lost","lost":1}\n{"label":'),
  body("\n"),
  body('{"label":"c","dropped":1,"X":2}\n', { evolve: false, arrivedAtNs: AT_NS - 1n }),
];

describe("sealing", () => {
  it("gives columns of identifiers a filter, in extents of both formats", async () => {
    const rows = Array.from({ length: 2_000 }, (_, i) => JSON.stringify({ label: "a", trace: `trace ${i * 7_919}` }));
    for (const format of ["tlm", "parquet"] as const) {
      const { extent } = await seal(task([body(rows.join("\n"))], format));
      expect(extent?.filters.map(({ name, kind }) => [name, kind])).toEqual([["trace", "values"]]);
      const mayHave = (text: string) => {
        const probe = probeValues([text]);
        return probe === undefined || (extent?.filters.every(({ bytes }) => mayHold(bytes, probe)) ?? true);
      };
      expect([mayHave("trace 7919"), mayHave("trace 5")]).toEqual([true, false]);
    }
    expect((await seal(task([body(rows.slice(0, 999).join("\n"))]))).extent?.filters).toEqual([]);
  });

  it("makes one extent of the bodies that can be read, and answers each", async () => {
    const { extent, newColumns, outcomes } = await seal(task(MIXED));
    expect(newColumns).toEqual([{ name: "x", type: { kind: "string" } }]);
    expect(outcomes.map((outcome) => (outcome.ok ? outcome.rows : outcome.error.code))).toEqual([
      2,
      "bad_request_body",
      "bad_request_body",
      1,
    ]);
    expect(outcomes[1]).toMatchObject({ error: { details: { line: 2 } } });
    const day = 86_400_000_000_000n;
    expect(extent).toMatchObject({ format: "tlm", rows: 3, minAtNs: AT_NS - 1n, maxAtNs: AT_NS + day });
    expect(extent?.stats).toEqual([
      { name: "at", nullCount: 0, distinct: 3, min: `${AT_NS - 1n}`, max: `${AT_NS + day}` },
      { name: "label", nullCount: 0, distinct: 3, min: "a", max: "c" },
      { name: "x", nullCount: 1, distinct: 2, min: "1", max: "2" },
    ]);
    const bytes = extent?.bytes ?? new Uint8Array();
    expect(extent?.checksum).toBe(checksumOf(bytes));
    const columns = decodeTlm(bytes).columns.map(({ spec, values }) => [spec.name, values]);
    expect(Object.fromEntries(columns)).toEqual({
      at: [AT_NS, AT_NS + day, AT_NS - 1n],
      label: ["a", "b", "c"],
      x: ["1", null, "2"],
    });
  });

  it("gives the bodies that were left the same bytes as without the others", async () => {
    const [first, , , last] = MIXED;
    if (first === undefined || last === undefined) throw new Error("no bodies");
    const all = await seal(task(MIXED));
    const good = await seal(task([first, last]));
    expect(all.extent?.checksum).toBe(good.extent?.checksum);
  });

  it("makes no extent when no body has a row", async () => {
    const { extent, newColumns, outcomes } = await seal(task([body('{"new":1}\n{'), body("")]));
    expect([extent, newColumns]).toEqual([undefined, []]);
    expect(outcomes.map((outcome) => outcome.ok)).toEqual([false, false]);
  });

  it("writes parquet that others can read once the table has ids for all its columns", async () => {
    const columns = DEFAULT_SHAPE.map(({ name, type }, i) => columnToSeal({ name, type, id: i + 1 }));
    const sealed = async (text: string) => {
      const { extent } = await seal({ ...task([body(text)], "parquet"), columns });
      return [extent?.formatVersion, extent?.nanosecondColumns];
    };
    expect(await sealed('{"label":"a"}')).toEqual([2, undefined]);
    expect(await sealed('{"label":"a","at":"2024-01-01T00:00:00.000000001Z"}')).toEqual([2, ["at"]]);
    // Its id comes with the commit.
    expect(await sealed('{"label":"a","x":1}')).toEqual([1, undefined]);
  });

  it("writes parquet that holds the same rows", async () => {
    const { extent } = await seal(task(MIXED, "parquet"));
    expect(extent).toMatchObject({ format: "parquet", rows: 3, minAtNs: AT_NS - 1n });
    const bytes = extent?.bytes ?? new Uint8Array();
    expect(new TextDecoder().decode(bytes.subarray(0, 4))).toBe("PAR1");
    expect(extent?.checksum).toBe(checksumOf(bytes));
    const folder = await mkdtemp(join(tmpdir(), "engine-seal-test-"));
    try {
      const file = join(folder, "extent.parquet");
      await writeFile(file, bytes);
      const connection = await (await DuckDBInstance.create(":memory:")).connect();
      const reader = await connection.runAndReadAll(
        `SELECT epoch_ns("at")::VARCHAR, label, x FROM '${file}' ORDER BY label`,
      );
      expect(reader.getRows()).toEqual([
        [`${AT_NS}`, "a", "1"],
        [`${AT_NS + 86_400_000_000_000n}`, "b", null],
        [`${AT_NS - 1n}`, "c", "2"],
      ]);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});

describe("the pool", () => {
  const pool = createSealPool({ threads: 2, log: silentLog });
  afterAll(() => pool.close());

  it("seals on another thread, and leaves the caller its bytes", async () => {
    const around = new TextEncoder().encode('xxx{"label":"view"}\nyyy');
    const bodies = [...MIXED, { ...body(""), bytes: around.subarray(3, around.length - 3) }];
    const expected = await seal(task(bodies));
    for (let again = 0; again < 2; again++) {
      const sealed = await pool.seal(task(bodies));
      expect(sealed).toEqual(expected);
    }
    expect(around.length).toBe(23);
  });

  it("takes more flushes than it has threads, and keeps them apart", async () => {
    const flushes = Array.from({ length: 20 }, (_, i) => pool.seal(task([body(`{"label":"${i}"}`)])));
    const labels = (await Promise.all(flushes)).map(
      ({ extent }) => extent?.stats.find(({ name }) => name === "label")?.min,
    );
    expect(labels).toEqual(flushes.map((_, i) => String(i)));
    expect(pool.queueDepth()).toBe(0);
  });

  it("passes on what a thread fails with, and goes on", async () => {
    const broken = pool.seal({ columns: [], bodies: [body("{}")], format: "tlm" });
    await expect(broken).rejects.toThrow("'at'");
    expect((await pool.seal(task([body("{}")]))).outcomes).toEqual([{ ok: true, rows: 1, lines: 1 }]);
  });

  it("finishes what it has accepted before it closes, and takes nothing after", async () => {
    const other = createSealPool({ threads: 1, log: silentLog });
    const accepted = Array.from({ length: 10 }, () => other.seal(task([body("{}")])));
    await Promise.resolve();
    await accepted[0];
    await other.close();
    expect((await Promise.all(accepted)).map(({ extent }) => extent?.rows)).toEqual(accepted.map(() => 1));
    await expect(other.seal(task([body("{}")]))).rejects.toThrow("ended");
  });
});
