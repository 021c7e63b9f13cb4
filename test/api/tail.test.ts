import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { CalledServices } from "./services.test-kit.ts";
import { TailClient, type TailOptions } from "./tail.test-kit.ts";

/** `GET /v1/tail` on one server with all roles. */

type Who = "admin" | "reader" | "limited";

let services: CalledServices<Who>;
const clients: TailClient[] = [];

beforeAll(async () => {
  services = await CalledServices.start<Who>(
    [
      ["admin", "admin"],
      ["reader", "read"],
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
  expect(answer.status, JSON.stringify(ack)).toBe(200);
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
  const answer = await fetch(`${services.url}/v1/tail?${asked}`, { headers: { ...authorization("reader"), ...headers } });
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
});
