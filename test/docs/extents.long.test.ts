import { execFileSync } from "node:child_process";
import { globSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { installedBy } from "../../src/core/gates.test-kit.ts";
import { ingest, ndjson, rowsOf } from "../support/client.ts";
import { cleanEnv, startEngine, temporaryHome, type Engine } from "../support/engine.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";

/** Extents read by other programs, as `docs/extents.md` says: both formats by pyarrow and by Polars. */

type Row = Record<string, unknown>;

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));
const python = installedBy("install-pyarrow", "python3-venv");

const TYPES = "flag:bool, i:int, l:long, r:real, s:string, t:timestamp, d:dynamic, v:vector(3), absent:string";
const COLUMNS = ["at", "flag", "i", "l", "r", "s", "t", "d", "v"];
const ROWS = Array.from({ length: 300 }, (_, n) => n);
/** Far enough apart that pyarrow could not read their differences. */
const INTS = [-2_147_483_648, 2_147_483_647, 0];

/** Of every type, with nulls, what is odd in each, and digits that no double has. */
const BODY = ROWS.map((n) => {
  const at = `"at":"2026-01-01T00:00:00.${String(n).padStart(9, "0")}Z"`;
  const rest = { s: ["", "ünïcödé 🦉", `text ${n}`][n % 3], d: { n, list: [1, null] }, v: [n, n / 2, -1] };
  const some = n % 5 === 0 ? {} : { flag: n % 2 === 0, i: INTS[n % 3], r: n / 8, t: "1999-12-31T23:59:59.123456789Z" };
  return `{${at},"l":${9_223_372_036_854_775_807n - BigInt(n)},${JSON.stringify({ ...rest, ...some }).slice(1)}\n`;
}).join("");

const SQL =
  "SELECT CAST(epoch_ns(at) AS VARCHAR) AS at, flag, i, CAST(l AS VARCHAR) AS l, r, s, " +
  "CAST(epoch_ns(t) AS VARCHAR) AS t, CAST(d AS VARCHAR) AS d, v FROM typed ORDER BY typed.at";

describe.skipIf(python === undefined)("extents", () => {
  let home: string;
  let remove: () => Promise<void>;
  let answered: Row[];
  beforeAll(async () => {
    ({ home, remove } = await temporaryHome());
    const args = ["create-table", "--name", "typed", "--schema", TYPES];
    const entry = path("../../bin/engine.js");
    execFileSync(process.execPath, [entry, ...args], { env: { ...cleanEnv(), ENGINE_HOME: home } });
    const writing = { tlm: {}, parquet: { ENGINE_WRITE_FORMAT: "parquet" } };
    for (const [format, env] of Object.entries(writing)) {
      const engine = await startEngine({ home, env: { ENGINE_COMPACTION_POLL_SECS: "0", ...env } });
      expect((await ingest(engine.url, "typed", BODY)).status).toBe(200);
      expect(globSync(join(home, `data/**/typed/**/*.${format}`))).toHaveLength(1);
      if (format === "tlm") answered = await rowsOf(engine.url, SQL);
      await engine.stop();
    }
  });
  afterAll(() => remove());

  function read(library: string, files: readonly string[]): { rows: Row[]; described: Row[] } {
    const script = path("read-extents.py");
    const text = execFileSync(python ?? "", [script, library, ...files], { encoding: "utf8", maxBuffer: 2 ** 26 });
    const lines = text.trim().split("\n");
    const described: Row[] = JSON.parse(lines.pop() ?? "");
    return { rows: lines.map((line): Row => JSON.parse(line)), described };
  }

  const ordered = (rows: readonly Row[]) =>
    rows.toSorted((a, b) => String(a["at"]).localeCompare(String(b["at"]))).map(known);

  test.each(["pyarrow", "polars"])("hold for %s what a query answers, in both formats", (library) => {
    expect(answered).toHaveLength(ROWS.length);
    for (const format of ["tlm", "parquet"]) {
      const { rows } = read(library, globSync(join(home, `data/**/typed/**/*.${format}`)));
      expect({ format, rows: ordered(rows) }).toEqual({ format, rows: answered });
    }
  });

  test("say of themselves what the documents say", () => {
    const { described } = read("pyarrow", globSync(join(home, "data/**/typed/**/*.tlm")));
    // A column without a value is left out, and those that are there keep the table's order.
    const types = { at: "timestamp", flag: "bool", i: "int", l: "long", r: "real", s: "string", t: "timestamp" };
    expect(described).toEqual([
      {
        format_version: "1",
        types: { ...types, d: "dynamic", v: "vector(3)" },
        nullable: true,
        dictionaries: false,
      },
    ]);
    const parquet = read("pyarrow", globSync(join(home, "data/**/typed/**/*.parquet"))).described;
    const microseconds = "timestamp[us, tz=UTC]";
    // Both have values between two microseconds.
    const nanoseconds = { "at\u001fns": "timestamp[ns]", "t\u001fns": "timestamp[ns]" };
    expect(parquet).toMatchObject([
      { codecs: ["ZSTD"], nullable: true, times: { at: microseconds, t: microseconds, ...nanoseconds } },
    ]);
    const { ids, names } = parquet[0] as { ids: number[]; names: string[] };
    expect(new Set(ids).size).toBe(names.length);
    for (const name of ["at", "t"]) {
      expect(ids[names.indexOf(`${name}\u001fns`)]).toBe(2_000_000 + (ids[names.indexOf(name)] ?? 0));
    }
  });

  test.each(["pyarrow", "polars"])("that were merged are read by %s", async (library) => {
    const engine: Engine = await startEngine({
      home,
      env: { ENGINE_COMPACTION_POLL_SECS: "1", ENGINE_COMPACTION_MIN_EXTENTS: "4" },
    });
    const table = `merged_${library}`;
    const rows = Array.from({ length: 8 }, (_, n) => ({ at: "2026-01-01T00:00:00Z", n: `${n}` }));
    for (const row of rows) await ingest(engine.url, table, ndjson([row]));
    const merged = () => globSync(join(home, `data/**/${table}/**/*.parquet`));
    await eventually(() => merged().length > 0);
    await engine.stop();
    const inMerged = read(library, merged());
    const found = new Set(inMerged.rows.map((row) => row["n"]));
    expect(found.size).toBeGreaterThanOrEqual(4);
    expect(rows.map(({ n }) => n)).toEqual(expect.arrayContaining([...found]));
    // The columns' ids are field ids: `at`, `label`, `body`, `props` and `n`, of which those without a value are left out.
    for (const { ids, times } of inMerged.described) {
      expect(ids).not.toContain(-1);
      expect(times).toEqual({ at: "timestamp[us, tz=UTC]" });
    }
  });
});

function known(row: Row): Row {
  return Object.fromEntries(COLUMNS.map((name) => [name, row[name] ?? null]));
}
