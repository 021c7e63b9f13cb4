import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startServices, type RunningServices } from "../edge/run.test-kit.ts";
import { ingest, query, rowsOf } from "../support/client.ts";
import { temporaryHome } from "../support/engine.ts";

/** Types that a table takes from its data, over HTTP. */

const ON = { "X-Engine-Infer-Types": "true" };
const FIRST =
  '{"at":"2026-01-01T00:00:00Z","path":"/","latency":12,"ratio":0.5,"ok":true,"seen":"2026-01-01T00:00:00Z"}\n' +
  '{"at":"2026-01-01T00:00:01Z","path":"/a","latency":14,"ratio":1,"ok":false,"seen":null}\n';

describe.each(["sync", "staged"])("with %s ingest", (mode) => {
  let services: RunningServices;
  let remove: () => Promise<void>;
  let url: string;
  beforeAll(async () => {
    const made = await temporaryHome();
    remove = made.remove;
    services = await startServices({ ENGINE_HOME: made.home, ENGINE_INGEST_MODE: mode });
    url = services.url;
  }, 120_000);
  afterAll(async () => {
    await services.stop();
    await remove();
  });

  const columnsOf = async (table: string) => {
    const rows = await rowsOf(url, `SELECT name, type, origin FROM system.columns WHERE table_name = '${table}'`);
    return rows.map(({ name, type, origin }) => `${String(name)} ${String(type)} ${String(origin)}`).slice(4);
  };
  /** Staged rows become visible soon. */
  const eventually = (text: string) => expect.poll(() => rowsOf(url, text));

  test("a first body ends in an average, and what does not fit later is found in props", async () => {
    expect((await ingest(url, "requests", FIRST, ON)).status).toBe(200);
    await eventually("SELECT avg(latency) AS a, sum(ratio) AS r, count(*) FILTER (ok) AS n FROM requests").toEqual([
      { a: 13, r: 1.5, n: 1 },
    ]);
    expect(await columnsOf("requests")).toEqual([
      "path string inferred",
      "latency long inferred",
      "ratio real inferred",
      "ok bool inferred",
      "seen timestamp inferred",
    ]);
    const tables = "SELECT infer_types FROM system.tables WHERE name = 'requests'";
    expect(await rowsOf(url, tables)).toEqual([{ infer_types: true }]);
    // The table keeps what applied to the request that created it.
    const late = '{"latency":"slow","host":7}\n{"latency":0.1000000000000000055,"host":8}\n';
    expect((await ingest(url, "requests", late)).status).toBe(200);
    const misfits = "SELECT CAST(props AS VARCHAR) AS p, host FROM requests WHERE props IS NOT NULL ORDER BY host";
    await eventually(misfits).toEqual([
      { p: '{"latency":"slow"}', host: 7 },
      { p: '{"latency":0.1000000000000000055}', host: 8 },
    ]);
  });

  test("a fraction widens a column of integers, for all rows and every later one, and no older snapshot", async () => {
    await ingest(url, "wider", '{"took":1,"at":"2026-01-01T00:00:00Z"}\n{"took":2,"at":"2026-01-01T00:00:01Z"}\n', ON);
    await eventually("SELECT sum(took) AS s FROM wider").toEqual([{ s: 3 }]);
    const before = await rowsOf(url, "SELECT max(id) AS id FROM system.snapshots");
    await ingest(url, "wider", '{"took":0.5,"at":"2026-01-01T00:00:02Z"}\n{"took":"x"}\n');
    await eventually("SELECT sum(took) AS s, avg(took) AS a, count(took) AS n FROM wider").toEqual([
      { s: 3.5, a: 3.5 / 3, n: 3 },
    ]);
    expect(await columnsOf("wider")).toEqual(["took real inferred"]);
    expect(await (await fetch(`${url}/metrics`)).text()).toMatch(/^engine_ingest_widened_total [1-9]/m);
    await ingest(url, "wider", '{"took":9007199254740992}\n');
    await eventually("SELECT count(*) AS n FROM wider WHERE took > 1.5").toEqual([{ n: 2 }]);
    expect(await rowsOf(url, "SELECT took FROM wider WHERE took < 1.5 ORDER BY took")).toEqual([
      { took: 0.5 },
      { took: 1 },
    ]);
    const version = String(before[0]?.["id"]);
    const old = `SELECT typeof(took) AS t, took FROM wider AT (VERSION => ${version}) ORDER BY took`;
    expect(await rowsOf(url, old)).toEqual([
      { t: "BIGINT", took: 1 },
      { t: "BIGINT", took: 2 },
    ]);
  });

  test("not where an integer would be lost: then the fraction is in props", async () => {
    await ingest(url, "far", '{"id":9007199254740993}\n', ON);
    await eventually("SELECT CAST(id AS VARCHAR) AS id FROM far").toEqual([{ id: "9007199254740993" }]);
    await ingest(url, "far", '{"id":0.5}\n');
    await eventually("SELECT props->>'id' AS p FROM far WHERE id IS NULL").toEqual([{ p: "0.5" }]);
    expect(await columnsOf("far")).toEqual(["id long inferred"]);
  });

  test("nor for a request that asks for no evolution", async () => {
    await ingest(url, "still", '{"id":1}\n', ON);
    await eventually("SELECT id FROM still").toEqual([{ id: 1 }]);
    await ingest(url, "still", '{"id":0.5}\n', { "X-Schema-Evolve": "false" });
    await eventually("SELECT props->>'id' AS p FROM still WHERE id IS NULL").toEqual([{ p: "0.5" }]);
    expect(await columnsOf("still")).toEqual(["id long inferred"]);
  });

  test("bodies that arrive together end with the type that they would have in any order", async () => {
    const bodies = ['{"n":1}', '{"n":2.5}', '{"n":3}', '{"n":4}', '{"n":-0.25}'];
    const answers = await Promise.all(bodies.map((body) => ingest(url, "together", `${body}\n`, ON)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    await eventually("SELECT sum(n) AS s, count(n) AS c FROM together").toEqual([{ s: 10.25, c: 5 }]);
    expect(await columnsOf("together")).toEqual(["n real inferred"]);
  });

  test("misfits are told by the answer, counted by column, and found in props", async () => {
    expect((await ingest(url, "fitted", '{"latency":1,"seen":"2026-01-01T00:00:00Z"}\n', ON)).status).toBe(200);
    await eventually("SELECT count(*) AS n FROM fitted").toEqual([{ n: 1 }]);
    const odd = '{"latency":"slow"}\n\n{"latency":"9","seen":"2026-01-01T00:00:00+01:00"}\n';
    const { json } = await ingest(url, "fitted", odd);
    const told = [
      { code: "kept_in_props", field: "latency", type: "long", count: 2, first_line: 1 },
      { code: "kept_in_props", field: "seen", type: "timestamp", count: 1, first_line: 3 },
    ];
    // In staged mode the node may not have learned of the columns yet.
    expect([told, mode === "sync" ? told : undefined]).toContainEqual(json.warnings);
    await eventually("SELECT count(*) AS n FROM fitted").toEqual([{ n: 3 }]);
    const misfits =
      "SELECT name, misfits FROM system.columns WHERE table_name = 'fitted' AND misfits > 0 ORDER BY name";
    expect(await rowsOf(url, misfits)).toEqual([
      { name: "latency", misfits: 2 },
      { name: "seen", misfits: 1 },
    ]);
    const inProps = "SELECT props->>'latency' AS l FROM fitted WHERE latency IS NULL ORDER BY l";
    expect(await rowsOf(url, inProps)).toEqual([{ l: "9" }, { l: "slow" }]);
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(Number(/^engine_ingest_misfits_total (\d+)$/m.exec(metrics)?.[1])).toBeGreaterThanOrEqual(3);
    expect(metrics).toMatch(/^engine_ingest_inferred_columns_total\{type="long"\} [1-9]/m);
  });

  test("the request decides before the table, and without either all is as it was", async () => {
    await ingest(url, "plain", '{"n":1}\n');
    await eventually("SELECT n FROM plain").toEqual([{ n: "1" }]);
    await ingest(url, "plain", '{"m":1}\n', ON);
    await eventually("SELECT m FROM plain WHERE m IS NOT NULL").toEqual([{ m: 1 }]);
    expect(await columnsOf("plain")).toEqual(["n string declared", "m long inferred"]);
    expect(await rowsOf(url, "SELECT infer_types FROM system.tables WHERE name = 'plain'")).toEqual([
      { infer_types: false },
    ]);
    await ingest(url, "other", '{"n":1}\n', ON);
    await eventually("SELECT n FROM other").toEqual([{ n: 1 }]);
    await ingest(url, "other", '{"m":1}\n', { "X-Engine-Infer-Types": "FALSE" });
    await eventually("SELECT m FROM other WHERE m IS NOT NULL").toEqual([{ m: "1" }]);
  });

  test("without evolution it has no effect, and a word that is neither is refused", async () => {
    await ingest(url, "fixed", '{"body":"x"}\n');
    await ingest(url, "fixed", '{"n":1}\n', { ...ON, "X-Schema-Evolve": "false" });
    await eventually("SELECT count(*) AS n FROM fixed").toEqual([{ n: 2 }]);
    expect(await columnsOf("fixed")).toEqual([]);
    const refused = await ingest(url, "fixed", '{"n":1}\n', { "X-Engine-Infer-Types": "yes" });
    expect([refused.status, refused.json.error.code]).toEqual([400, "invalid_header"]);
  });

  test("the schema tree shows it", async () => {
    await ingest(url, "shown", '{"n":1}\n', ON);
    await eventually("SELECT n FROM shown").toEqual([{ n: 1 }]);
    const answer = await fetch(`${url}/v1/catalog/schema`);
    const { databases } = (await answer.json()) as { databases: { tables: Record<string, unknown>[] }[] };
    expect(databases[0]?.tables.find(({ name }) => name === "shown")).toMatchObject({ infer_types: true });
  });

  test("bodies that meet in one flush, large ones and small, are all kept", async () => {
    const bodies = [
      Array.from({ length: 60_000 }, (_, i) => `{"k":${i},"v":${i}}`),
      Array.from({ length: 60_000 }, (_, i) => `{"k":${60_000 + i},"v":${i === 59_999 ? "0.25" : i}}`),
      ['{"k":-1,"v":"text"}'],
    ];
    const answers = await Promise.all(bodies.map((lines) => ingest(url, "met", `${lines.join("\n")}\n`, ON)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    await eventually("SELECT count(*) AS n FROM met").toEqual([{ n: 120_001 }]);
    const kept = "SELECT count(*) AS n FROM met WHERE v IS NULL AND (props->>'v') IS NULL";
    expect(await rowsOf(url, kept)).toEqual([{ n: 0 }]);
  });
});

describe("a server that is configured to", () => {
  let services: RunningServices;
  let remove: () => Promise<void>;
  beforeEach(async () => {
    const made = await temporaryHome();
    remove = made.remove;
    services = await startServices({
      ENGINE_HOME: made.home,
      ENGINE_INGEST_INFER_TYPES: "true",
      ENGINE_SEAL_THREADS: "2",
    });
  }, 120_000);
  afterEach(async () => {
    await services.stop();
    await remove();
  });

  test("infers where nobody says, and a body in cuts has the types of the whole", async () => {
    const lines = Array.from(
      { length: 200_000 },
      (_, i) => `{"n":${i === 199_999 ? "0.5" : i},"pad":"${"x".repeat(20)}"}`,
    );
    const answer = await ingest(services.url, "cuts", `${lines.join("\n")}\n`);
    expect(answer.json.warnings).toBeUndefined();
    expect(await rowsOf(services.url, "SELECT sum(n) AS n, count(n) AS c FROM cuts")).toEqual([
      { n: (199_998 * 199_999) / 2 + 0.5, c: 200_000 },
    ]);
    const refused = await query(services.url, "SELECT avg(pad) FROM cuts");
    expect(refused.status).toBe(400);
  });
});
