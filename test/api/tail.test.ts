import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { runHere } from "../../src/cli/cli.test-kit.ts";
import { CalledServices } from "./services.test-kit.ts";
import { TailClient, type TailOptions } from "./tail.test-kit.ts";

/** `GET /v1/tail` on one server with all roles. */

type Who = "admin" | "reader" | "limited" | "second" | "third" | "fourth";

let services: CalledServices<Who>;
const clients: TailClient[] = [];

beforeAll(async () => {
  services = await CalledServices.start<Who>(
    [
      ["admin", "admin"],
      ["reader", "read"],
      ["second", "read"],
      ["third", "read"],
      ["fourth", "read"],
    ],
    { ENGINE_COMPACTION_POLL_SECS: "0" },
  );
  await services.limit("limited", "read", ["other"], "admin");
});
afterEach(() => {
  for (const client of clients.splice(0)) client.leave();
});
afterAll(() => services.close());

let tables = 0;
/** A table of its own for a test. */
const newTable = () => `t${++tables}`;

async function put(table: string, rows: readonly object[], headers: Record<string, string> = {}): Promise<number> {
  const body = rows.map((row) => JSON.stringify(row)).join("\n");
  const answer = await services.send("admin", "POST", "/v1/ingest", body, { "X-Table": table, ...headers });
  const ack = (await answer.json()) as { snapshot_id: string };
  expect({ status: answer.status, ack }).toMatchObject({ status: 200 });
  return Number(ack.snapshot_id);
}

const authorization = (who: Who) => ({ Authorization: `Bearer ${services.tokens.get(who)}` });

async function tail(table: string, options: TailOptions = {}, who: Who = "reader"): Promise<TailClient> {
  const client = await TailClient.open(services.url, table, {
    ...options,
    headers: { ...authorization(who), ...options.headers },
  });
  clients.push(client);
  return client;
}

/** The status and code of a tail that is refused. */
async function refusal(table: string, query: Record<string, string> = {}, headers: Record<string, string> = {}) {
  const asked = new URLSearchParams({ ...(table === "" ? {} : { table }), ...query }).toString();
  const answer = await fetch(`${services.url}/v1/tail?${asked}`, {
    headers: { ...authorization("reader"), ...headers },
  });
  const text = await answer.text();
  const { error } = JSON.parse(text) as { error: { code: string; message: string } };
  return { status: answer.status, code: error.code, message: error.message };
}

const numbers = (from: number, count: number) => Array.from({ length: count }, (_, i) => ({ n: from + i }));

describe("a live tail", () => {
  it("shows each row of later commits once, in their order, and none of earlier ones", async () => {
    const table = newTable();
    await put(table, numbers(0, 3));
    const client = await tail(table);
    expect(client.response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const first = await put(table, numbers(3, 2));
    const second = await put(table, numbers(5, 2));
    await client.until(4);
    expect(client.values("n")).toEqual(["3", "4", "5", "6"]);
    expect(client.rows.map(({ id }) => id)).toEqual([`${first}.1`, `${first}.2`, `${second}.1`, `${second}.2`]);
    expect(client.rows[0]?.data).toMatchObject({ n: "3", label: null, body: null });
  });

  it("goes on after the last id, also in the middle of a snapshot, and from a snapshot", async () => {
    const table = newTable();
    const first = await put(table, numbers(0, 3));
    const second = await put(table, numbers(3, 3));
    const whole = await tail(table, { query: { from: String(first - 1) } });
    await whole.until(6);
    expect(whole.values("n")).toEqual(["0", "1", "2", "3", "4", "5"]);
    for (const [i, { id }] of whole.rows.entries()) {
      const rest = await tail(table, { headers: { "Last-Event-ID": id ?? "" }, query: { from: "0" } });
      await rest.until(5 - i);
      expect(rest.values("n")).toEqual(["0", "1", "2", "3", "4", "5"].slice(i + 1));
      expect(rest.rows.map((row) => row.id)).toEqual(whole.rows.slice(i + 1).map((row) => row.id));
    }
    const later = await tail(table, { query: { from: String(first) } });
    await later.until(3);
    expect(later.rows[0]?.id).toBe(`${second}.1`);
  });

  it("shows rows that its filter is true of, and the ids that they have without it", async () => {
    const table = newTable();
    await put(table, [{ n: 0, label: "x" }]);
    const even = await tail(table, { query: { filter: "n::BIGINT % 2 = 0" } });
    const none = await tail(table, { query: { filter: "label = 'nobody'" } });
    const unknown = await tail(table, { query: { filter: "CASE WHEN n = '3' THEN NULL ELSE n = '4' END" } });
    const all = await tail(table);
    const at = await tail(table, { query: { filter: "at >= TIMESTAMP '2020-01-01' AND \"label\" IS NULL" } });
    const snapshot = await put(table, numbers(1, 5));
    await all.until(5);
    await at.until(5);
    expect((await even.until(2)).map(({ id }) => id)).toEqual([`${snapshot}.2`, `${snapshot}.4`]);
    expect((await unknown.until(1)).map(({ id }) => id)).toEqual([`${snapshot}.4`]);
    // It says where it is all the same.
    await expect.poll(() => none.lastId).toBe(`${snapshot + 1}.0`);
    expect(none.rows).toEqual([]);
    expect([even, unknown, all, at].flatMap((client) => client.events.filter(({ event }) => event === "end"))).toEqual(
      [],
    );
  });

  it("writes a row as a query does, with every digit", async () => {
    const table = newTable();
    await put(table, [{ label: "first" }]);
    const client = await tail(table);
    const body = 'line\nbreak \u2028 "quoted" \\ ünï 😀 \u0000';
    await put(table, [{ at: "2026-01-02T03:04:05.123456789Z", label: "l", body, props: { deep: [1, { a: "\r\n" }] } }]);
    await client.until(1);
    const answer = await services.send("reader", "POST", "/v1/query", `SELECT * FROM ${table} WHERE label = 'l'`);
    const text = (await answer.text()).trimEnd();
    expect(client.text).toContain(`\ndata: ${text}\n\n`);
    expect(client.rows[0]?.data).toEqual(JSON.parse(text));
  });

  it("has columns that come while it runs, and rows of many extents in order", async () => {
    const table = newTable();
    await put(table, numbers(0, 1));
    const client = await tail(table);
    await put(table, [{ n: 1, more: "a" }]);
    await Promise.all(Array.from({ length: 20 }, (_, i) => put(table, [{ n: 2 + i }])));
    await client.until(21);
    expect(client.rows[0]?.data).toMatchObject({ n: "1", more: "a" });
    expect(
      client
        .values("n")
        .map(Number)
        .toSorted((a, b) => a - b),
    ).toEqual(Array.from({ length: 21 }, (_, i) => i + 1));
    const again = await tail(table, { query: { from: "0" } });
    await again.until(22);
    expect(again.rows.slice(1)).toEqual(client.rows);
    expect(again.rows[0]?.data).toMatchObject({ n: "0", more: null });
  });

  it("shows numbers of a column that was widened, before and after", async () => {
    const table = newTable();
    const inferred = { "X-Engine-Infer-Types": "true" };
    await put(table, [{ v: 1 }, { v: 2 }], inferred);
    const live = await tail(table, { query: { filter: "v > 2" } });
    await put(table, [{ v: 3 }], inferred);
    await live.until(1);
    await put(table, [{ v: 2.5 }, { v: 0.5 }], inferred);
    await live.until(2);
    expect(live.values("v")).toEqual([3, 2.5]);
    const past = await tail(table, { query: { from: "0" } });
    await past.until(5);
    expect(past.values("v")).toEqual([1, 2, 3, 2.5, 0.5]);
  });

  it("reads more than one scan gives, in order", async () => {
    const table = newTable();
    const first = await put(table, numbers(0, 12_345));
    await put(table, numbers(12_345, 10));
    const client = await tail(table, { query: { from: String(first - 1) } });
    await client.until(12_355);
    expect(client.values("n")).toEqual(numbers(0, 12_355).map(({ n }) => String(n)));
    const filtered = await tail(table, { query: { from: String(first - 1), filter: "n::INT % 1000 = 7" } });
    await filtered.until(13);
    expect(filtered.values("n").map(Number)).toEqual(Array.from({ length: 13 }, (_, i) => i * 1000 + 7));
    const middle = await tail(table, { headers: { "Last-Event-ID": `${first}.12000` } });
    await middle.until(355);
    expect(middle.values("n")).toEqual(numbers(12_000, 355).map(({ n }) => String(n)));
  });

  it("is of one database", async () => {
    const table = newTable();
    await put(table, numbers(0, 1), { "X-Database": "other" });
    const client = await tail(table, { headers: { "X-Database": "other" } }, "limited");
    await put(table, numbers(1, 1), { "X-Database": "other" });
    await put(table, numbers(7, 1));
    await put(table, numbers(2, 1), { "X-Database": "other" });
    await client.until(2);
    expect(client.values("n")).toEqual(["1", "2"]);
    await expect(tail(table, {}, "limited")).rejects.toThrow(/^404 .*database_not_found/);
  });

  it("shows no row past its retention", async () => {
    const table = newTable();
    await put(table, numbers(0, 1));
    const env = { ENGINE_HOME: services.home, ENGINE_CATALOG_URL: `sqlite://${services.home}/catalog.db` };
    const altered = await runHere(["alter-table", "--table", table, "--retention-days", "1"], { env });
    expect(altered).toMatchObject({ code: 0 });
    const client = await tail(table);
    await put(table, [{ at: "2020-01-01T00:00:00Z", n: 1 }, { n: 2 }, { at: "2020-01-01T00:00:00Z", n: 3 }, { n: 4 }]);
    await client.until(2);
    expect(client.values("n")).toEqual(["2", "4"]);
    expect(client.rows.map(({ id }) => id?.split(".")[1])).toEqual(["2", "4"]);
  });
});

describe("a live tail over changes", () => {
  it("shows no row again that a deletion leaves, and none that it deletes", async () => {
    const table = newTable();
    const first = await put(table, numbers(0, 4));
    const client = await tail(table, { query: { from: String(first - 1) } });
    await client.until(4);
    const begun = await services.json("admin", "POST", `/v1/catalog/tables/${table}/delete`, {
      where: "n IN ('1', '2')",
    });
    const path = `/v1/catalog/deletions/${String(begun["id"])}`;
    await expect.poll(async () => (await services.json("admin", "GET", path))["status"]).toBe("done");
    await put(table, numbers(4, 2));
    await client.until(6);
    expect(client.values("n")).toEqual(["0", "1", "2", "3", "4", "5"]);
    expect(await refusal(table, { from: String(first - 1) })).toMatchObject({ status: 410, code: "snapshot_expired" });
    const later = await tail(table, { query: { from: String(first) } });
    await later.until(2);
    expect(later.values("n")).toEqual(["4", "5"]);
  });

  it("ends with its table, and shows the rows of one that is made anew from the same id", async () => {
    const table = newTable();
    await put(table, numbers(0, 1));
    const client = await tail(table);
    await put(table, numbers(1, 1));
    await client.until(1);
    expect((await services.send("admin", "DELETE", `/v1/catalog/tables/${table}`)).status).toBe(200);
    expect(await client.end()).toMatchObject({ event: "end", data: { code: "table_not_found", reconnect: false } });
    expect(await refusal(table)).toMatchObject({ status: 404, code: "table_not_found" });
    await put(table, numbers(7, 2));
    const anew = await tail(table, { headers: { "Last-Event-ID": client.lastId } });
    await anew.until(2);
    expect(anew.values("n")).toEqual(["7", "8"]);
  });

  it("ends when its token is revoked", async () => {
    const table = newTable();
    await put(table, numbers(0, 1));
    const made = await services.json("admin", "POST", "/v1/auth/tokens", { name: "short", role: "read" });
    const client = await TailClient.open(services.url, table, {
      headers: { Authorization: `Bearer ${String(made["token"])}` },
    });
    clients.push(client);
    await put(table, numbers(1, 1));
    await client.until(1);
    expect((await services.send("admin", "DELETE", `/v1/auth/tokens/${String(made["id"])}`)).status).toBeLessThan(300);
    expect(await client.end(60_000)).toMatchObject({ event: "end", data: { code: "unauthorized", reconnect: false } });
  });
});

describe("a live tail whose filter fails on a row", () => {
  it("ends alone, and says why", async () => {
    const table = newTable();
    await put(table, [{ n: "1" }]);
    const bad = await tail(table, { query: { filter: "n::INT > 0" } });
    const good = await tail(table, { query: { filter: "n <> '1'" } });
    const all = await tail(table);
    await put(table, [{ n: "no number" }]);
    await put(table, [{ n: "2" }]);
    expect(await bad.end()).toMatchObject({ event: "end", data: { code: "execution_error", reconnect: false } });
    expect((await good.until(2)).map(({ data }) => data["n"])).toEqual(["no number", "2"]);
    await all.until(2);
    expect([good.isOver, all.isOver]).toEqual([false, false]);
  });
});

describe("refused", () => {
  let table: string;
  beforeAll(async () => {
    table = newTable();
    await put(table, numbers(0, 2));
  });

  it.each<[Record<string, string>, Record<string, string>, number, string]>([
    [{ from: "x" }, {}, 400, "invalid_parameter"],
    [{ from: "-1" }, {}, 400, "invalid_parameter"],
    [{ from: "1".repeat(16) }, {}, 400, "invalid_parameter"],
    [{ from: "999999" }, {}, 400, "invalid_parameter"],
    [{ filter: "" }, {}, 400, "invalid_parameter"],
    [{ filter: `n = '${"x".repeat(17_000)}'` }, {}, 400, "invalid_parameter"],
    [{}, { "Last-Event-ID": "7" }, 400, "invalid_header"],
    [{}, { "Last-Event-ID": "7.x" }, 400, "invalid_header"],
    [{}, { "Last-Event-ID": "1.2.3" }, 400, "invalid_header"],
    [{}, { "Last-Event-ID": "999999.1" }, 400, "invalid_parameter"],
    [{}, { "X-Database": "nowhere" }, 404, "database_not_found"],
    [{}, { Authorization: "Bearer wrong" }, 401, "unauthorized"],
    [{ filter: "missing = 1" }, {}, 400, "invalid_query"],
    [{ filter: "n =" }, {}, 400, "parse_error"],
    [{ filter: "n IN (SELECT label FROM t1)" }, {}, 400, "invalid_query"],
    [{ filter: "at > now()" }, {}, 400, "invalid_query"],
  ])("%j %j", async (query, headers, status, code) => {
    expect(await refusal(table, query, headers)).toMatchObject({ status, code });
  });

  it("without a table, and for one that is not there", async () => {
    expect(await refusal("")).toMatchObject({ status: 400, code: "invalid_parameter" });
    expect(await refusal("nowhere")).toMatchObject({ status: 404, code: "table_not_found" });
    expect(await refusal('t1" WHERE true --')).toMatchObject({ status: 404, code: "table_not_found" });
    expect(await refusal("system.tables")).toMatchObject({ status: 404, code: "table_not_found" });
  });
});

describe("many", () => {
  it("are 64 on a node and 16 of a caller, which share scans, and one more is refused until one leaves", async () => {
    const table = newTable();
    await put(table, numbers(0, 1));
    const filters = ["true", "n <> 'x'", "n::INT > 0", "n IS NOT NULL"];
    // Those of the tests before are leaving.
    await expect.poll(() => sumOf("engine_query_tails")).toBe(0);
    const callers: Who[] = ["reader", "second", "third", "fourth"];
    const open = (who: Who) =>
      filters.flatMap((filter) => Array.from({ length: 4 }, () => tail(table, { query: { filter } }, who)));
    const many = await Promise.all(open("reader"));
    expect(await refusal(table)).toMatchObject({
      status: 429,
      message: "this server has 16 live tails of yours already",
    });
    for (const who of callers.slice(1)) many.push(...(await Promise.all(open(who))));
    const before = await scans();
    const answer = await fetch(`${services.url}/v1/tail?table=${table}`, { headers: authorization("admin") });
    expect(answer.status).toBe(429);
    expect(answer.headers.get("retry-after")).toBe("5");
    expect(((await answer.json()) as { error: { code: string } }).error.code).toBe("too_many_requests");
    await put(table, numbers(1, 3));
    await Promise.all(many.map((client) => client.until(3)));
    expect(new Set(many.map((client) => JSON.stringify(client.values("n"))))).toEqual(new Set(['["1","2","3"]']));
    expect((await scans()) - before).toBeLessThanOrEqual(2);
    many[0]?.leave();
    await expect.poll(async () => (await refusalOrTail(table)) === 200).toBe(true);
  });
});

async function refusalOrTail(table: string): Promise<number> {
  try {
    await tail(table);
    return 200;
  } catch {
    return 429;
  }
}

/** Of all series of a metric of the server. */
async function sumOf(metric: string): Promise<number> {
  const text = await (await services.send("admin", "GET", "/metrics")).text();
  const series = [...text.matchAll(/^(\w+)(?:\{.*\})? (\d+)$/gm)].filter(([, name]) => name === metric);
  return series.reduce((sum, [, , value]) => sum + Number(value), 0);
}

/** Scans for tails that the server has made. */
const scans = () => sumOf("engine_query_tail_scans_total");
